// The SubscriptionStore on a Meta: one entry for each subscription, and a copy of all of them here,
// so that the targets of an event are known without asking.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "holdfast/subscription_store.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "meta/cached_meta.h"
#include "meta/meta_writer.h"

namespace holdfast {

// What this process wrote is seen by its own reads at once; what others wrote, as soon as the watch
// brings it. The epoch of a subscription is the revision of its entry: those only rise.
// Threads: any. The destructor needs every other call to have returned.
class MetaSubscriptionStore final : public SubscriptionStore {
 public:
  // `meta` and `clock` are borrowed and outlive it. `nonce`: as MetaWriter's.
  MetaSubscriptionStore(MetaStore& meta, uint64_t nonce, Clock& clock)
      : meta_(meta), writer_(meta, nonce), clock_(clock) {}

  absl::StatusOr<uint64_t> Put(std::string_view topic, std::string_view client,
                               const Subscription& subscription) override;
  absl::Status Remove(const SubscriptionKey& key) override;
  absl::StatusOr<uint64_t> RemoveInstance(std::string_view instance) override;
  absl::StatusOr<std::vector<SubscriptionTarget>> TargetsFor(
      std::string_view topic, const EventAttributes& attributes) override;
  absl::StatusOr<std::vector<std::string>> InstancesOf(std::string_view client) override;
  absl::StatusOr<std::vector<std::string>> Topics() override;

 private:
  struct Names {  // ordered so that a topic is one stretch
    std::string topic, client, instance;
    auto operator<=>(const Names&) const = default;
  };
  struct Registered {
    Subscription subscription;
    uint64_t epoch = 0;
  };
  class Meaning final : public MetaMeaning<Names, Registered> {
   public:
    StatusOr<Names> KeyOf(std::string_view key) const override;
    StatusOr<Registered> ValueOf(const MetaEntry& entry) const override;
  };
  using Cache = CachedMeta<Names, Registered>;

  // Opened by the first call that needs it, and by every later one until that succeeds.
  StatusOr<Cache*> Opened() ABSL_LOCKS_EXCLUDED(mu_);
  static void NoteDelete(Cache& cache, std::string_view key, uint64_t revision);

  MetaStore& meta_;
  MetaWriter writer_;
  Clock& clock_;
  const Meaning meaning_;
  Mutex mu_;
  std::unique_ptr<Cache> cache_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
