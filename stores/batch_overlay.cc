#include "stores/batch_overlay.h"

#include "journal/base/checksum.h"

namespace holdfast {

size_t BatchOverlay::NameHash::operator()(const Name& name) const {
  return Checksum(AsBytes(name.key), static_cast<uint64_t>(name.space));
}

void BatchOverlay::Set(Space space, std::string_view key, const PendingState& state) {
  if (PendingState* known = Find(space, key); known != nullptr) {
    *known = state;
    return;
  }
  entries_.push_back({space, key, state});
  if (entries_.size() <= kSearchedMax) return;
  if (table_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      table_.emplace(Name{entries_[i].space, entries_[i].key}, i);
    }
  } else {
    table_.emplace(Name{space, key}, entries_.size() - 1);
  }
}

void BatchOverlay::Clear() {
  entries_.clear();
  if (!table_.empty()) table_.clear();
}

PendingState* BatchOverlay::FindInTable(Space space, std::string_view key) {
  const auto found = table_.find(Name{space, key});
  return found == table_.end() ? nullptr : &entries_[found->second].state;
}

}  // namespace holdfast
