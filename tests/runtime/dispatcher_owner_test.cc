#include <deque>

#include "tests/runtime/dispatcher_world.h"
#include "tests/support/recording_log.h"

namespace holdfast {
namespace {

// Says what it is told to: for the next asks in their order, then always the same.
class ScriptedGuard final : public OwnershipGuard {
 public:
  bool Owns(const SourceKey& source) override {
    EXPECT_EQ(source, DispatcherWorld::kSource);
    ++asks;
    if (next.empty()) return always;
    const bool answer = next.front();
    next.pop_front();
    return answer;
  }
  std::deque<bool> next;
  bool always = true;
  int asks = 0;
};

class DispatcherOwnerTest : public testing::Test {
 protected:
  DispatcherOwnerTest() { world_.host.guard = &guard_; }
  Status Nack(const std::string& id) {
    return world_.dispatcher->Nack({.id = id, .client = "billing", .epoch = 1});
  }
  Status Withdraw(const std::string& id) {
    Status answer = absl::UnknownError("no answer");
    world_.dispatcher->Withdraw(id, [&](const Status& status) { answer = status; });
    world_.Settle();
    return answer;
  }
  ScriptedGuard guard_;
  DispatcherWorld world_;
};

// Proves: S5
TEST_F(DispatcherOwnerTest, AStaleOwnerIsRefusedAndNothingHappens) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  guard_.always = false;
  const uint64_t appended = world_.engine->stats().appended_lsn;
  const int asks = guard_.asks;
  EXPECT_FAILS(
      world_.dispatcher
          ->Deliver({.source = world_.kSource, .offset = 8, .event = "e"}, {{.client = "billing"}})
          .status(),
      kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(world_.Ack(id, "billing"), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(Nack(id), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(Withdraw(id), kPermissionDenied, kStaleOwner);
  EXPECT_EQ(guard_.asks - asks, 4);
  EXPECT_EQ(world_.engine->stats().appended_lsn, appended);
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 1u);
  EXPECT_EQ(channel->pushed.size(), 1u);
  EXPECT_TRUE(world_.source.finished.empty());
  EXPECT_EQ(world_.dispatcher->Stats().refused_acks, 1u);
  EXPECT_EQ(world_.dispatcher->Stats().refused_deliveries, 1u);
  guard_.always = true;
  EXPECT_EQ(world_.Deliver(8, {"billing"}).targets[0].outcome, DeliverOutcome::kAccepted);
  EXPECT_OK(world_.Ack(id, "billing"));
  EXPECT_EQ(world_.source.finished.at(7), 1);
}

// What is not in flight has no source to ask about.
TEST_F(DispatcherOwnerTest, ARepeatedAckIsAnsweredWhoeverOwnsTheSource) {
  world_.StartAndRecover();
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  EXPECT_OK(world_.Ack(id, "billing"));
  guard_.always = false;
  const int asks = guard_.asks;
  EXPECT_OK(world_.Ack(id, "billing"));
  EXPECT_EQ(world_.Ack("1-a-1", "billing").code(), StatusCode::kNotFound);
  EXPECT_EQ(Withdraw(id).code(), StatusCode::kNotFound);
  EXPECT_EQ(guard_.asks, asks);
}

// Proves: S5, T1
TEST_F(DispatcherOwnerTest, AFirstPushThatIsHeldBackComesLaterAsTheFirst) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  guard_.next = {true, false, false};  // Deliver, then its push, twice
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  EXPECT_TRUE(channel->pushed.empty());
  EXPECT_EQ(world_.dispatcher->Stats().withheld, 1u);
  EXPECT_EQ(world_.dispatcher->Stats().pushed, 0u);
  world_.Advance(absl::Seconds(4));
  ASSERT_EQ(channel->pushed.size(), 1u);
  EXPECT_EQ(channel->pushed[0].attempt, 1u);
  EXPECT_EQ(world_.dispatcher->Stats().withheld, 2u);
  EXPECT_EQ(world_.dispatcher->Stats().pushed, 1u);
  EXPECT_EQ(world_.engine->deliveries().Get(id)->delivery.attempt, 1u);
  EXPECT_OK(world_.Ack(id, "billing"));
}

// Held back as long as it takes, it is neither pushed once more nor given up for it.
// Proves: S5, T1
TEST_F(DispatcherOwnerTest, ALaterPushThatIsHeldBackKeepsItsCount) {
  world_.options.attempts_max = 2;
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  guard_.always = false;
  world_.Advance(absl::Seconds(120));
  EXPECT_EQ(channel->pushed.size(), 1u);
  EXPECT_GT(world_.dispatcher->Stats().withheld, 20u);
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 1u);
  EXPECT_EQ(world_.engine->deliveries().GetSchedule(id)->attempt, 2u);
  guard_.always = true;
  world_.Advance(absl::Seconds(2));
  ASSERT_EQ(channel->pushed.size(), 2u);
  EXPECT_EQ(channel->pushed[1].attempt, 2u);
  EXPECT_EQ(world_.dispatcher->Stats().redelivered, 1u);
  // A channel that closes gives it to another one, with what was counted.
  EXPECT_OK(world_.Ack(id, "billing"));
}

// Proves: S5
TEST_F(DispatcherOwnerTest, WhatIsHeldBackWaitsForAChannelToo) {
  world_.StartAndRecover();
  auto channel = world_.Open("billing");
  guard_.next = {true, false};
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  world_.dispatcher->ChannelClosed("billing", channel.get());
  world_.Advance(absl::Seconds(10));
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 1u);
  channel = world_.Open("billing");
  ASSERT_EQ(channel->pushed.size(), 1u);
  EXPECT_EQ(channel->pushed[0].attempt, 1u);
}

