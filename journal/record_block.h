// RecordBlock: many records read together, side by side in memory that is used again.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "journal/base/status.h"

namespace holdfast {

// Threads: one at a time.
class RecordBlock {
 public:
  // Keeps the memory, as Truncate does.
  void Clear() { Truncate(0); }
  // Only the first `count` are left.
  void Truncate(size_t count) {
    if (count >= entries_.size()) return;
    bytes_.resize(entries_[count].begin);
    failures_.resize(entries_[count].failures_before);
    entries_.resize(count);
  }
  void Add(ByteView record) {
    entries_.push_back({bytes_.size(), record.size(), failures_.size(), false});
    bytes_.insert(bytes_.end(), record.begin(), record.end());
  }
  void AddFailure(Status why) {
    CHECK(!why.ok());
    entries_.push_back({bytes_.size(), 0, failures_.size(), true});
    failures_.push_back(std::move(why));
  }

  // Says otherwise why. Needs: !ok(index)
  void Excuse(size_t index, Status why) {
    CHECK(entries_[index].failed && !why.ok());
    failures_[entries_[index].failures_before] = std::move(why);
  }

  // Needs: index < size(), here and below
  size_t size() const { return entries_.size(); }
  bool ok(size_t index) const { return !entries_[index].failed; }
  Status status(size_t index) const {
    const Entry& entry = entries_[index];
    return entry.failed ? failures_[entry.failures_before] : absl::OkStatus();
  }
  // Header and fields; empty if it failed. Valid until something is added or taken away.
  ByteView record(size_t index) const {
    const Entry& entry = entries_[index];
    return ByteView(bytes_).subspan(entry.begin, entry.length);
  }

 private:
  struct Entry {
    size_t begin = 0;
    size_t length = 0;
    size_t failures_before = 0;
    bool failed = false;
  };

  std::vector<std::byte> bytes_;
  std::vector<Entry> entries_;
  std::vector<Status> failures_;
};

}  // namespace holdfast
