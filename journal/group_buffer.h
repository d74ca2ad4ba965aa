// GroupBuffer: the bytes of one group, from the first batch until their memory is used again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "journal/base/strong.h"
#include "journal/batch_draft.h"
#include "journal/format/frame.h"
#include "journal/format/record_ref.h"
#include "journal/io/aligned_buffer.h"

namespace holdfast {

// Its place is fixed when it is opened, so that a record's place is known as soon as it is added;
// checks are made when it is sealed. Threads: Add under the owner's lock; Seal without it, once
// nothing is added any more, beside Find
//          under it (they touch different bytes).
class GroupBuffer {
 public:
  // In memory that is somebody else's and starts at a multiple of kIoAlignment, or of its own.
  explicit GroupBuffer(ByteSpan memory) : bytes_(memory) {}
  explicit GroupBuffer(uint64_t capacity) : own_(capacity), bytes_(own_.span()) {}

  // Empties it and gives it a place. `room` = bytes from there to the end of the segment.
  void Open(const Life& life, uint64_t offset, uint64_t room);
  // As Open, for one block that is sealed already: a Link.
  void OpenSealed(const Life& life, uint64_t offset, ByteView block);

  // Whether a batch of that many bytes (padding included) still fits.
  bool Fits(uint64_t batch_bytes) const { return used_ + batch_bytes <= limit_; }
  // Copies the records of `draft`, which get the numbers from `first` on. Needs: it fits.
  RecordRef Add(const BatchDraft& draft, Lsn first);

  // Makes the checks and zeroes the padding. length, batches, records and first_lsn of `header` are
  // filled in here.
  void Seal(GroupHeader header, Epoch epoch);

  // Gives back memory of its own: what it held is found no more.
  void Forget();

  // The record `lsn` of the batch at `ref`; none if that batch is not in this group.
  std::optional<std::string> Find(const RecordRef& ref, Lsn lsn) const;

  bool empty() const { return batches_.empty(); }
  uint64_t capacity() const { return bytes_.size(); }
  ByteView memory() const { return bytes_; }
  bool owns_memory() const { return own_.size() > 0; }
  uint64_t offset() const { return offset_; }  // of the group in its segment
  uint64_t length() const { return AlignUp(used_, kBlockBytes); }
  uint64_t end() const { return offset_ + length(); }
  const Life& life() const { return life_; }
  // What is to be written at offset(). Needs: sealed.
  ByteView sealed() const { return memory().first(length()); }

 private:
  struct Batch {
    uint32_t place = 0;  // in the group
    uint32_t length = 0;
    Lsn first;
    uint16_t records = 0;
  };

  AlignedBuffer own_;
  ByteSpan bytes_;
  Life life_;
  uint64_t offset_ = 0;
  uint64_t used_ = 0;   // header, batches and their padding
  uint64_t limit_ = 0;  // of used_
  uint64_t records_ = 0;
  std::vector<Batch> batches_;
};

// The record number `index` of a batch's records, header and fields; a part of `records`.
// Errors: kDataLoss  there are not that many, or they do not parse
StatusOr<ByteView> NthRecord(ByteView records, uint64_t index);

}  // namespace holdfast