// Proves: A6, S5
TEST_F(DispatcherOwnerTest, ASourceAckThatIsHeldBackIsTriedAgain) {
  world_.StartAndRecover();
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  guard_.next = {true, false};  // the ACK, then the source's
  EXPECT_OK(world_.Ack(id, "billing"));
  EXPECT_TRUE(world_.source.finished.empty());
  guard_.always = false;
  world_.Advance(absl::Seconds(5));
  EXPECT_TRUE(world_.source.finished.empty());
  EXPECT_EQ(world_.dispatcher->Stats().source_acks, 0u);
  EXPECT_EQ(world_.dispatcher->Stats().withheld, 1u);
  guard_.always = true;
  world_.Advance(absl::Seconds(5));
  EXPECT_EQ(world_.source.finished.at(7), 1);
  EXPECT_EQ(world_.dispatcher->Stats().source_acks, 1u);
  // One that is held back when the dispatcher ends is asked for again by its source.
  const std::string next = world_.Deliver(8, {"billing"}).targets[0].id;
  guard_.next = {true, false};
  EXPECT_OK(world_.Ack(next, "billing"));
  world_.Kill();
  world_.StartAndRecover();
  EXPECT_EQ(world_.Deliver(8, {"billing"}).targets[0].outcome,
            DeliverOutcome::kAlreadyAcknowledged);
  EXPECT_EQ(world_.source.finished.at(8), 1);
}

// Proves: S5, T4
TEST_F(DispatcherOwnerTest, AStaleOwnerDoesNotDeadLetter) {
  world_.options.attempts_max = 1;
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  const std::string other = world_.Deliver(8, {"billing"}).targets[0].id;
  guard_.always = false;
  world_.Advance(absl::Seconds(60));
  EXPECT_EQ(world_.engine->dead_letters().Count(), 0u);
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 2u);
  EXPECT_GT(world_.dispatcher->Stats().withheld, 2u);
  guard_.always = true;
  EXPECT_OK(world_.Ack(id, "billing"));  // it is not with the dead letters
  world_.Advance(absl::Seconds(5));
  EXPECT_EQ(world_.engine->dead_letters().Count(), 1u);
  EXPECT_TRUE(world_.engine->dead_letters().IsDeadLettered(other)->recorded);
}

// --- Epochs ---

class DispatcherEpochTest : public testing::Test {
 protected:
  Status Resubscribe(const Resubscription& to) {
    Status answer = absl::UnknownError("no answer");
    world_.dispatcher->Resubscribe(to, [&](const Status& status) { answer = status; });
    world_.Settle();
    return answer;
  }
  uint64_t EpochOf(const std::string& id) {
    return world_.engine->deliveries().GetSchedule(id)->epoch;
  }
  DispatcherWorld world_;
};

