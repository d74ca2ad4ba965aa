// HashIndex: key bytes to the place of a payload in the journal and a small fixed state.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "index/key_arena.h"
#include "index/page_array.h"
#include "journal/base/strong.h"
#include "journal/format/record_ref.h"

namespace holdfast {

// What is known of a key without reading its payload.
struct IndexState {
  RecordRef ref;  // of the batch that holds the payload
  // What the record that holds the payload takes in its batch, header included. Kept to within a
  // hundredth: Set rounds it down, always in the same way, and Get gives what was kept.
  uint32_t record_bytes = 0;
  Lsn payload_lsn;  // of the record that holds the payload
  Lsn state_lsn;    // of the newest record about the key
  uint64_t epoch = 0;
  int64_t due_ns = 0;
  uint32_t attempt = 0;

  bool operator==(const IndexState&) const = default;
};

// Open addressing over (fingerprint, slot) in 256 partitions that grow by a fifth, each by itself:
// no insert ever moves more than one partition, and memory never doubles. Slots lie in chunks that
// never move. A key keeps its slot until it is erased.
//
// A key costs kBytesPerKeyMax at most, besides its own bytes (rounded up to 4, with their length);
// one with an epoch, or a state_lsn that far beyond its payload_lsn, of 2^32 or more costs more.
// Threads: one at a time; the owner's lock covers snapshots too.
class HashIndex {
 public:
  using Slot = uint32_t;
  static constexpr Slot kNoSlot = UINT32_MAX;
  static constexpr size_t kKeyBytesMax = KeyArena::kKeyBytesMax;

  using HashFunction = uint64_t (*)(std::string_view key, uint64_t seed);
  static uint64_t DefaultHash(std::string_view key, uint64_t seed);

  // Full keys are always compared, so a bad `hash` costs time only. An unpredictable `seed` keeps
  // whoever chooses keys from choosing collisions.
  explicit HashIndex(uint64_t seed, HashFunction hash = DefaultHash) : seed_(seed), hash_(hash) {}
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;

  // kNoSlot if there is no such key.
  Slot Find(std::string_view key) const;

  struct Found {
    Slot slot;
    bool inserted;  // the key is new and its state all zero
  };
  // Needs: !full(), key.size() <= kKeyBytesMax
  Found FindOrInsert(std::string_view key) { return FindOrInsert(key, HashOf(key)); }

  // For many keys at once: make room first, hash a block of keys and Touch them, then insert them.
  // Makes room for `keys` in all, of about `key_bytes` each, so that adding them moves nothing and
  // seldom waits for memory.
  void Reserve(uint64_t keys, size_t key_bytes);
  uint64_t HashOf(std::string_view key) const { return hash_(key, seed_); }
  // Brings the places where searches for them begin into the cache, side by side. Real reads: the
  // processors measured drop a good part of prefetches that miss the TLB.
  void Touch(std::span<const uint64_t> hashes) const;
  // Needs: as above, and `hash` is HashOf(key)
  Found FindOrInsert(std::string_view key, uint64_t hash);

  // Begins to fetch the place where a search for `key` will begin, and does not wait for it. Only
  // worth its price where the tables are too large for a cache.
  // Threads: any, beside the one that changes the index: a place that is outdated by then is
  // fetched in vain.
  void Prefetch(std::string_view key) const;
  bool beyond_cache() const { return beyond_cache_.load(std::memory_order_relaxed); }

  // Forgets everything and gives its memory back.
  // Needs: there is no Snapshot
  void Clear();

  bool IsLive(Slot slot) const {
    return slot < slots_used_ && (live_[slot / 64] >> (slot % 64) & 1) != 0;
  }
  // Needs: `slot` is live, here and below. A view of a key is valid until the key is erased.
  void Erase(Slot slot);
  IndexState Get(Slot slot) const;
  // Parts of Get(slot), for the price of those alone.
  Lsn StateLsn(Slot slot) const {
    const PackedSlot& packed = At(slot);
    return packed.state_ahead == kElsewhere ? Get(slot).state_lsn
                                            : Lsn(packed.payload_lsn + packed.state_ahead);
  }
  Lsn PayloadLsn(Slot slot) const { return Lsn(At(slot).payload_lsn); }
  struct Share {
    SegmentId segment;
    uint32_t record_bytes = 0;
  };
  Share PayloadShare(Slot slot) const;
  void Set(Slot slot, const IndexState& state);
  std::string_view KeyAt(Slot slot) const { return keys_.Get(At(slot).key); }

  uint64_t size() const { return size_; }
  // No slot from here on is live.
  Slot slots_end() const { return slots_used_; }
  // No room for the keys of another batch.
  bool full() const { return size_ >= kKeysMax || keys_.bytes() >= KeyArena::kBytesMax; }
  // Taken from the system so far, for `size()` keys or more.
  uint64_t memory_bytes() const;

