#include "journal/format/frame.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "journal/base/check.h"
#include "journal/base/checksum.h"

namespace holdfast {
namespace {

// The headers as they lie on disk.
struct GroupBytes {
  uint64_t stamp;
  uint32_t length;
  uint16_t flags;
  uint16_t batches;
  uint32_t records;
  uint32_t reserved;
  uint64_t first_lsn;
  uint64_t synced;
  uint64_t promised;
  int64_t engine_ns;
  uint64_t check;
};
static_assert(sizeof(GroupBytes) == kGroupHeaderBytes);
static_assert(offsetof(GroupBytes, first_lsn) == 24 && offsetof(GroupBytes, check) == 56);

struct BatchBytes {
  uint32_t length;
  uint32_t header_check;
  uint64_t first_lsn;
  uint16_t records;
  uint16_t flags;
  uint32_t epoch;
  uint64_t payload_check;
};
static_assert(sizeof(BatchBytes) == kBatchHeaderBytes);
static_assert(offsetof(BatchBytes, records) == 16 && offsetof(BatchBytes, payload_check) == 24);

constexpr uint64_t kRecordBytesMin = 8;  // a record header

// The finaliser of splitmix64: every bit of the result depends on every bit of `value`.
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// The part of a seed that is the same everywhere in one life.
uint64_t LifeSeed(const Life& life) { return Mix(Mix(life.salt) ^ life.stamp); }
uint64_t PlaceSeed(uint64_t life_seed, uint32_t segment, uint64_t offset) {
  return Mix(life_seed ^ ((uint64_t{segment} << 32) + offset));
}

uint32_t HeaderCheck(BatchBytes header, uint64_t seed) {
  header.header_check = 0;
  return static_cast<uint32_t>(
      Checksum(AsBytes({reinterpret_cast<const char*>(&header), sizeof header}), seed));
}
uint64_t GroupCheck(ByteView bytes, uint64_t seed) {
  return Checksum(bytes.first(offsetof(GroupBytes, check)), seed);
}

bool AllZero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// What a group of batches, or a Link group, must say of itself.
bool IsConsistent(const GroupHeader& header) {
  if ((header.flags & ~GroupHeader::kLink) != 0) return false;
  if (header.length < kBlockBytes || header.length > kGroupBytesMax) return false;
  if (!IsAligned(header.length, kBlockBytes)) return false;
  if (header.is_link()) return header.batches == 0 && header.records == 0 && !header.first_lsn;
  return header.batches > 0 && header.records >= header.batches && header.first_lsn &&
         header.synced <= header.promised && header.promised < header.first_lsn;
}

// The batch at bytes[0] if its LSNs are not below `lsn_min` and its checks pass.
std::optional<BatchView> ReadBatchWith(ByteView bytes, uint64_t seed, uint64_t offset,
                                       Lsn lsn_min) {
  if (bytes.size() < kBatchHeaderBytes) return std::nullopt;
  BatchBytes raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.length < kBatchHeaderBytes || raw.length > bytes.size() || raw.records == 0) {
    return std::nullopt;  // most places that are none end here, before a hash is made
  }
  if (raw.header_check != HeaderCheck(raw, seed) || raw.flags != 0) return std::nullopt;
  if (raw.length < kBatchHeaderBytes + raw.records * kRecordBytesMin) return std::nullopt;
  if (raw.first_lsn < lsn_min.value() || raw.first_lsn + raw.records < raw.first_lsn) {
    return std::nullopt;
  }
  const ByteView records = bytes.subspan(kBatchHeaderBytes, raw.length - kBatchHeaderBytes);
  if (raw.payload_check != Checksum(records, seed)) return std::nullopt;
  return BatchView{.header = {.length = raw.length,
                              .first_lsn = Lsn(raw.first_lsn),
                              .records = raw.records,
                              .epoch = raw.epoch},
                   .offset = offset,
                   .records = records};
}

}  // namespace

uint64_t SeedAt(const Life& life, uint64_t offset) {
  return PlaceSeed(LifeSeed(life), life.segment, offset);
}

uint64_t MakeLifeStamp(uint64_t salt, Epoch epoch, uint64_t counter, uint32_t segment) {
  const uint64_t stamp = Mix(Mix(Mix(Mix(salt) ^ epoch.value()) ^ counter) ^ segment);
  return stamp != 0 ? stamp : 1;  // zeros never look like a stamp
}

void SealGroup(ByteSpan group, const GroupHeader& header, const Life& life, uint64_t offset) {
  CHECK(life.stamp != 0);
  CHECK(IsAligned(offset, kBlockBytes));
  CHECK(group.size() == header.length);
  CHECK(IsConsistent(header));
  GroupBytes bytes{.stamp = life.stamp,
                   .length = header.length,
                   .flags = header.flags,
                   .batches = header.batches,
                   .records = header.records,
                   .reserved = 0,
                   .first_lsn = header.first_lsn.value(),
                   .synced = header.synced.value(),
                   .promised = header.promised.value(),
                   .engine_ns = header.engine_ns,
                   .check = 0};
  std::memcpy(group.data(), &bytes, sizeof bytes);
  bytes.check = GroupCheck(group, SeedAt(life, offset));
  std::memcpy(group.data() + offsetof(GroupBytes, check), &bytes.check, sizeof bytes.check);
}

