// SegmentLedger: the closed segments of the chain, oldest first, and what each takes on disk.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "journal/base/check.h"
#include "journal/base/strong.h"

namespace holdfast {

// A segment that nothing is written to any more.
struct SealedSegment {
  SegmentId segment;
  Lsn last;                 // newest record before its end
  uint64_t file_bytes = 0;  // on disk
  uint64_t end = 0;         // where its groups end; what lies beyond is dead

  bool operator==(const SealedSegment&) const = default;
};

// Threads: guarded by its owner.
class SegmentLedger {
 public:
  // `sealed` is in order, without gaps.
  explicit SegmentLedger(const std::vector<SealedSegment>& sealed) {
    for (const SealedSegment& segment : sealed) Add(segment);
  }

  // Needs: it follows the one before.
  void Add(const SealedSegment& segment) {
    CHECK(sealed_.empty() || segment.segment == sealed_.back().segment + 1);
    sealed_.push_back(segment);
    bytes_ += segment.file_bytes;
  }
  // The oldest one is no file of the chain any more. Needs: !empty()
  void PopOldest() {
    CHECK(!sealed_.empty());
    bytes_ -= sealed_.front().file_bytes;
    sealed_.pop_front();
  }

  bool empty() const { return sealed_.empty(); }
  const SealedSegment& oldest() const { return sealed_.front(); }
  std::vector<SealedSegment> all() const { return {sealed_.begin(), sealed_.end()}; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::deque<SealedSegment> sealed_;
  uint64_t bytes_ = 0;  // of all files
};

}  // namespace holdfast