  // The keys that were there when it was made and were not erased since. Slots of keys that are
  // erased leave it at once, so it never shows a key that came later.
  class Snapshot {
   public:
    // Borrows `index`, which outlives it.
    explicit Snapshot(HashIndex& index);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

    // The next slot, in order of slot number; kNoSlot at the end.
    Slot Next();
    // Whether a slot that Next() gave is still that of the same key.
    bool Has(Slot slot) const { return (live_[slot / 64] >> (slot % 64) & 1) != 0; }

   private:
    friend class HashIndex;
    HashIndex& index_;
    std::vector<uint64_t> live_;  // one bit a slot
    size_t next_ = 0;             // slots below were given or skipped
  };

 private:
  // IndexState with a key, packed: 4-byte aligned, and read and written by value only.
#pragma pack(push, 4)
  struct PackedSlot {
    uint64_t payload_lsn;
    uint32_t state_ahead;  // state_lsn - payload_lsn; kElsewhere: it and the epoch are in `wide_`
    uint32_t epoch;
    int64_t due_ns;
    uint32_t segment;
    uint64_t place;  // offset, length and record_bytes: see PackPlace
    uint32_t attempt;
    uint32_t key;  // free slots: the next free one
  };
#pragma pack(pop)
  static_assert(sizeof(PackedSlot) == 44);
  static constexpr uint32_t kElsewhere = UINT32_MAX;
  // What of a state does not fit into its slot.
  struct Wide {
    Lsn state_lsn;
    uint64_t epoch = 0;
  };

  // Where the entries of a partition lie, for Prefetch: of two moments perhaps, so nothing is read
  // there.
  struct Shape {
    std::atomic<uintptr_t> entries = 0;
    std::atomic<uint32_t> capacity = 0;
  };

  // Entry: fingerprint in the high half, slot + 1 in the low half; 0 is empty.
  struct Partition {
    PageArray<uint64_t> entries;
    uint32_t capacity = 0;
    uint32_t used = 0;
  };

  static constexpr size_t kPartitions = 256;
  static constexpr size_t kSlotsPerChunk = 65'536;  // its pages are taken as they are used
  // Tables grow all at about the same time, in the same order: those of one region end together.
  static constexpr size_t kTableSpaceBytes = size_t{16} << 20;
  static constexpr size_t kSlotSpaceBytes = size_t{64} << 20;
  static constexpr uint64_t kKeysMax = uint64_t{1} << 31;
  // A partition is at most 13/16 full, and after it grew by 6/5 at least 65/96.
  static constexpr uint32_t kFullOf16 = 13;
  // Tables of so many entries are not all in the cache: 1 MiB together.
  static constexpr uint32_t kPrefetchedMin = 512;

 public:
  static constexpr double kBytesPerKeyMax =
      sizeof(PackedSlot) + 1.0 / 8 + sizeof(uint64_t) / (kFullOf16 / 16.0 / 1.2);
  static_assert(kBytesPerKeyMax <= 56);

 private:
  static uint32_t Fingerprint(uint64_t hash) { return static_cast<uint32_t>(hash >> 24); }
  static uint32_t Home(uint32_t fingerprint, uint32_t capacity) {
    return static_cast<uint32_t>((uint64_t{fingerprint} * capacity) >> 32);
  }
  static void Place(Partition& partition, uint64_t entry);
  void Grow(Partition& partition);
  void Publish(size_t number);
  void Grow(Partition& partition, uint32_t capacity);

  PackedSlot& At(Slot slot) const { return chunks_[slot / kSlotsPerChunk][slot % kSlotsPerChunk]; }
  Slot TakeSlot();

  const uint64_t seed_;
  const HashFunction hash_;
  std::array<Partition, kPartitions> partitions_;
  std::array<Shape, kPartitions> shapes_;  // of partitions_
  std::atomic<bool> beyond_cache_ = false;
  PageSpace table_space_{kTableSpaceBytes};
  PageSpace slot_space_{kSlotSpaceBytes};
  std::vector<PageArray<PackedSlot>> chunks_;
  absl::flat_hash_map<Slot, Wide> wide_;
  KeyArena keys_;
  std::vector<uint64_t> live_;  // one bit a slot
  uint64_t size_ = 0;
  Slot slots_used_ = 0;  // slots below were handed out at least once
  Slot free_ = kNoSlot;  // first of the chain of free slots
  std::vector<Snapshot*> snapshots_;
  // What Find gave last, and its hash: a removal looks its key up twice and then erases it.
  mutable Slot found_ = kNoSlot;
  mutable uint64_t found_hash_ = 0;
};

}  // namespace holdfast
