#include "meta/nacos_snapshots.h"

#include <algorithm>
#include <utility>

namespace holdfast {

NacosSnapshots::Ptr NacosSnapshots::Keep(NacosSnapshot snapshot) {
  auto shared = std::make_shared<const NacosSnapshot>(std::move(snapshot));
  MutexLock lock(mu_);
  kept_.push_back({.snapshot = shared, .at = clock_.Now()});
  Forget();
  return shared;
}

NacosSnapshots::Ptr NacosSnapshots::Find(std::string_view prefix, uint64_t revision) {
  MutexLock lock(mu_);
  Forget();
  const auto found = std::ranges::find_if(kept_, [&](const Kept& kept) {
    return kept.snapshot->revision == revision && prefix.starts_with(kept.snapshot->prefix);
  });
  return found == kept_.end() ? nullptr : found->snapshot;
}

void NacosSnapshots::Forget() {
  const absl::Duration oldest = clock_.Now() - limits_.age_max;
  while (kept_.size() > limits_.count_max || (!kept_.empty() && kept_.front().at < oldest)) {
    kept_.pop_front();
  }
}

}  // namespace holdfast
