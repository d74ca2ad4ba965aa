// SubscriptionStore: which client wants which events of a topic, and on which instances it can be
// found.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace holdfast {

// How the deliveries of a subscription reach the client.
enum class DispatchMode : uint8_t {
  kPush = 1,         // over a channel that the client opened
  kPull = 2,         // when the client asks
  kA2aDispatch = 3,  // to an agent
};

// One condition on an attribute of an event. An event without the attribute fails it.
struct EventFilter {
  enum class Match : uint8_t { kExact = 1, kPrefix = 2, kSuffix = 3 };
  std::string attribute;
  Match match = Match::kExact;
  std::string value;

  bool operator==(const EventFilter&) const = default;
};

struct Subscription {
  std::string instance;  // where the client can be reached; not empty
  DispatchMode mode = DispatchMode::kPush;
  std::vector<EventFilter> filters;  // all must hold; none: every event of the topic

  bool operator==(const Subscription&) const = default;
};

struct SubscriptionKey {
  std::string topic;
  std::string client;
  std::string instance;

  bool operator==(const SubscriptionKey&) const = default;
};

// The value of an attribute of one event; none if it has no such attribute.
using EventAttributes = std::function<std::optional<std::string_view>(std::string_view name)>;

// One client that an event is for. Each gets one delivery, over any one of its instances.
struct SubscriptionTarget {
  std::string client;
  uint64_t epoch = 0;  // highest of its matching subscriptions; goes into Delivery::epoch
  std::vector<Subscription> subscriptions;  // those that match, by instance

  bool operator==(const SubscriptionTarget&) const = default;
};

// Shared between the instances of a cluster: kept in a Meta, or in memory where there is one
// instance. Names are arbitrary bytes, shorter than 64 KiB; topic, client and instance identify a
// subscription.
// Durable: when a mutation returns, as far as the backend goes (memory: not at all; instances
//          register again after a restart).
// Threads: any.
// Errors:  of every call: kUnavailable, the Meta cannot be reached or (kUnknownOutcome) did not
//          answer. Absent and unreachable are different answers
class SubscriptionStore {
 public:
  virtual ~SubscriptionStore() = default;

  // Registers or replaces the subscription of (topic, client, subscription.instance) and returns
  // its epoch. One that is registered already and is equal keeps its epoch; every other gets a
  // higher one than any before, one that was removed and made again too.
  // Errors: kInvalidArgument  a name of 64 KiB or more, an empty instance
  //         kAborted          kConflict: another registration of the same key won
  virtual absl::StatusOr<uint64_t> Put(std::string_view topic, std::string_view client,
                                       const Subscription& subscription) = 0;

  // Errors: kNotFound  there is no such subscription
  virtual absl::Status Remove(const SubscriptionKey& key) = 0;

  // Ends every subscription of an instance that is gone; returns how many.
  virtual absl::StatusOr<uint64_t> RemoveInstance(std::string_view instance) = 0;

  // The clients of `topic` whose filters an event with these attributes meets, sorted by client.
  virtual absl::StatusOr<std::vector<SubscriptionTarget>> TargetsFor(
      std::string_view topic, const EventAttributes& attributes) = 0;

  // Every instance on which the client has a subscription, sorted, each once.
  virtual absl::StatusOr<std::vector<std::string>> InstancesOf(std::string_view client) = 0;

  // Exactly the topics that have a subscriber, sorted.
  virtual absl::StatusOr<std::vector<std::string>> Topics() = 0;
};

}  // namespace holdfast