// Proves: A3, S5
TEST_F(DispatcherEpochTest, ARaisedEpochRefusesTheOldOneAndIsPushed) {
  world_.StartAndRecover();
  auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  EXPECT_OK(Resubscribe({.client = "billing", .epoch = 3}));
  EXPECT_FAILS(world_.Ack(id, "billing", 1), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(world_.dispatcher->Nack({.id = id, .client = "billing", .epoch = 1}),
               kPermissionDenied, kStaleOwner);
  world_.Advance(absl::Seconds(31));
  ASSERT_EQ(channel->pushed.size(), 2u);
  EXPECT_EQ(channel->pushed[0].epoch, 1u);
  EXPECT_EQ(channel->pushed[1].epoch, 3u);
  for (const bool power : {false, true}) {
    power ? world_.CutPower() : world_.Kill();
    world_.StartAndRecover();
    channel = world_.Open("billing");
    EXPECT_FAILS(world_.Ack(id, "billing", 1), kPermissionDenied, kStaleOwner);
    world_.Advance(absl::Seconds(32));
    ASSERT_EQ(channel->pushed.size(), 1u);
    EXPECT_EQ(channel->pushed[0].epoch, 3u);
  }
  EXPECT_OK(world_.Ack(id, "billing", 3));
  EXPECT_OK(world_.Ack(id, "billing", 3));
  EXPECT_EQ(world_.Ack(id, "billing", 1).code(), StatusCode::kNotFound);
}

// All 64 bits of an epoch count, in memory, in what is pushed and after a restart.
// Proves: A3
TEST_F(DispatcherEpochTest, AnEpochOfAnySizeIsTheDeliverysOwn) {
  constexpr uint64_t kLarge = (uint64_t{1} << 32) + 1;
  world_.StartAndRecover();
  auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  EXPECT_OK(Resubscribe({.client = "billing", .epoch = kLarge}));
  const std::string put_later = world_.Deliver(8, {"billing"}).targets[0].id;
  for (int start = 0; start < 2; ++start) {
    for (const std::string& of : {id, put_later}) {
      EXPECT_EQ(EpochOf(of), kLarge);
      for (const uint64_t other : {uint64_t{1}, kLarge - 1, kLarge + 1, kLarge << 1}) {
        EXPECT_FAILS(world_.Ack(of, "billing", other), kPermissionDenied, kStaleOwner);
      }
    }
    world_.Kill();
    world_.StartAndRecover();
    channel = world_.Open("billing");
  }
  world_.Advance(absl::Seconds(32));
  ASSERT_EQ(channel->pushed.size(), 2u);
  for (const Delivery& pushed : channel->pushed) {
    EXPECT_EQ(pushed.epoch, kLarge);
    EXPECT_OK(world_.Ack(pushed.id, "billing", kLarge));
  }
  EXPECT_EQ(world_.dispatcher->Stats().in_flight, 0u);
}

TEST_F(DispatcherEpochTest, OnlyTheEpochChanges) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string pushed = world_.Deliver(7, {"billing"}).targets[0].id;
  const std::string waiting = world_.Deliver(8, {"audit"}).targets[0].id;
  for (const std::string& id : {pushed, waiting}) {
    const auto before = world_.engine->deliveries().GetSchedule(id);
    ASSERT_OK(before);
    EXPECT_OK(Resubscribe({.client = id == pushed ? "billing" : "audit", .epoch = 2}));
    const auto after = world_.engine->deliveries().GetSchedule(id);
    EXPECT_EQ(after->epoch, 2u);
    EXPECT_EQ(after->attempt, before->attempt);
    EXPECT_EQ(after->due, before->due);
  }
  world_.Advance(absl::Seconds(29));
  EXPECT_EQ(channel->pushed.size(), 1u);
  world_.Advance(absl::Seconds(2));
  EXPECT_EQ(channel->pushed.size(), 2u);
}

TEST_F(DispatcherEpochTest, ItConcernsOneClientAndTheTopicsThatAreNamed) {
  world_.StartAndRecover();
  const auto deliver = [&](const std::string& topic, const std::string& client) {
    const auto result = world_.dispatcher->Deliver(
        {.source = {topic, 1, 0}, .offset = {}, .event = "e"}, {{.client = client}});
    return result->targets[0].id;
  };
  const std::string orders = deliver("orders", "billing"), bills = deliver("bills", "billing"),
                    other = deliver("orders", "audit");
  EXPECT_OK(Resubscribe({.client = "billing", .topic = "orders", .epoch = 4}));
  EXPECT_EQ(EpochOf(orders), 4u);
  EXPECT_EQ(EpochOf(bills), 1u);
  EXPECT_EQ(EpochOf(other), 1u);
  EXPECT_OK(Resubscribe({.client = "billing", .epoch = 3}));
  EXPECT_EQ(EpochOf(orders), 4u) << "an epoch does not fall";
  EXPECT_EQ(EpochOf(bills), 3u);
  EXPECT_EQ(EpochOf(other), 1u);
  EXPECT_EQ(EpochOf(deliver("orders", "billing")), 4u);
  EXPECT_EQ(EpochOf(deliver("bills", "billing")), 3u);
  EXPECT_EQ(EpochOf(deliver("new", "billing")), 3u);
  EXPECT_EQ(EpochOf(deliver("orders", "audit")), 1u);
  EXPECT_OK(Resubscribe({.client = "not yet seen", .epoch = 9}));
  EXPECT_EQ(EpochOf(deliver("orders", "not yet seen")), 9u);
}

