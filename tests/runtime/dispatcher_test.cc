#include "runtime/dispatcher.h"

#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

class DispatcherTest : public testing::Test {
 protected:
  DispatcherWorld world_;
};

TEST_F(DispatcherTest, AnEventIsPushedToEachTarget) {
  world_.StartAndRecover();
  const auto billing = world_.Open("billing"), audit = world_.Open("audit");
  const DeliverResult result = world_.Deliver(7, {"billing", "audit"});
  ASSERT_EQ(result.targets.size(), 2u);
  EXPECT_EQ(billing->ids(), std::vector<std::string>{result.targets[0].id});
  EXPECT_EQ(audit->ids(), std::vector<std::string>{result.targets[1].id});
  EXPECT_EQ(billing->pushed[0].event, "event 7");
  EXPECT_EQ(billing->pushed[0].attempt, 1u);
  EXPECT_TRUE(result.durable.confirmed());
}

// Proves: A4
TEST_F(DispatcherTest, BeforeRecoveryEverythingIsRefused) {
  world_.Start();
  EXPECT_FAILS(world_.dispatcher->Deliver({.source = world_.kSource}, {}).status(),
               kFailedPrecondition, kNotReady);
  EXPECT_FAILS(world_.Ack("1-a-1", "billing"), kFailedPrecondition, kNotReady);
  EXPECT_FAILS(world_.dispatcher->Nack({.id = "1-a-1"}), kFailedPrecondition, kNotReady);
}

TEST_F(DispatcherTest, TwoTargetsMayNotBeOneClient) {
  world_.StartAndRecover();
  const Status refused =
      world_.dispatcher
          ->Deliver({.source = world_.kSource, .offset = 1}, {{.client = "a"}, {.client = "a"}})
          .status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(world_.dispatcher->Stats().in_flight, 0u);
}

// Proves: A6
TEST_F(DispatcherTest, AnEventWithoutTargetsIsFinishedWhenItIsDurable) {
  world_.StartAndRecover();
  ASSERT_OK(world_.dispatcher->Deliver({.source = world_.kSource, .offset = 5}, {}));
  EXPECT_TRUE(world_.source.finished.empty());
  world_.Settle();
  EXPECT_EQ(world_.source.finished.at(5), 1);
}

// Proves: O4, A7
TEST_F(DispatcherTest, OutOfOrderAcksSurviveAKillAndAReplay) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  std::map<uint64_t, std::string> ids;
  for (uint64_t offset = 11; offset <= 20; ++offset) {
    ids[offset] = world_.Deliver(offset, {"billing"}).targets[0].id;
  }
  EXPECT_OK(world_.Ack(ids[20], "billing"));
  EXPECT_EQ(world_.NextOf("billing"), 11u);
  world_.Kill();
  world_.StartAndRecover();
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 9u);
  for (uint64_t offset = 11; offset <= 20; ++offset) {
    const DeliverResult again = world_.Deliver(offset, {"billing"});
    if (offset == 20) {
      EXPECT_EQ(again.targets[0].outcome, DeliverOutcome::kAlreadyAcknowledged);
      EXPECT_EQ(world_.source.finished.at(20), 2) << "the source asks again, so it is told again";
    } else {
      EXPECT_EQ(again.targets[0].outcome, DeliverOutcome::kAlreadyInFlight);
      EXPECT_EQ(again.targets[0].id, ids[offset]);
    }
  }
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 9u);
  for (uint64_t offset = 19; offset >= 11; --offset) EXPECT_OK(world_.Ack(ids[offset], "billing"));
  EXPECT_EQ(world_.NextOf("billing"), 21u);
}

// Proves: O4
TEST_F(DispatcherTest, WhatWasNeverMeantForAClientIsNotCalledAcknowledged) {
  world_.StartAndRecover();
  world_.Deliver(5, {"early"});
  const std::string id = world_.Deliver(6, {"early", "late"}).targets[1].id;
  const auto outcome_of = [&](uint64_t offset, const std::string& client) {
    return world_.Deliver(offset, {client}).targets[0].outcome;
  };
  for (int boot = 0; boot < 3; ++boot) {
    EXPECT_EQ(outcome_of(5, "late"), DeliverOutcome::kOutOfRange);
    EXPECT_EQ(outcome_of(5, "nobody"), DeliverOutcome::kOutOfRange);
    EXPECT_EQ(outcome_of(5, "early"), DeliverOutcome::kAlreadyInFlight);
    EXPECT_EQ(outcome_of(6, "late"), DeliverOutcome::kAlreadyInFlight);
    boot == 0 ? world_.Kill() : world_.CutPower();
    world_.StartAndRecover();
  }
  // The start stays when the offset moves on.
  EXPECT_OK(world_.Ack(id, "late"));
  world_.Deliver(7, {"late"});
  for (int boot = 0; boot < 2; ++boot) {
    EXPECT_EQ(outcome_of(5, "late"), DeliverOutcome::kOutOfRange);
    EXPECT_EQ(outcome_of(6, "late"), DeliverOutcome::kAlreadyAcknowledged);
    EXPECT_EQ(outcome_of(7, "late"), DeliverOutcome::kAlreadyInFlight);
    world_.Kill();
    world_.StartAndRecover();
  }
}

