// The three local stores on a FakeSink.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "journal/base/seeded_rng.h"
#include "stores/local_stores.h"
#include "tests/stores/fake_sink.h"

namespace holdfast {

inline Delivery DeliveryFor(std::string id, std::string event = "event") {
  return {.id = std::move(id),
          .epoch = 3,
          .topic = "orders",
          .incarnation = 1,
          .partition = 2,
          .offset = 4711,
          .client = "billing",
          .attempt = 0,
          .due = absl::Seconds(30),
          .created = absl::FromUnixSeconds(1'770'000'000),
          .redriven_from = std::nullopt,
          .event = std::move(event)};
}

inline DeadLetter DeadLetterFor(std::string id, std::string event = "event") {
  return {.delivery_id = std::move(id),
          .dlq_topic = "orders-dlq",
          .dlq_offset = 9,
          .reason = "attempts ran out",
          .attempts = 6,
          .epoch = 3,
          .topic = "orders",
          .incarnation = 1,
          .partition = 2,
          .offset = 4711,
          .client = "billing",
          .died = absl::FromUnixSeconds(1'770'000'001),
          .event = std::move(event)};
}

// For a mutation whose Commit says nothing more that a test asks for.
inline void Accept(const Commit& commit) { EXPECT_TRUE(commit.refused().ok()); }

struct FakeStores {
  explicit FakeStores(const EngineOptions& options = {}, const StoreLimits& limits = {})
      : stores(sequencer, rng, options), sink(sequencer, stores.machines()) {
    stores.Attach(sink, fork_guard, limits, {.clean = true, .threads = false});
  }

  Mutex sequencer;
  SeededRng rng{1};
  ForkGuard fork_guard;
  LocalStores stores;
  FakeSink sink;

  JournalOffsetStore& offsets() { return stores.offsets(); }
  JournalDeliveryStateStore& deliveries() { return stores.deliveries(); }
  JournalDeadLetterStore& dead_letters() { return stores.dead_letters(); }
};

}  // namespace holdfast
