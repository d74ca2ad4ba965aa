// PendingWindow: the flights of one client in one partition, by offset. Each is *pending* until its
// end is in the journal, then *ending* until that is durable. The lowest of both kinds is known at
// once, however many end out of order above it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "runtime/slot_array.h"

namespace holdfast {

// Threads: one at a time.
class PendingWindow {
 public:
  // Pending from now on. Needs: there is none at this offset.
  void Add(uint64_t offset, Slot slot);
  // Its end goes into the journal, or came to nothing after all. Nothing happens if there is none.
  void BeginEnd(uint64_t offset);
  void AbandonEnd(uint64_t offset);
  // Nothing happens if there is none.
  void Remove(uint64_t offset);

  // kNone: there is none.
  Slot Find(uint64_t offset) const;
  // Visits all slots, by offset. `visit` must not change the window.
  template <typename Visit>  // void(Slot)
  void ForEach(Visit visit) const {
    for (const auto& [number, block] : blocks_) {
      for (const Slot slot : block.slots) visit(slot);
    }
  }
  // Of those that are pending.
  std::optional<uint64_t> lowest_pending() const;
  // Of all.
  std::optional<uint64_t> lowest() const;

 private:
  static constexpr uint64_t kBits = 32;
  // Thirty-two offsets. Four flights fit in; a window that is sparse takes little more for each
  // than one that is dense.
  struct Block {
    uint32_t here = 0;                   // bits of the flights that are in it: never none
    uint32_t pending = 0;                // of those among them that are pending
    absl::InlinedVector<Slot, 4> slots;  // of the flights, in the order of their offsets
  };
  static uint32_t BitOf(uint64_t offset) { return uint32_t{1} << (offset % kBits); }
  // Where in its slots a flight is, or belongs.
  static size_t PlaceIn(const Block& block, uint64_t offset) {
    return static_cast<size_t>(std::popcount(block.here & (BitOf(offset) - 1u)));
  }
  static uint64_t Lowest(uint64_t block, uint32_t bits) {
    return block * kBits + static_cast<uint64_t>(std::countr_zero(bits));
  }

  absl::btree_map<uint64_t, Block> blocks_;
  mutable uint64_t pending_from_ = 0;  // no block below it has pending ones
};

}  // namespace holdfast
