// From the last attempt to the dead letter: sink, ledger, one batch.
#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

// Fails as often as it is told, and answers when it is told.
class TestSink final : public DeadLetterSink {
 public:
  void Write(const Delivery& delivery, std::string_view,
             std::function<void(StatusOr<DeadLetterPlace>)> done) override {
    ++calls[delivery.id];
    if (failures > 0) {
      --failures;
      done(absl::UnavailableError("the sink is down"));
    } else if (slow) {
      held.push_back(std::move(done));
    } else {
      bodies.insert(delivery.id);
      done(DeadLetterPlace{"dlq", 3});
    }
  }
  int failures = 0;
  bool slow = false;
  std::map<std::string, int> calls;
  std::set<std::string> bodies;
  std::vector<std::function<void(StatusOr<DeadLetterPlace>)>> held;
};

class TestLedger final : public DeadLetterLedger {
 public:
  void Record(const Delivery& delivery, const DeadLetterPlace& place,
              std::function<void(Status)> done) override {
    if (failures > 0) {
      --failures;
      return done(absl::UnavailableError("the ledger is down"));
    }
    entries.emplace(delivery.id, place.offset);
    done(absl::OkStatus());
  }
  StatusOr<bool> Has(std::string_view id) override {
    if (failures > 0) {
      --failures;
      return absl::UnavailableError("the ledger is down");
    }
    return entries.contains(std::string(id));
  }
  int failures = 0;
  std::map<std::string, uint64_t> entries;
};

class DeadLetterTest : public testing::Test {
 protected:
  DeadLetterTest() {
    world_.options.attempts_max = 3;
    world_.options.ack_timeout = absl::Seconds(10);
  }
  // Nobody acknowledges it, until it is due for the last time.
  std::string Exhaust(uint64_t offset = 7) {
    channel_ = world_.Open("billing");
    const std::string id = world_.Deliver(offset, {"billing"}).targets[0].id;
    world_.Advance(absl::Seconds(31));
    EXPECT_EQ(channel_->pushed.size(), 3u);
    return id;
  }

  DispatcherWorld world_;
  TestSink sink_;
  TestLedger ledger_;
  std::shared_ptr<RecordingChannel> channel_;
};

// Proves: T6, T8
TEST_F(DeadLetterTest, WhatIsNeverAcknowledgedEndsAsADeadLetter) {
  world_.StartAndRecover();
  const std::string id = Exhaust();
  ASSERT_OK_AND_ASSIGN(const StoredDeadLetter stored, world_.engine->dead_letters().Get(id));
  EXPECT_EQ(stored.dead_letter.attempts, 3u);
  EXPECT_EQ(stored.dead_letter.event, "event 7");
  EXPECT_EQ(stored.dead_letter.dlq_topic, "dead-letters");
  EXPECT_EQ(world_.engine->deliveries().Count(), 0u);
  EXPECT_EQ(world_.NextOf("billing"), 8u);
  EXPECT_EQ(world_.source.finished.at(7), 1);
  world_.Advance(absl::Seconds(100));
  EXPECT_EQ(channel_->pushed.size(), 3u);
  EXPECT_EQ(world_.Ack(id, "billing").code(), StatusCode::kNotFound);
}

// Proves: T4, T8
TEST_F(DeadLetterTest, ASinkThatIsDownIsAskedAgainWithBackoff) {
  world_.host.sink = &sink_;
  world_.host.ledger = &ledger_;
  sink_.failures = 4;
  ledger_.failures = 0;
  world_.StartAndRecover();
  const std::string id = Exhaust();
  world_.Advance(absl::Seconds(3));
  EXPECT_LE(sink_.calls[id], 3);
  EXPECT_EQ(world_.engine->deliveries().Count(), 1u);
  EXPECT_TRUE(world_.source.finished.empty());
  world_.Advance(absl::Seconds(40));
  EXPECT_EQ(sink_.calls[id], 5);
  EXPECT_EQ(sink_.bodies, std::set<std::string>{id});
  EXPECT_EQ(ledger_.entries.size(), 1u);
  EXPECT_EQ(world_.engine->deliveries().Count(), 0u);
  EXPECT_EQ(world_.source.finished.at(7), 1);
  EXPECT_EQ(channel_->pushed.size(), 3u);
}

// Proves: T4
TEST_F(DeadLetterTest, ALedgerThatIsDownKeepsTheDelivery) {
  world_.host.sink = &sink_;
  world_.host.ledger = &ledger_;
  ledger_.failures = 0;
  world_.StartAndRecover();
  ledger_.failures = 2;
  const std::string id = Exhaust();
  EXPECT_EQ(world_.engine->deliveries().Count(), 1u);
  world_.Advance(absl::Seconds(20));
  EXPECT_EQ(ledger_.entries.count(id), 1u);
  EXPECT_EQ(world_.engine->deliveries().Count(), 0u);
  EXPECT_EQ(world_.engine->dead_letters().Count(), 1u);
}

