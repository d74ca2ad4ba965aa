// BatchDraft: the records of one future batch, encoded by the caller before the sequencer is taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/format/frame.h"
#include "journal/format/records.h"

namespace holdfast {

// Threads: one at a time. Reusable: Clear() keeps the memory.
class BatchDraft {
 public:
  template <typename Record>
  void Add(const Record& record) {
    char* const place = Room(EncodedBytesMax(record));
    ends_.push_back(used_);
    used_ = static_cast<size_t>(EncodeRecordAt(record, place) - memory_.data());
    ends_.back() = used_;
  }
  void Clear() {
    used_ = 0;
    ends_.clear();
  }
  // Takes the last record back. Needs: !empty()
  void DropLast() {
    ends_.pop_back();
    used_ = ends_.empty() ? 0 : ends_.back();
  }

  size_t count() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  // What the batch takes in a group, header and padding included.
  uint64_t batch_bytes() const { return AlignUp(kBatchHeaderBytes + used_, kBatchAlignment); }
  std::string_view bytes() const { return {memory_.data(), used_}; }
  // What Clear() keeps.
  size_t memory_bytes() const { return memory_.size(); }
  // The bytes of record `index`, header included.
  ByteView record(size_t index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return AsBytes(bytes()).subspan(begin, ends_[index] - begin);
  }
  // The record itself, viewing into this draft: valid until the draft changes.
  RawRecord raw(size_t index) const {
    const ByteView bytes = record(index);
    RawRecord raw{.header = {}, .fields = bytes.subspan(kRecordHeaderBytes)};
    std::memcpy(&raw.header, bytes.data(), sizeof raw.header);
    return raw;
  }
  // Takes out the records of these numbers, which rise.
  void Drop(const std::vector<size_t>& dropped);

 private:
  // Memory for so many bytes behind those in use.
  char* Room(size_t bytes) {
    if (memory_.size() - used_ < bytes) memory_.resize(std::max(memory_.size() * 2, used_ + bytes));
    return memory_.data() + used_;
  }

  std::string memory_;  // as long as what it can hold, so that only growth fills it with zeros
  size_t used_ = 0;
  std::vector<size_t> ends_;
};

}  // namespace holdfast
