#include "stores/subscription_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "meta/meta_key.h"
#include "meta/meta_pages.h"
#include "stores/shared_values.h"
#include "stores/store_limits.h"

namespace holdfast {
namespace {

constexpr std::string_view kKind = "subs";
constexpr size_t kReadAtOnce = 1'000;

bool Meets(const EventFilter& filter, const EventAttributes& attributes) {
  const std::optional<std::string_view> value = attributes(filter.attribute);
  if (!value.has_value()) return false;
  switch (filter.match) {
    case EventFilter::Match::kExact:
      return *value == filter.value;
    case EventFilter::Match::kPrefix:
      return value->starts_with(filter.value);
    case EventFilter::Match::kSuffix:
      return value->ends_with(filter.value);
  }
  return false;
}

bool Matches(const Subscription& subscription, const EventAttributes& attributes) {
  return std::all_of(subscription.filters.begin(), subscription.filters.end(),
                     [&](const EventFilter& filter) { return Meets(filter, attributes); });
}

Status NoSubscription() {
  return NotFound("no subscription of this client to this topic on this instance");
}

}  // namespace

StatusOr<MetaSubscriptionStore::Names> MetaSubscriptionStore::Meaning::KeyOf(
    std::string_view key) const {
  ASSIGN_OR_RETURN(std::vector<std::string> parts, ParseMetaKey(kKind, 3, key));
  return Names{std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

StatusOr<MetaSubscriptionStore::Registered> MetaSubscriptionStore::Meaning::ValueOf(
    const MetaEntry& entry) const {
  ASSIGN_OR_RETURN(Subscription subscription, DecodeSubscription(entry.value));
  return Registered{std::move(subscription), entry.revision};
}

StatusOr<MetaSubscriptionStore::Cache*> MetaSubscriptionStore::Opened() {
  MutexLock lock(mu_);
  if (cache_ == nullptr) {
    ASSIGN_OR_RETURN(cache_, Cache::Open(meta_, MetaPrefix(kKind, {}), meaning_, clock_));
  }
  return cache_.get();
}

// At no other revision than its own: an older one would be taken for known already, and a newer one
// would hide what somebody else put meanwhile. Where it is not known the watch brings it.
void MetaSubscriptionStore::NoteDelete(Cache& cache, std::string_view key, uint64_t revision) {
  if (revision != 0) cache.view().NoteDelete(key, revision);
}

StatusOr<uint64_t> MetaSubscriptionStore::Put(std::string_view topic, std::string_view client,
                                              const Subscription& subscription) {
  RETURN_IF_ERROR(CheckName("topic", topic));
  RETURN_IF_ERROR(CheckName("client", client));
  RETURN_IF_ERROR(CheckId("instance", subscription.instance));
  for (const EventFilter& filter : subscription.filters) {
    RETURN_IF_ERROR(CheckId("filter attribute", filter.attribute));
    RETURN_IF_ERROR(CheckName("filter value", filter.value));
  }
  ASSIGN_OR_RETURN(Cache* const cache, Opened());
  MetaEntry entry{.key = MetaKey(kKind, {topic, client, subscription.instance}),
                  .value = EncodeSubscription(subscription)};
  for (bool again = false;; again = true) {
    const StatusOr<MetaEntry> found = meta_.Get(entry.key, {});
    const bool absent = MetaResultOf(found.status()) == MetaResult::kNotFound;
    if (!absent) RETURN_IF_ERROR(found.status());
    if (!absent && found->value == entry.value) {
      cache->view().NotePut(*found);
      return found->revision;
    }
    const StatusOr<uint64_t> written =
        writer_.Put(entry.key, absent ? 0 : found->revision, entry.value);
    if (written.ok()) {
      entry.revision = *written;
      cache->view().NotePut(entry);
      return *written;
    }
    // Another registration won. If it says the same, there is nothing to fight over.
    if (again || MetaResultOf(written.status()) != MetaResult::kConflict) return written.status();
  }
}

Status MetaSubscriptionStore::Remove(const SubscriptionKey& key) {
  ASSIGN_OR_RETURN(Cache* const cache, Opened());
  const std::string name = MetaKey(kKind, {key.topic, key.client, key.instance});
  for (bool again = false;; again = true) {
    const StatusOr<MetaEntry> found = meta_.Get(name, {});
    if (MetaResultOf(found.status()) == MetaResult::kNotFound) return NoSubscription();
    RETURN_IF_ERROR(found.status());
    const StatusOr<uint64_t> deleted = writer_.Delete(name, found->revision);
    if (deleted.ok()) {
      NoteDelete(*cache, name, *deleted);
      return absl::OkStatus();
    }
    const MetaResult result = MetaResultOf(deleted.status());
    if (result == MetaResult::kNotFound) return NoSubscription();
    if (again || result != MetaResult::kConflict) return deleted.status();
  }
}

StatusOr<uint64_t> MetaSubscriptionStore::RemoveInstance(std::string_view instance) {
  ASSIGN_OR_RETURN(Cache* const cache, Opened());
  uint64_t removed = 0;
  const auto remove = [&](const MetaEntry& entry) -> Status {
    const auto names = meaning_.KeyOf(entry.key);
    if (!names.ok() || names->instance != instance) return absl::OkStatus();
    const StatusOr<uint64_t> deleted = writer_.Delete(entry.key, entry.revision);
    // Registered anew since: the instance is not gone after all.
    const MetaResult result = MetaResultOf(deleted.status());
    if (result == MetaResult::kConflict || result == MetaResult::kNotFound) return absl::OkStatus();
    RETURN_IF_ERROR(deleted.status());
    NoteDelete(*cache, entry.key, *deleted);
    ++removed;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachEntry(meta_, MetaPrefix(kKind, {}), kReadAtOnce, remove).status());
  return removed;
}

StatusOr<std::vector<SubscriptionTarget>> MetaSubscriptionStore::TargetsFor(
    std::string_view topic, const EventAttributes& attributes) {
  ASSIGN_OR_RETURN(Cache* const cache, Opened());
  // Filters ask the host for attributes, so they are judged on a copy, without the lock.
  const auto candidates = cache->With([&](const std::map<Names, Registered>& all) {
    std::vector<std::pair<std::string, Registered>> found;
    for (auto at = all.lower_bound({std::string(topic), "", ""});
         at != all.end() && at->first.topic == topic; ++at) {
      found.emplace_back(at->first.client, at->second);
    }
    return found;
  });
  std::vector<SubscriptionTarget> targets;
  for (const auto& [client, registered] : candidates) {
    if (!Matches(registered.subscription, attributes)) continue;
    if (targets.empty() || targets.back().client != client) targets.push_back({.client = client});
    SubscriptionTarget& target = targets.back();
    target.epoch = std::max(target.epoch, registered.epoch);
    target.subscriptions.push_back(registered.subscription);
  }
  return targets;
}

StatusOr<std::vector<std::string>> MetaSubscriptionStore::InstancesOf(std::string_view client) {
  ASSIGN_OR_RETURN(Cache* const cache, Opened());
  return cache->With([&](const std::map<Names, Registered>& all) {
    std::set<std::string> instances;
    for (const auto& [names, registered] : all) {
      if (names.client == client) instances.insert(names.instance);
    }
    return std::vector<std::string>(instances.begin(), instances.end());
  });
}

StatusOr<std::vector<std::string>> MetaSubscriptionStore::Topics() {
  ASSIGN_OR_RETURN(Cache* const cache, Opened());
  return cache->With([](const std::map<Names, Registered>& all) {
    std::vector<std::string> topics;
    for (const auto& [names, registered] : all) {
      if (topics.empty() || topics.back() != names.topic) topics.push_back(names.topic);
    }
    return topics;
  });
}

}  // namespace holdfast
