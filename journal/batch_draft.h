// BatchDraft: the records of one future batch, encoded by the caller before the sequencer is taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/format/frame.h"
#include "journal/format/records.h"

namespace holdfast {

// Threads: one at a time. Reusable: Clear() keeps the memory.
class BatchDraft {
 public:
  template <typename Record>
  void Add(const Record& record) {
    ends_.push_back(0);
    EncodeRecord(record, bytes_);
    ends_.back() = bytes_.size();
  }
  void Clear() {
    bytes_.clear();
    ends_.clear();
  }

  size_t count() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  // What the batch takes in a group, header and padding included.
  uint64_t batch_bytes() const {
    return AlignUp(kBatchHeaderBytes + bytes_.size(), kBatchAlignment);
  }
  const std::string& bytes() const { return bytes_; }
  // The bytes of record `index`, header included.
  ByteView record(size_t index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return AsBytes(bytes_).subspan(begin, ends_[index] - begin);
  }
  // The record itself, viewing into this draft: valid until the draft changes.
  RawRecord raw(size_t index) const {
    const ByteView bytes = record(index);
    RawRecord raw{.header = {}, .fields = bytes.subspan(kRecordHeaderBytes)};
    std::memcpy(&raw.header, bytes.data(), sizeof raw.header);
    return raw;
  }
  // Drops the records for which `keep[index]` is false.
  void Keep(const std::vector<bool>& keep);

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

}  // namespace holdfast