// Proves: A8
TEST_F(DispatcherEpochTest, ItIsToldWhenItIsDurable) {
  world_.Start();
  EXPECT_FAILS(Resubscribe({.client = "billing", .epoch = 1}), kFailedPrecondition, kNotReady);
  EXPECT_OK(world_.dispatcher->Recover());
  EXPECT_FAILS(Resubscribe({.client = "billing", .epoch = 0}), kInvalidArgument, kNone);
  world_.Deliver(7, {"billing"});
  int told = 0;
  const auto note = [&](const Status& status) {
    EXPECT_OK(status);
    ++told;
  };
  world_.dispatcher->Resubscribe({.client = "billing", .epoch = 2}, note);
  world_.dispatcher->Resubscribe({.client = "billing", .epoch = 2}, note);  // nothing to raise
  EXPECT_EQ(told, 0);
  world_.Settle();
  EXPECT_EQ(told, 2);
}

TEST_F(DispatcherEpochTest, ManyAreRaisedPieceByPiece) {
  world_.StartAndRecover();
  std::vector<std::string> ids;
  for (uint64_t offset = 0; offset < 6'000; ++offset) {
    const auto result =
        world_.dispatcher->Deliver({.source = world_.kSource, .offset = offset, .event = "e"},
                                   {{.client = offset % 3 == 0 ? "audit" : "billing"}});
    ids.push_back(result->targets[0].id);
  }
  world_.Settle();
  EXPECT_OK(world_.Ack(ids[1], "billing"));
  EXPECT_OK(Resubscribe({.client = "billing", .epoch = 2}));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i == 1) continue;
    ASSERT_EQ(EpochOf(ids[i]), i % 3 == 0 ? 1u : 2u) << i;
  }
}

// The source hands in again, for a subscription that was taken over meanwhile.
// Proves: A3
TEST_F(DispatcherEpochTest, AHigherEpochOfATargetRaisesWhatIsInFlight) {
  world_.StartAndRecover();
  const DeliverResult first = world_.Deliver(7, {"billing", "audit"});
  const auto again = [&](uint64_t epoch) {
    const auto result = world_.dispatcher->Deliver(
        {.source = world_.kSource, .offset = 7, .event = "event 7"},
        {{.client = "billing", .epoch = epoch}, {.client = "audit", .epoch = 1}});
    EXPECT_OK(result);
    EXPECT_EQ(result->targets[0].outcome, DeliverOutcome::kAlreadyInFlight);
    return result->durable;
  };
  const Commit raised = again(5);
  EXPECT_FALSE(raised.confirmed());
  world_.Settle();
  EXPECT_TRUE(raised.confirmed());
  EXPECT_EQ(EpochOf(first.targets[0].id), 5u);
  EXPECT_EQ(EpochOf(first.targets[1].id), 1u);
  EXPECT_TRUE(again(4).confirmed());
  EXPECT_EQ(EpochOf(first.targets[0].id), 5u);
  EXPECT_FAILS(world_.Ack(first.targets[0].id, "billing", 1), kPermissionDenied, kStaleOwner);
  world_.Kill();
  world_.StartAndRecover();
  EXPECT_FAILS(world_.Ack(first.targets[0].id, "billing", 1), kPermissionDenied, kStaleOwner);
  EXPECT_OK(world_.Ack(first.targets[0].id, "billing", 5));
  EXPECT_OK(world_.Ack(first.targets[1].id, "audit", 1));
}

// What is on its way to its end keeps the epoch with which it was acknowledged.
TEST_F(DispatcherEpochTest, AnEndThatIsOnItsWayIsLeftAlone) {
  world_.StartAndRecover();
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  Status acked = absl::UnknownError("no answer");
  world_.dispatcher->Ack({.id = id, .client = "billing", .epoch = 1},
                         [&](const Status& status) { acked = status; });
  EXPECT_OK(Resubscribe({.client = "billing", .epoch = 2}));
  EXPECT_OK(acked);
  EXPECT_OK(world_.Ack(id, "billing", 1));
}

}  // namespace
}  // namespace holdfast
