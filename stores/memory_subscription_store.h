// MemorySubscriptionStore: the subscriptions of one instance that stands alone.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/subscription_store.h"
#include "journal/base/mutex.h"

namespace holdfast {

// Threads: any.
class MemorySubscriptionStore final : public SubscriptionStore {
 public:
  absl::StatusOr<uint64_t> Put(std::string_view topic, std::string_view client,
                               const Subscription& subscription) override;
  absl::Status Remove(const SubscriptionKey& key) override;
  absl::StatusOr<uint64_t> RemoveInstance(std::string_view instance) override;
  absl::StatusOr<std::vector<SubscriptionTarget>> TargetsFor(
      std::string_view topic, const EventAttributes& attributes) override;
  absl::StatusOr<std::vector<std::string>> InstancesOf(std::string_view client) override;
  absl::StatusOr<std::vector<std::string>> Topics() override;

 private:
  struct Registered {
    Subscription subscription;
    uint64_t epoch = 0;
  };
  // None of these maps is ever empty, but the outermost.
  using ByInstance = std::map<std::string, Registered, std::less<>>;
  using ByClient = std::map<std::string, ByInstance, std::less<>>;

  Mutex mu_;
  std::map<std::string, ByClient, std::less<>> topics_ ABSL_GUARDED_BY(mu_);
  uint64_t newest_epoch_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace holdfast
