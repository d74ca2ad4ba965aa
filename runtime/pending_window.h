// PendingWindow: which offsets of one partition are pending for one client. The lowest is known at
// once, however many are acknowledged out of order above it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"

namespace holdfast {

// Threads: one at a time.
class PendingWindow {
 public:
  void Add(uint64_t offset) { blocks_[offset / kBits] |= BitOf(offset); }
  // Nothing happens if it is not pending.
  void Remove(uint64_t offset) {
    const auto block = blocks_.find(offset / kBits);
    if (block == blocks_.end()) return;
    block->second &= ~BitOf(offset);
    if (block->second == 0) blocks_.erase(block);
  }
  bool Has(uint64_t offset) const {
    const auto block = blocks_.find(offset / kBits);
    return block != blocks_.end() && (block->second & BitOf(offset)) != 0;
  }
  std::optional<uint64_t> lowest() const {
    if (blocks_.empty()) return std::nullopt;
    const auto& [block, bits] = *blocks_.begin();
    return block * kBits + static_cast<uint64_t>(std::countr_zero(bits));
  }

 private:
  static constexpr uint64_t kBits = 64;
  static uint64_t BitOf(uint64_t offset) { return uint64_t{1} << (offset % kBits); }

  absl::btree_map<uint64_t, uint64_t> blocks_;  // none is zero
};

}  // namespace holdfast
