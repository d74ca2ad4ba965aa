#include "stores/batch_overlay.h"

#include "journal/base/checksum.h"

namespace holdfast {

size_t BatchOverlay::NameHash::operator()(const Name& name) const {
  return Checksum(AsBytes(name.key), static_cast<uint64_t>(name.space));
}

void BatchOverlay::NameNewest() {
  for (size_t i = table_.size(); i < entries_.size(); ++i) {
    table_.emplace(Name{entries_[i].space, entries_[i].key}, i);
  }
}

PendingState* BatchOverlay::FindInTable(Space space, std::string_view key) {
  const auto found = table_.find(Name{space, key});
  return found == table_.end() ? nullptr : &entries_[found->second].state;
}

}  // namespace holdfast