// Its first numbered event is where a client begins, not the event without a number before it.
// Proves: O4
TEST_F(DispatcherTest, AnEventWithoutANumberIsNoStart) {
  world_.StartAndRecover();
  world_.Deliver(3, {"other"});
  ASSERT_OK(world_.dispatcher->Deliver({.source = world_.kSource, .offset = {}, .event = "e"},
                                       {{.client = "billing"}}));
  world_.Settle();
  EXPECT_EQ(world_.Deliver(3, {"billing"}).targets[0].outcome, DeliverOutcome::kOutOfRange);
  world_.Kill();
  world_.StartAndRecover();
  EXPECT_EQ(world_.Deliver(3, {"billing"}).targets[0].outcome, DeliverOutcome::kOutOfRange);
  EXPECT_EQ(world_.Deliver(4, {"billing"}).targets[0].outcome, DeliverOutcome::kAccepted);
  for (int boot = 0; boot < 2; ++boot) {
    EXPECT_EQ(world_.Deliver(3, {"billing"}).targets[0].outcome, DeliverOutcome::kOutOfRange);
    EXPECT_EQ(world_.Deliver(4, {"billing"}).targets[0].outcome, DeliverOutcome::kAlreadyInFlight);
    world_.CutPower();
    world_.StartAndRecover();
  }
}

// Whoever wrote an offset and no start: what lies below it is not called acknowledged.
// Proves: O4
TEST_F(DispatcherTest, AnOffsetOfSomebodyElseIsTakenForTheStart) {
  world_.Start();
  ASSERT_OK(world_.engine
                ->Transact([&](Transaction& t) {
                  t.WriteOffset({"orders", "billing", 0}, OffsetPosition(7, 1));
                  t.SourceSeen(world_.kSource, 9);
                })
                .Wait());
  EXPECT_OK(world_.dispatcher->Recover());
  EXPECT_EQ(world_.Deliver(6, {"billing"}).targets[0].outcome, DeliverOutcome::kOutOfRange);
  EXPECT_EQ(world_.Deliver(7, {"billing"}).targets[0].outcome,
            DeliverOutcome::kAlreadyAcknowledged);
}

// Proves: T2
TEST_F(DispatcherTest, TheTimeThatWasLeftIsKeptOverARestart) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  world_.Advance(absl::Seconds(27));
  world_.Kill();
  world_.clock.SetWall(absl::FromUnixSeconds(0));
  world_.StartAndRecover();
  const auto after = world_.Open("billing");
  world_.Advance(absl::Milliseconds(2'800));
  EXPECT_TRUE(after->pushed.empty());
  world_.Advance(absl::Milliseconds(1'400));
  EXPECT_EQ(after->ids(), std::vector<std::string>{id});
  EXPECT_EQ(after->pushed[0].attempt, 2u);
}

// Proves: T2, T7
TEST_F(DispatcherTest, WhatWasOverdueAtARestartIsSpread) {
  world_.StartAndRecover();
  for (uint64_t offset = 0; offset < 100; ++offset) world_.Deliver(offset, {"billing"});
  world_.Kill();
  world_.StartAndRecover();
  EXPECT_OK(world_.dispatcher->Recover());  // again it does nothing
  const auto channel = world_.Open("billing");
  EXPECT_TRUE(channel->pushed.empty());
  world_.Advance(absl::Milliseconds(500));
  EXPECT_GT(channel->pushed.size(), 20u);
  EXPECT_LT(channel->pushed.size(), 80u);
  world_.Advance(absl::Milliseconds(700));
  EXPECT_EQ(channel->pushed.size(), 100u);
  EXPECT_EQ(world_.dispatcher->Stats().recovered, 100u);
}

TEST_F(DispatcherTest, MoreThanItsLimitIsRefusedWithoutATrace) {
  world_.options.in_flight_per_client = 2;
  world_.options.in_flight_total = 3;
  world_.StartAndRecover();
  world_.Deliver(0, {"a"});
  const std::string id = world_.Deliver(1, {"a"}).targets[0].id;
  const auto try_for = [&](const std::string& client) {
    return world_.dispatcher
        ->Deliver({.source = world_.kSource, .offset = 2}, {{.client = client}, {.client = "b"}})
        .status();
  };
  EXPECT_FAILS(try_for("a"), kResourceExhausted, kLimit);
  EXPECT_FAILS(try_for("c"), kResourceExhausted, kLimit);
  EXPECT_EQ(world_.dispatcher->Stats().in_flight, 2u);
  EXPECT_EQ(world_.engine->deliveries().Count(), 2u);
  EXPECT_EQ(world_.dispatcher->Stats().refused_deliveries, 2u);
  EXPECT_OK(world_.Ack(id, "a"));
  EXPECT_EQ(world_.Deliver(2, {"a", "b"}).targets[0].outcome, DeliverOutcome::kAccepted);
}

// Proves: D3
TEST_F(DispatcherTest, APutThatIsRefusedLeavesNoTrace) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const Status refused =
      world_.dispatcher
          ->Deliver(
              {.source = world_.kSource, .offset = 1, .event = std::string(size_t{32} << 20, 'x')},
              {{.client = "billing"}})
          .status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused;
  world_.Advance(absl::Seconds(60));
  EXPECT_TRUE(channel->pushed.empty());
  EXPECT_TRUE(world_.source.finished.empty());
  EXPECT_EQ(world_.Deliver(1, {"billing"}).targets[0].outcome, DeliverOutcome::kAccepted);
}

}  // namespace
}  // namespace holdfast
