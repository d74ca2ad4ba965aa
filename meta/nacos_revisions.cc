#include "meta/nacos_revisions.h"

#include <algorithm>

namespace holdfast {

NacosRevisions::Write NacosRevisions::Begin() {
  MutexLock lock(mu_);
  begun_ = ++newest_;
  under_way_.insert(begun_);
  return Write(*this, begun_);
}

void NacosRevisions::End(uint64_t revision) {
  MutexLock lock(mu_);
  under_way_.erase(revision);
  ended_.NotifyAll();
}

StatusOr<uint64_t> NacosRevisions::Settle(absl::Duration deadline) {
  MutexLock lock(mu_);
  const uint64_t revision = ++newest_;
  while (!under_way_.empty() && *under_way_.begin() < revision) {
    if (clock_.Now() >= deadline) {
      return Unavailable(Detail::kNone, "nacos: a write of this process is still under way");
    }
    ended_.WaitFor(mu_, clock_.Until(deadline));
  }
  return revision;
}

uint64_t NacosRevisions::Cover(uint64_t settled) {
  MutexLock lock(mu_);
  return begun_ > settled ? settled : ++newest_;
}

void NacosRevisions::Saw(std::string_view key, uint64_t revision) {
  MutexLock lock(mu_);
  newest_ = std::max(newest_, revision);
  const auto place = seen_.try_emplace(std::string(key)).first;
  if (place->second >= revision) return;
  const auto forget = [this](uint64_t at, const std::string& name) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto names = keys_at_.find(at);
    names->second.erase(name);
    if (names->second.empty()) keys_at_.erase(names);
  };
  if (place->second != 0) forget(place->second, place->first);
  place->second = revision;
  keys_at_[revision].insert(place->first);
  if (seen_.size() <= keys_max_) return;
  const std::string oldest = *keys_at_.begin()->second.begin();
  forget(keys_at_.begin()->first, oldest);
  seen_.erase(oldest);
}

uint64_t NacosRevisions::SeenOf(std::string_view key) {
  MutexLock lock(mu_);
  const auto found = seen_.find(key);
  return found == seen_.end() ? 0 : found->second;
}

std::map<std::string, uint64_t> NacosRevisions::SeenUnder(std::string_view prefix) {
  MutexLock lock(mu_);
  std::map<std::string, uint64_t> seen;
  for (auto at = seen_.lower_bound(prefix); at != seen_.end() && at->first.starts_with(prefix);
       ++at) {
    seen.insert(seen.end(), *at);
  }
  return seen;
}

}  // namespace holdfast
