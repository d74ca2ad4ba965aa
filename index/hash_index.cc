#include "index/hash_index.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "journal/base/check.h"
#include "journal/base/checksum.h"

namespace holdfast {
namespace {

// 64 bits of place, from the low end: offset / 8, length, record_bytes as a small float.
constexpr uint32_t kOffsetBits = 27;  // of a batch: a multiple of 8 below 1 GiB
constexpr uint32_t kLengthBits = 25;  // exact: readers compare it; a group is 32 MiB at most
constexpr uint32_t kMantissaBits = 7;
constexpr uint32_t kExponentBits = 5;
static_assert(kOffsetBits + kLengthBits + kMantissaBits + kExponentBits == 64);

// Exact below 256, rounded down to 8 significant bits from there on.
uint64_t PackBytes(uint32_t bytes) {
  const auto width = static_cast<uint32_t>(std::bit_width(bytes));
  if (width <= kMantissaBits) return bytes;
  const uint32_t shift = width - kMantissaBits - 1;
  const uint32_t mantissa = (bytes >> shift) & ((1u << kMantissaBits) - 1);
  return uint64_t{shift + 1} << kMantissaBits | mantissa;
}
uint32_t UnpackBytes(uint64_t packed) {
  const auto mantissa = static_cast<uint32_t>(packed) & ((1u << kMantissaBits) - 1);
  const auto exponent = static_cast<uint32_t>(packed >> kMantissaBits);
  return exponent == 0 ? mantissa : (mantissa | 1u << kMantissaBits) << (exponent - 1);
}

uint64_t PackPlace(const RecordRef& ref, uint32_t record_bytes) {
  CHECK(ref.offset % 8 == 0 && ref.offset >> 3 < 1u << kOffsetBits);
  CHECK(ref.length < 1u << kLengthBits);
  return ref.offset >> 3 | uint64_t{ref.length} << kOffsetBits |
         PackBytes(record_bytes) << (kOffsetBits + kLengthBits);
}
RecordRef UnpackRef(uint32_t segment, uint64_t place) {
  return {.segment = segment,
          .offset = static_cast<uint32_t>(place & ((1u << kOffsetBits) - 1)) << 3,
          .length = static_cast<uint32_t>(place >> kOffsetBits) & ((1u << kLengthBits) - 1)};
}

}  // namespace

uint64_t HashIndex::DefaultHash(std::string_view key, uint64_t seed) {
  return Checksum(AsBytes(key), seed);
}

HashIndex::Slot HashIndex::Find(std::string_view key) const {
  if (found_ != kNoSlot && KeyAt(found_) == key) return found_;
  const uint64_t hash = HashOf(key);
  const Partition& partition = partitions_[hash >> 56];
  if (partition.used == 0) return kNoSlot;
  const uint32_t fingerprint = Fingerprint(hash);
  const uint64_t* const entries = partition.entries.get();
  for (uint32_t i = Home(fingerprint, partition.capacity); entries[i] != 0;) {
    if (entries[i] >> 32 == fingerprint) {
      const Slot slot = static_cast<Slot>(entries[i]) - 1;
      if (KeyAt(slot) == key) {
        found_ = slot;
        found_hash_ = hash;
        return slot;
      }
    }
    if (++i == partition.capacity) i = 0;
  }
  return kNoSlot;
}

HashIndex::Found HashIndex::FindOrInsert(std::string_view key, uint64_t hash) {
  Partition& partition = partitions_[hash >> 56];
  const uint32_t fingerprint = Fingerprint(hash);
  uint32_t place = 0;  // the empty one at which the search ended
  if (partition.capacity != 0) {
    const uint64_t* const entries = partition.entries.get();
    const uint32_t capacity = partition.capacity;
    for (place = Home(fingerprint, capacity); entries[place] != 0;) {
      if (entries[place] >> 32 == fingerprint) {
        const Slot slot = static_cast<Slot>(entries[place]) - 1;
        if (KeyAt(slot) == key) return {slot, false};
      }
      if (++place == capacity) place = 0;
    }
  }
  const bool full = uint64_t{partition.used} * 16 >= uint64_t{partition.capacity} * kFullOf16;
  if (full) Grow(partition);
  const Slot slot = TakeSlot();
  At(slot) = PackedSlot{.key = keys_.Add(key)};
  const uint64_t entry = uint64_t{fingerprint} << 32 | (slot + 1);
  if (full) {
    Place(partition, entry);
  } else {
    partition.entries[place] = entry;
  }
  ++partition.used;
  ++size_;
  return {slot, true};
}

// Keys fall into partitions by chance: nearly every one gets its mean and less than four standard
// deviations. The others grow once.
void HashIndex::Reserve(uint64_t keys, size_t key_bytes) {
  keys = std::min(keys, kKeysMax);
  const uint64_t mean = keys / kPartitions;
  const uint64_t most = mean + 4 * static_cast<uint64_t>(std::sqrt(static_cast<double>(mean))) + 8;
  const auto capacity = static_cast<uint32_t>(most * 16 / kFullOf16 + 1);
  if (keys > size_) {
    table_space_.Reserve(kPartitions * capacity * sizeof(uint64_t));
    slot_space_.Reserve((keys - size_) * sizeof(PackedSlot));
    keys_.Reserve(keys - size_, key_bytes);
  }
  for (Partition& partition : partitions_) {
    if (partition.capacity < capacity) Grow(partition, capacity);
  }
}

void HashIndex::Touch(std::span<const uint64_t> hashes) const {
  uint64_t seen = 0;
  for (const uint64_t hash : hashes) {
    const Partition& partition = partitions_[hash >> 56];
    if (partition.capacity == 0) continue;
    seen ^= partition.entries[Home(Fingerprint(hash), partition.capacity)];
  }
  asm volatile("" : : "r"(seen));  // so that the reads are made
}

// Every third search goes on into the next line, at the load that the tables have.
void HashIndex::Prefetch(std::string_view key) const {
  const uint64_t hash = HashOf(key);
  const Shape& shape = shapes_[hash >> 56];
  const uint64_t place = Home(Fingerprint(hash), shape.capacity.load(std::memory_order_relaxed));
  const uintptr_t begin = shape.entries.load(std::memory_order_relaxed) + place * sizeof(uint64_t);
  __builtin_prefetch(reinterpret_cast<const void*>(begin));
  __builtin_prefetch(reinterpret_cast<const void*>(begin + kCacheLine));
}

void HashIndex::Publish(size_t number) {
  const Partition& partition = partitions_[number];
  Shape& shape = shapes_[number];
  shape.entries.store(reinterpret_cast<uintptr_t>(partition.entries.get()),
                      std::memory_order_relaxed);
  shape.capacity.store(partition.capacity, std::memory_order_relaxed);
  if (partition.capacity >= kPrefetchedMin) beyond_cache_.store(true, std::memory_order_relaxed);
}

void HashIndex::Clear() {
  CHECK(snapshots_.empty());
  for (size_t number = 0; number < kPartitions; ++number) {
    partitions_[number] = Partition();
    Publish(number);
  }
  beyond_cache_.store(false, std::memory_order_relaxed);
  chunks_.clear();
  chunks_.shrink_to_fit();
  table_space_ = PageSpace(kTableSpaceBytes);
  slot_space_ = PageSpace(kSlotSpaceBytes);
  wide_ = {};
  keys_ = KeyArena();
  live_ = std::vector<uint64_t>();
  size_ = 0;
  slots_used_ = 0;
  free_ = kNoSlot;
  found_ = kNoSlot;
}

void HashIndex::Erase(Slot slot) {
  DCHECK(IsLive(slot));
  const uint64_t hash = slot == found_ ? found_hash_ : HashOf(KeyAt(slot));
  if (slot == found_) found_ = kNoSlot;
  Partition& partition = partitions_[hash >> 56];
  uint64_t* const entries = partition.entries.get();
  const uint32_t capacity = partition.capacity;
  const uint32_t fingerprint = Fingerprint(hash);
  const uint64_t entry = uint64_t{fingerprint} << 32 | (slot + 1);
  uint32_t hole = Home(fingerprint, capacity);
  while (entries[hole] != entry) {
    CHECK(entries[hole] != 0);
    if (++hole == capacity) hole = 0;
  }
  // Closes the hole with entries behind it that may stand there, so that no probe ends too early.
  uint32_t distance = 0;  // from `hole` to `i`
  for (uint32_t i = hole;;) {
    if (++i == capacity) i = 0;
    ++distance;
    if (entries[i] == 0) break;
    const uint32_t home = Home(static_cast<uint32_t>(entries[i] >> 32), capacity);
    const uint32_t displaced = i >= home ? i - home : i + capacity - home;
    if (displaced >= distance) {
      entries[hole] = entries[i];
      hole = i;
      distance = 0;
    }
  }
  entries[hole] = 0;
  --partition.used;
  --size_;

  PackedSlot& packed = At(slot);
  if (packed.state_ahead == kElsewhere) wide_.erase(slot);
  keys_.Remove(packed.key);
  packed.key = free_;
  free_ = slot;
  const uint64_t bit = uint64_t{1} << (slot % 64);
  live_[slot / 64] &= ~bit;
  for (Snapshot* snapshot : snapshots_) {
    if (slot / 64 < snapshot->live_.size()) snapshot->live_[slot / 64] &= ~bit;
  }
}

IndexState HashIndex::Get(Slot slot) const {
  DCHECK(IsLive(slot));
  const PackedSlot& packed = At(slot);
  IndexState state{.ref = UnpackRef(packed.segment, packed.place),
                   .record_bytes = UnpackBytes(packed.place >> (kOffsetBits + kLengthBits)),
                   .payload_lsn = Lsn(packed.payload_lsn),
                   .state_lsn = Lsn(packed.payload_lsn + packed.state_ahead),
                   .epoch = packed.epoch,
                   .due_ns = packed.due_ns,
                   .attempt = packed.attempt};
  if (packed.state_ahead == kElsewhere) {
    const Wide& wide = wide_.find(slot)->second;
    state.state_lsn = wide.state_lsn;
    state.epoch = wide.epoch;
  }
  return state;
}

HashIndex::Share HashIndex::PayloadShare(Slot slot) const {
  const PackedSlot& packed = At(slot);
  return {.segment = SegmentId(packed.segment),
          .record_bytes = UnpackBytes(packed.place >> (kOffsetBits + kLengthBits))};
}

void HashIndex::Set(Slot slot, const IndexState& state) {
  DCHECK(IsLive(slot));
  PackedSlot& packed = At(slot);
  const uint64_t ahead = state.state_lsn.value() - state.payload_lsn.value();
  const bool wide = ahead >= kElsewhere || state.epoch > UINT32_MAX;
  if (wide) {
    wide_.insert_or_assign(slot, Wide{.state_lsn = state.state_lsn, .epoch = state.epoch});
  } else if (packed.state_ahead == kElsewhere) {
    wide_.erase(slot);
  }
  packed.payload_lsn = state.payload_lsn.value();
  packed.state_ahead = wide ? kElsewhere : static_cast<uint32_t>(ahead);
  packed.epoch = static_cast<uint32_t>(state.epoch);
  packed.due_ns = state.due_ns;
  packed.segment = state.ref.segment;
  packed.place = PackPlace(state.ref, state.record_bytes);
  packed.attempt = state.attempt;
}

uint64_t HashIndex::memory_bytes() const {
  uint64_t bytes = keys_.bytes() + slots_used_ * sizeof(PackedSlot) +
                   wide_.capacity() * (sizeof(std::pair<Slot, Wide>) + 1) +
                   live_.capacity() * sizeof(uint64_t);
  for (const Partition& partition : partitions_) bytes += partition.capacity * sizeof(uint64_t);
  return bytes;
}

void HashIndex::Place(Partition& partition, uint64_t entry) {
  uint32_t i = Home(static_cast<uint32_t>(entry >> 32), partition.capacity);
  while (partition.entries[i] != 0) {
    if (++i == partition.capacity) i = 0;
  }
  partition.entries[i] = entry;
}

void HashIndex::Grow(Partition& partition) {
  Grow(partition, std::max(uint32_t{16}, partition.capacity + partition.capacity / 5));
}

void HashIndex::Grow(Partition& partition, uint32_t capacity) {
  Partition grown;
  grown.capacity = capacity;
  grown.used = partition.used;
  grown.entries = PageArray<uint64_t>(grown.capacity, table_space_);
  for (uint32_t i = 0; i < partition.capacity; ++i) {
    if (partition.entries[i] != 0) Place(grown, partition.entries[i]);
  }
  partition = std::move(grown);
  Publish(static_cast<size_t>(&partition - partitions_.data()));
}

HashIndex::Slot HashIndex::TakeSlot() {
  Slot slot = free_;
  if (slot != kNoSlot) {
    free_ = At(slot).key;
  } else {
    slot = slots_used_++;
    if (slot / kSlotsPerChunk == chunks_.size()) chunks_.emplace_back(kSlotsPerChunk, slot_space_);
    if (slot / 64 == live_.size()) live_.push_back(0);
  }
  live_[slot / 64] |= uint64_t{1} << (slot % 64);
  return slot;
}

HashIndex::Snapshot::Snapshot(HashIndex& index) : index_(index), live_(index.live_) {
  index_.snapshots_.push_back(this);
}

HashIndex::Snapshot::~Snapshot() { std::erase(index_.snapshots_, this); }

HashIndex::Slot HashIndex::Snapshot::Next() {
  while (next_ < live_.size() * 64) {
    const uint64_t word = live_[next_ / 64] >> (next_ % 64);
    if (word == 0) {
      next_ = (next_ / 64 + 1) * 64;
      continue;
    }
    const size_t slot = next_ + static_cast<size_t>(std::countr_zero(word));
    next_ = slot + 1;
    return static_cast<Slot>(slot);
  }
  return kNoSlot;
}

}  // namespace holdfast
