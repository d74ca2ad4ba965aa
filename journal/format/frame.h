// Frame: how groups and batches lie in a segment, and the only code that builds and judges them
// (FORMAT.md §4). Pure: bytes in, verdict out.
//
// A group is one 4 KiB-aligned write: a 64-byte header, batches from +64 on, zeros to the end.
// A batch is atomic: a 32-byte header and its records, at a multiple of 8.
#pragma once

#include <cstdint>
#include <optional>

#include "journal/base/bytes.h"
#include "journal/base/strong.h"

namespace holdfast {

inline constexpr uint64_t kBlockBytes = 4096;
inline constexpr size_t kGroupHeaderBytes = 64;
inline constexpr size_t kBatchHeaderBytes = 32;
inline constexpr size_t kBatchAlignment = 8;
inline constexpr size_t kBatchRecordsMax = 65'535;
inline constexpr uint64_t kGroupBytesMax = uint64_t{32} << 20;

// Identity of one life of a segment file: what every check in it is seeded with, besides its place.
struct Life {
  uint64_t salt = 0;  // of the store; never printed
  uint32_t segment = 0;
  uint64_t stamp = 0;  // hash(salt, epoch, counter, segment): never repeats
};
// Seed of a check at `offset` in that life.
uint64_t SeedAt(const Life& life, uint64_t offset);
uint64_t MakeLifeStamp(uint64_t salt, Epoch epoch, uint64_t counter, uint32_t segment);

// Layout: life stamp u64, length u32, flags u16, batches u16 (saturated), records u32, reserved u32
// = 0, first LSN u64, synced u64, promised u64, engine time i64, check u64 (of the 56 bytes
// before).
struct GroupHeader {
  static constexpr uint16_t kLink = 1;  // holds a Link instead of batches

  uint32_t length = 0;  // of the group, a multiple of 4 KiB
  uint16_t flags = 0;
  uint16_t batches = 0;
  uint32_t records = 0;
  Lsn first_lsn;  // none in a Link group
  Lsn synced;     // S when it was built
  Lsn promised;   // up to here OK may have been given when it was built
  int64_t engine_ns = 0;
  bool is_link() const { return (flags & kLink) != 0; }
};

// Layout: length u32, header check u32, first LSN u64, records u16, flags u16 = 0, epoch u32,
// payload check u64. The header check is the low half of the checksum of the header with that field
// zero; the payload check is of the records, seeded with the batch's place too.
struct BatchHeader {
  uint32_t length = 0;  // header included, padding to 8 not included
  Lsn first_lsn;
  uint16_t records = 0;
  uint32_t epoch = 0;
  Lsn last_lsn() const { return first_lsn + (records - 1u); }
};

// Writes the header at the start of `group`, which is the whole group, batches sealed already.
void SealGroup(ByteSpan group, const GroupHeader& header, const Life& life, uint64_t offset);
// Writes the header at the start of `batch`, whose records stand in place already, length exact.
void SealBatch(ByteSpan batch, const BatchHeader& header, const Life& life, uint64_t offset);

enum class Shape {
  kValid,
  kStampedBad,  // bears this life's stamp, but fails
  kNoStamp,     // zeros, or an older life
};

struct GroupView {
  Shape shape = Shape::kNoStamp;
  GroupHeader header;  // only if kValid
};
// Judges the 64 header bytes at `offset`. `room` = bytes from `offset` to the end of the segment; a
// valid header never claims more.
GroupView ReadGroupHeader(ByteView bytes, const Life& life, uint64_t offset, uint64_t room);

struct BatchView {
  BatchHeader header;
  uint64_t offset = 0;  // in the segment file
  ByteView records;     // borrowed from the group's bytes
};

// The batch that starts at bytes[0], which is `offset` in that life's segment: for whoever knows
// its place. `bytes` may go on behind it. None: it fails a check.
std::optional<BatchView> ReadBatch(ByteView bytes, const Life& life, uint64_t offset);

// Walks the batches of one group whose bytes are in memory, from +64 on. Not for Link groups.
class BatchCursor {
 public:
  // `group` starts at `offset` in the segment; it is borrowed. It is header.length long, or shorter
  // where the file was cut. Of a header that fails, the batches can still be read: HeaderFor() in
  // its place.
  BatchCursor(ByteView group, const GroupHeader& header, const Life& life, uint64_t offset);
  // Stands for the header of a group that should start with `first_lsn`: `length` bytes are looked
  // through, for as many records as there are. Its end is then seen as kBad.
  static GroupHeader HeaderFor(Lsn first_lsn, uint64_t length);

  enum class Step {
    kBatch,  // batch() is valid and followed the one before it
    kEnd,    // all records that the group header counts were passed, or Resync() found nothing more
    kBad,  // the bytes at bad_offset() are not the batch with next_lsn(); Resync() may find another
  };
  Step Next();
  const BatchView& batch() const { return batch_; }
  uint64_t bad_offset() const { return bad_offset_; }
  // LSN that the next batch must start with.
  Lsn next_lsn() const { return next_lsn_; }

  // After kBad: searches the following multiples of 8 for a batch whose header passes, whose LSNs
  // are not below next_lsn() and inside what the group counts, and whose payload passes. Then
  // batch() is it; the gap in LSNs names what was lost. False: nothing more in this group; what is
  // missing from next_lsn() on is lost.
  bool Resync();
  // After kEnd: whether the rest of the group and what lies between its batches is all zeros.
  bool PaddingIsZero() const;

 private:
  std::optional<BatchView> Read(uint64_t place) const;
  void Take(const BatchView& batch);

  const ByteView group_;
  const uint64_t life_seed_;
  const uint32_t segment_;
  const uint64_t offset_;  // of the group in the segment
  const Lsn first_lsn_;
  const uint64_t records_;              // in the group
  uint64_t place_ = kGroupHeaderBytes;  // in the group
  Lsn next_lsn_;
  uint64_t bad_offset_ = 0;
  bool exhausted_ = false;
  bool padding_is_zero_ = true;
  BatchView batch_;
};

}  // namespace holdfast