void SealBatch(ByteSpan batch, const BatchHeader& header, const Life& life, uint64_t offset) {
  CHECK(IsAligned(offset, kBatchAlignment));
  CHECK(batch.size() == header.length);
  CHECK(header.records > 0);
  CHECK(header.length >= kBatchHeaderBytes + header.records * kRecordBytesMin);
  CHECK(header.first_lsn && header.last_lsn() >= header.first_lsn);
  const uint64_t seed = SeedAt(life, offset);
  BatchBytes bytes{.length = header.length,
                   .header_check = 0,
                   .first_lsn = header.first_lsn.value(),
                   .records = header.records,
                   .flags = 0,
                   .epoch = header.epoch,
                   .payload_check = Checksum(batch.subspan(kBatchHeaderBytes), seed)};
  bytes.header_check = HeaderCheck(bytes, seed);
  std::memcpy(batch.data(), &bytes, sizeof bytes);
}

GroupView ReadGroupHeader(ByteView bytes, const Life& life, uint64_t offset, uint64_t room) {
  GroupView view;
  uint64_t stamp = 0;
  if (bytes.size() < sizeof stamp) return view;
  std::memcpy(&stamp, bytes.data(), sizeof stamp);
  if (stamp != life.stamp || stamp == 0) return view;
  view.shape = Shape::kStampedBad;
  if (bytes.size() < kGroupHeaderBytes || !IsAligned(offset, kBlockBytes)) return view;

  GroupBytes raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.check != GroupCheck(bytes, SeedAt(life, offset)) || raw.reserved != 0) return view;
  const GroupHeader header{.length = raw.length,
                           .flags = raw.flags,
                           .batches = raw.batches,
                           .records = raw.records,
                           .first_lsn = Lsn(raw.first_lsn),
                           .synced = Lsn(raw.synced),
                           .promised = Lsn(raw.promised),
                           .engine_ns = raw.engine_ns};
  if (!IsConsistent(header) || header.length > room) return view;
  view.shape = Shape::kValid;
  view.header = header;
  return view;
}

std::optional<BatchView> ReadBatch(ByteView bytes, const Life& life, uint64_t offset) {
  return ReadBatchWith(bytes, SeedAt(life, offset), offset, Lsn());
}

BatchCursor::BatchCursor(ByteView group, const GroupHeader& header, const Life& life,
                         uint64_t offset)
    : group_(group.first(std::min<size_t>(group.size(), header.length))),
      life_seed_(LifeSeed(life)),
      segment_(life.segment),
      offset_(offset),
      first_lsn_(header.first_lsn),
      records_(header.records),
      next_lsn_(header.first_lsn) {}

GroupHeader BatchCursor::HeaderFor(Lsn first_lsn, uint64_t length) {
  return {.length = static_cast<uint32_t>(std::min(length, kGroupBytesMax)),
          .records = std::numeric_limits<uint32_t>::max(),
          .first_lsn = first_lsn};
}

BatchCursor::Step BatchCursor::Next() {
  if (exhausted_ || next_lsn_ - first_lsn_ >= records_) return Step::kEnd;
  std::optional<BatchView> read = Read(place_);
  if (!read.has_value() || read->header.first_lsn != next_lsn_) {
    bad_offset_ = offset_ + place_;
    return Step::kBad;
  }
  Take(*read);
  return Step::kBatch;
}

bool BatchCursor::Resync() {
  for (uint64_t place = place_ + kBatchAlignment; place < group_.size(); place += kBatchAlignment) {
    if (std::optional<BatchView> read = Read(place); read.has_value()) {
      place_ = place;
      Take(*read);
      return true;
    }
  }
  exhausted_ = true;
  return false;
}

bool BatchCursor::PaddingIsZero() const {
  return padding_is_zero_ && AllZero(group_.subspan(std::min<size_t>(place_, group_.size())));
}

void BatchCursor::Take(const BatchView& batch) {
  batch_ = batch;
  next_lsn_ = batch.header.last_lsn() + 1;
  const uint64_t end = place_ + batch.header.length;
  place_ = AlignUp(end, kBatchAlignment);
  const size_t padding_end = std::min<size_t>(place_, group_.size());
  padding_is_zero_ = padding_is_zero_ && AllZero(group_.subspan(end, padding_end - end));
}

std::optional<BatchView> BatchCursor::Read(uint64_t place) const {
  if (place > group_.size()) return std::nullopt;
  const std::optional<BatchView> read =
      ReadBatchWith(group_.subspan(place), PlaceSeed(life_seed_, segment_, offset_ + place),
                    offset_ + place, next_lsn_);
  if (!read.has_value()) return std::nullopt;
  const uint64_t index = read->header.first_lsn - first_lsn_;  // of its first record in the group
  if (index >= records_ || read->header.records > records_ - index) return std::nullopt;
  return read;
}

}  // namespace holdfast
