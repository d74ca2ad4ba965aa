#include "runtime/pending_window.h"

#include <algorithm>

#include "journal/base/check.h"

namespace holdfast {

void PendingWindow::Add(uint64_t offset, Slot slot) {
  // Most come behind all others.
  Block& block = blocks_.try_emplace(blocks_.end(), offset / kBits)->second;
  CHECK((block.here & BitOf(offset)) == 0);
  block.slots.insert(block.slots.begin() + static_cast<ptrdiff_t>(PlaceIn(block, offset)), slot);
  block.here |= BitOf(offset);
  block.pending |= BitOf(offset);
  pending_from_ = std::min(pending_from_, offset / kBits);
}

void PendingWindow::BeginEnd(uint64_t offset) {
  const auto block = blocks_.find(offset / kBits);
  if (block != blocks_.end()) block->second.pending &= ~BitOf(offset);
}

void PendingWindow::AbandonEnd(uint64_t offset) {
  const auto block = blocks_.find(offset / kBits);
  if (block == blocks_.end()) return;
  block->second.pending |= block->second.here & BitOf(offset);
  pending_from_ = std::min(pending_from_, block->first);
}

void PendingWindow::Remove(uint64_t offset) {
  const auto found = blocks_.find(offset / kBits);
  if (found == blocks_.end()) return;
  Block& block = found->second;
  if ((block.here & BitOf(offset)) == 0) return;
  block.slots.erase(block.slots.begin() + static_cast<ptrdiff_t>(PlaceIn(block, offset)));
  block.here &= ~BitOf(offset);
  block.pending &= ~BitOf(offset);
  if (block.here == 0) blocks_.erase(found);
}

Slot PendingWindow::Find(uint64_t offset) const {
  const auto found = blocks_.find(offset / kBits);
  if (found == blocks_.end()) return kNone;
  const Block& block = found->second;
  return (block.here & BitOf(offset)) == 0 ? kNone : block.slots[PlaceIn(block, offset)];
}

// A block is passed once for each time that something below it became pending.
std::optional<uint64_t> PendingWindow::lowest_pending() const {
  auto block = blocks_.lower_bound(pending_from_);
  while (block != blocks_.end() && block->second.pending == 0) ++block;
  if (block == blocks_.end()) {
    pending_from_ = blocks_.empty() ? 0 : std::prev(block)->first + 1;
    return std::nullopt;
  }
  pending_from_ = block->first;
  return Lowest(block->first, block->second.pending);
}

std::optional<uint64_t> PendingWindow::lowest() const {
  if (blocks_.empty()) return std::nullopt;
  const auto& [block, content] = *blocks_.begin();
  return Lowest(block, content.here);
}

}  // namespace holdfast