// However slow the sink is, it has one call of an id at a time; and an ACK comes too late.
// Proves: T4
TEST_F(DeadLetterTest, OneAttemptIsOutAtATimeAndAnAckIsToldSo) {
  world_.host.sink = &sink_;
  sink_.slow = true;
  world_.StartAndRecover();
  const std::string id = Exhaust();
  world_.Advance(absl::Seconds(100));
  EXPECT_EQ(sink_.calls[id], 1);
  EXPECT_FAILS(world_.Ack(id, "billing"), kFailedPrecondition, kTerminal);
  EXPECT_FAILS(world_.dispatcher->Nack({.id = id, .client = "billing", .epoch = 1}),
               kFailedPrecondition, kTerminal);
  sink_.held[0](absl::UnavailableError("down"));
  EXPECT_FAILS(world_.Ack(id, "billing"), kFailedPrecondition, kTerminal);
  sink_.slow = false;
  world_.Advance(absl::Seconds(5));
  EXPECT_EQ(world_.engine->dead_letters().Count(), 1u);
  EXPECT_EQ(world_.dispatcher->Stats().dead_lettered, 1u);
}

// A kill between the ledger and the batch: the next start retires it without a push.
// Proves: T4, T5
TEST_F(DeadLetterTest, WhatIsInTheLedgerIsRetiredAtTheStart) {
  world_.host.ledger = &ledger_;
  world_.StartAndRecover();
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  world_.Kill();
  ledger_.entries[id] = 1;
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  world_.Advance(absl::Seconds(60));
  EXPECT_TRUE(channel->pushed.empty());
  EXPECT_EQ(world_.engine->deliveries().Count(), 0u);
  EXPECT_EQ(world_.NextOf("billing"), 8u);
  EXPECT_EQ(world_.source.finished.at(7), 1);
}

// Proves: T5
TEST_F(DeadLetterTest, AStartThatCannotAskTheLedgerArmsNothing) {
  world_.host.ledger = &ledger_;
  world_.StartAndRecover();
  world_.Deliver(7, {"billing"});
  world_.Kill();
  world_.Start();
  ledger_.failures = 1;
  EXPECT_EQ(world_.dispatcher->Recover().code(), StatusCode::kUnavailable);
  const auto channel = world_.Open("billing");
  EXPECT_FAILS(world_.dispatcher->Deliver({.source = world_.kSource}, {}).status(),
               kFailedPrecondition, kNotReady);
  EXPECT_OK(world_.dispatcher->Recover());
  world_.Advance(absl::Seconds(2));
  EXPECT_EQ(channel->pushed.size(), 1u);
}

// A message that kills the process on every push: each start counts its push before it makes it.
// Proves: A9, T7
TEST_F(DeadLetterTest, AttemptsAreCountedOverKills) {
  world_.StartAndRecover();
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  size_t pushes = 0;
  for (int boot = 0; boot < 5; ++boot) {
    const auto channel = world_.Open("billing");
    for (int step = 0; step < 120 && channel->pushed.empty(); ++step) {
      world_.Advance(absl::Milliseconds(100));
    }
    for (const Delivery& delivery : channel->pushed) {
      EXPECT_EQ(delivery.id, id);
      EXPECT_EQ(delivery.attempt, ++pushes);
    }
    world_.CutPower();
    world_.StartAndRecover();
  }
  world_.Advance(absl::Seconds(20));
  EXPECT_EQ(pushes, 3u);
  EXPECT_EQ(world_.engine->deliveries().Count(), 0u);
  EXPECT_EQ(world_.engine->dead_letters().Count(), 1u);
}

// Proves: T10
TEST_F(DeadLetterTest, ARedrivenOneIsDeliveredUnderANewId) {
  world_.StartAndRecover();
  const std::string id = Exhaust();
  const std::string new_id = world_.engine->NewDeliveryId();
  ASSERT_OK(world_.engine->dead_letters()
                .Redrive(id, {.new_id = new_id,
                              .due = world_.engine->EngineNow(),
                              .created = world_.clock.WallNow()})
                .Wait());
  world_.Kill();
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  world_.Advance(absl::Seconds(2));
  ASSERT_EQ(channel->ids(), std::vector<std::string>{new_id});
  EXPECT_EQ(channel->pushed[0].redriven_from, id);
  EXPECT_OK(world_.Ack(new_id, "billing"));
  EXPECT_EQ(world_.NextOf("billing"), 8u);
}

}  // namespace
}  // namespace holdfast
