#include "stores/memory_subscription_store.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "journal/base/status.h"
#include "stores/store_limits.h"

namespace holdfast {
namespace {

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

}  // namespace

StatusOr<uint64_t> MemorySubscriptionStore::Put(std::string_view topic, std::string_view client,
                                                const Subscription& subscription) {
  RETURN_IF_ERROR(CheckName("topic", topic));
  RETURN_IF_ERROR(CheckName("client", client));
  RETURN_IF_ERROR(CheckId("instance", subscription.instance));
  for (const EventFilter& filter : subscription.filters) {
    RETURN_IF_ERROR(CheckId("filter attribute", filter.attribute));
    RETURN_IF_ERROR(CheckName("filter value", filter.value));
  }
  MutexLock lock(mu_);
  Registered& registered = topics_[std::string(topic)][std::string(client)][subscription.instance];
  if (registered.epoch == 0 || registered.subscription != subscription) {
    registered = {subscription, ++newest_epoch_};
  }
  return registered.epoch;
}

Status MemorySubscriptionStore::Remove(const SubscriptionKey& key) {
  MutexLock lock(mu_);
  const auto topic = topics_.find(key.topic);
  if (topic == topics_.end()) return NotFound("no subscription to this topic");
  const auto client = topic->second.find(key.client);
  if (client == topic->second.end()) return NotFound("no subscription of this client");
  if (client->second.erase(key.instance) == 0) {
    return NotFound("no subscription of this client on this instance");
  }
  if (client->second.empty()) topic->second.erase(client);
  if (topic->second.empty()) topics_.erase(topic);
  return absl::OkStatus();
}

StatusOr<uint64_t> MemorySubscriptionStore::RemoveInstance(std::string_view instance) {
  MutexLock lock(mu_);
  uint64_t removed = 0;
  for (auto topic = topics_.begin(); topic != topics_.end();) {
    ByClient& clients = topic->second;
    for (auto client = clients.begin(); client != clients.end();) {
      if (const auto found = client->second.find(instance); found != client->second.end()) {
        client->second.erase(found);
        ++removed;
      }
      client = client->second.empty() ? clients.erase(client) : std::next(client);
    }
    topic = clients.empty() ? topics_.erase(topic) : std::next(topic);
  }
  return removed;
}

StatusOr<std::vector<SubscriptionTarget>> MemorySubscriptionStore::TargetsFor(
    std::string_view topic, const EventAttributes& attributes) {
  // Filters ask the host for attributes, so they are judged on a copy, without the lock.
  std::vector<SubscriptionTarget> candidates;
  std::vector<std::vector<uint64_t>> epochs;
  {
    MutexLock lock(mu_);
    const auto found = topics_.find(topic);
    if (found == topics_.end()) return candidates;
    for (const auto& [client, instances] : found->second) {
      SubscriptionTarget& target = candidates.emplace_back();
      target.client = client;
      epochs.emplace_back();
      for (const auto& [instance, registered] : instances) {
        target.subscriptions.push_back(registered.subscription);
        epochs.back().push_back(registered.epoch);
      }
    }
  }
  std::vector<SubscriptionTarget> targets;
  for (size_t i = 0; i < candidates.size(); ++i) {
    SubscriptionTarget target{.client = candidates[i].client};
    for (size_t j = 0; j < epochs[i].size(); ++j) {
      if (!Matches(candidates[i].subscriptions[j], attributes)) continue;
      target.epoch = std::max(target.epoch, epochs[i][j]);
      target.subscriptions.push_back(std::move(candidates[i].subscriptions[j]));
    }
    if (!target.subscriptions.empty()) targets.push_back(std::move(target));
  }
  return targets;
}

StatusOr<std::vector<std::string>> MemorySubscriptionStore::InstancesOf(std::string_view client) {
  MutexLock lock(mu_);
  std::set<std::string> instances;
  for (const auto& [topic, clients] : topics_) {
    const auto found = clients.find(client);
    if (found == clients.end()) continue;
    for (const auto& [instance, registered] : found->second) instances.insert(instance);
  }
  return std::vector<std::string>(instances.begin(), instances.end());
}

StatusOr<std::vector<std::string>> MemorySubscriptionStore::Topics() {
  MutexLock lock(mu_);
  std::vector<std::string> topics;
  for (const auto& [topic, clients] : topics_) topics.push_back(topic);
  return topics;
}

}  // namespace holdfast
