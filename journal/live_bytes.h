// LiveBytes: how much of each segment the state still rests on. What compaction and retirement
// decide by.
#pragma once

#include <cstdint>
#include <deque>

#include "journal/base/check.h"
#include "journal/base/strong.h"

namespace holdfast {

// The state machines keep it: each record that their state rests on is added once, with the bytes
// it takes in its batch (header and fields; estimates are fine if what is removed is what was
// added), and removed when the state rests on a newer one or on none.
// Threads: the sequencer is held.
class LiveBytes {
 public:
  struct Share {
    uint64_t records = 0;
    uint64_t bytes = 0;
  };

  LiveBytes() = default;
  LiveBytes(const LiveBytes&) = delete;  // it looks into its own shares
  LiveBytes& operator=(const LiveBytes&) = delete;

  void Add(SegmentId segment, uint64_t bytes) {
    Share& share = At(segment);
    ++share.records;
    share.bytes += bytes;
    ++total_.records;
    total_.bytes += bytes;
  }
  void Remove(SegmentId segment, uint64_t bytes) {
    Share& share = At(segment);
    CHECK(share.records > 0 && share.bytes >= bytes);
    --share.records;
    share.bytes -= bytes;
    --total_.records;
    total_.bytes -= bytes;
  }
  void Clear() {
    last_ = nullptr;
    shares_.clear();
    total_ = {};
  }

  Share of(SegmentId segment) const {
    return segment < first_ || segment >= first_ + shares_.size() ? Share()
                                                                  : shares_[segment - first_];
  }
  const Share& total() const { return total_; }

 private:
  Share& At(SegmentId segment) {
    if (segment != last_segment_ || last_ == nullptr) {
      last_ = &Search(segment);
      last_segment_ = segment;
    }
    return *last_;
  }
  Share& Search(SegmentId segment) {
    if (shares_.empty()) first_ = segment;
    while (segment < first_) {
      shares_.push_front({});
      first_ = first_ - 1;
    }
    while (segment >= first_ + shares_.size()) shares_.push_back({});
    while (shares_.size() > 1 && shares_.front().records == 0 && segment > first_) {
      shares_.pop_front();
      first_ = first_ + 1;
    }
    return shares_[segment - first_];
  }

  std::deque<Share> shares_;  // of the segments from first_ on
  SegmentId first_;
  // The one asked for last: nearly always the next, too. It is dropped by a search only.
  SegmentId last_segment_;
  Share* last_ = nullptr;
  Share total_;
};

}  // namespace holdfast
