#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

class DispatcherEndTest : public testing::Test {
 protected:
  DispatcherWorld world_;
};

// Success is told when the batch is durable, and not before.
// Proves: A5
TEST_F(DispatcherEndTest, AnAckSucceedsWhenItIsDurable) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  std::vector<Status> answers;
  world_.dispatcher->Ack({.id = id, .client = "billing", .epoch = 1},
                         [&](const Status& status) { answers.push_back(status); });
  EXPECT_TRUE(answers.empty());
  EXPECT_TRUE(world_.source.finished.empty());
  world_.Settle();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_OK(answers[0]);
  EXPECT_EQ(world_.source.finished, (std::map<uint64_t, int>{{7, 1}}));
  EXPECT_EQ(world_.NextOf("billing"), 8u);
  world_.CutPower();
  world_.StartAndRecover();
  EXPECT_EQ(world_.engine->deliveries().Count(), 0u);
  EXPECT_EQ(world_.NextOf("billing"), 8u);
}

// Proves: A5
TEST_F(DispatcherEndTest, AnAckThatCannotBeWrittenLeavesTheDeliveryInFlight) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  const Status refused = world_.Ack(id, "billing", 1, std::string(70'000, 'k'));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  EXPECT_TRUE(world_.source.finished.empty());
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 1u);
  EXPECT_OK(world_.Ack(id, "billing"));
  EXPECT_EQ(world_.source.finished.at(7), 1);
}

// Proves: A2, A3
TEST_F(DispatcherEndTest, OnlyTheOwnerAcknowledges) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  EXPECT_FAILS(world_.Ack(id, "audit"), kPermissionDenied, kWrongClient);
  EXPECT_FAILS(world_.Ack(id, "billing", 0), kPermissionDenied, kStaleOwner);
  EXPECT_EQ(world_.Ack("1-dead-1", "billing").code(), StatusCode::kNotFound);
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 1u);
  EXPECT_EQ(world_.dispatcher->Stats().refused_acks, 3u);
  EXPECT_OK(world_.Ack(id, "billing"));
}

// Proves: A3
TEST_F(DispatcherEndTest, ARepeatedAckGetsTheFirstAnswerAndHasNoEffect) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  EXPECT_OK(world_.Ack(id, "billing", 1, "key"));
  EXPECT_OK(world_.Ack(id, "billing", 1, "key"));
  EXPECT_EQ(world_.Ack(id, "billing", 1, "other").code(), StatusCode::kNotFound);
  EXPECT_EQ(world_.Ack(id, "audit", 1, "key").code(), StatusCode::kNotFound);
  EXPECT_EQ(world_.Ack(id, "billing", 2, "key").code(), StatusCode::kNotFound);
  EXPECT_EQ(world_.dispatcher->Stats().acked, 1u);
  EXPECT_EQ(world_.source.finished.at(7), 1);
}

// The store remembers it, so a restart does not forget it.
// Proves: A3, A4
TEST_F(DispatcherEndTest, ARepeatedAckGetsTheFirstAnswerAfterARestartToo) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  const std::string other = world_.Deliver(8, {"billing"}).targets[0].id;
  EXPECT_OK(world_.Ack(id, "billing", 1, "key"));
  for (const bool power : {false, true}) {
    power ? world_.CutPower() : world_.Kill();
    world_.StartAndRecover();
    EXPECT_OK(world_.Ack(id, "billing", 1, "key"));
    EXPECT_EQ(world_.Ack(id, "billing", 1, "other").code(), StatusCode::kNotFound);
    EXPECT_EQ(world_.Ack(id, "audit", 1, "key").code(), StatusCode::kNotFound);
    EXPECT_EQ(world_.Ack(id, "billing", 2, "key").code(), StatusCode::kNotFound);
    EXPECT_EQ(world_.dispatcher->Stats().acked, 0u);
    EXPECT_EQ(world_.dispatcher->Stats().refused_acks, 3u);
  }
  EXPECT_EQ(world_.source.finished.at(7), 1);
  EXPECT_OK(world_.Ack(other, "billing"));
  EXPECT_EQ(world_.dispatcher->Stats().acked, 1u);
}

// "It is not in flight" rests on a removal too.
// Proves: A8
TEST_F(DispatcherEndTest, NotFoundIsToldWhenTheNewestRemovalIsDurable) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  std::vector<StatusCode> told;
  const auto note = [&](const Status& status) { told.push_back(status.code()); };
  world_.dispatcher->Ack({.id = id, .client = "billing", .epoch = 1}, note);
  world_.dispatcher->Ack({.id = "1-dead-1", .client = "billing", .epoch = 1}, note);
  EXPECT_TRUE(told.empty());
  world_.Settle();
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, (std::vector<StatusCode>{StatusCode::kOk, StatusCode::kNotFound}));
}

// Two that come before the first is durable: both wait for it.
// Proves: A3, A8
TEST_F(DispatcherEndTest, AnAckDuringTheFirstIsToldWithIt) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  int told = 0;
  for (int i = 0; i < 3; ++i) {
    world_.dispatcher->Ack({.id = id, .client = "billing", .epoch = 1}, [&](const Status& status) {
      EXPECT_OK(status);
      ++told;
    });
  }
  EXPECT_EQ(told, 0);
  world_.Settle();
  EXPECT_EQ(told, 3);
  EXPECT_EQ(world_.dispatcher->Stats().acked, 1u);
}

// Proves: A6
TEST_F(DispatcherEndTest, TheSourceIsToldOnceAfterTheLastTarget) {
  world_.StartAndRecover();
  const auto a = world_.Open("a"), b = world_.Open("b");
  const DeliverResult result = world_.Deliver(7, {"a", "b"});
  EXPECT_OK(world_.Ack(result.targets[1].id, "b"));
  EXPECT_TRUE(world_.source.finished.empty());
  EXPECT_OK(world_.Ack(result.targets[0].id, "a"));
  EXPECT_EQ(world_.source.finished.at(7), 1);
}

TEST_F(DispatcherEndTest, AnEventWithoutANumberComesBackByItsToken) {
  world_.StartAndRecover();
  const auto a = world_.Open("a"), b = world_.Open("b");
  ASSERT_OK_AND_ASSIGN(const DeliverResult result,
                       world_.dispatcher->Deliver(
                           {.source = world_.kSource, .offset = {}, .event = "e", .token = 99},
                           {{.client = "a"}, {.client = "b"}}));
  world_.Settle();
  EXPECT_OK(world_.Ack(result.targets[0].id, "a"));
  EXPECT_TRUE(world_.source.tokens.empty());
  EXPECT_OK(world_.Ack(result.targets[1].id, "b"));
  EXPECT_EQ(world_.source.tokens.at(99), 1);
  EXPECT_EQ(world_.NextOf("a"), 0u);
}

// Proves: T1
TEST_F(DispatcherEndTest, ANackBringsItForwardAndIsNoAttempt) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  EXPECT_OK(world_.dispatcher->Nack({.id = id, .client = "billing", .epoch = 1}));
  world_.Settle();
  EXPECT_EQ(world_.engine->deliveries().Get(id)->delivery.attempt, 1u);
  world_.Advance(absl::Milliseconds(700));
  EXPECT_EQ(channel->pushed.size(), 1u);
  world_.Advance(absl::Milliseconds(700));
  ASSERT_EQ(channel->pushed.size(), 2u);
  EXPECT_EQ(channel->pushed[1].id, id);
  EXPECT_EQ(channel->pushed[1].attempt, 2u);
  EXPECT_EQ(world_.engine->deliveries().Get(id)->delivery.attempt, 2u);
}

TEST_F(DispatcherEndTest, AWithdrawnDeliveryFinishesItsSource) {
  world_.StartAndRecover();
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  Status answer = absl::UnknownError("");
  world_.dispatcher->Withdraw(id, [&](const Status& status) { answer = status; });
  world_.Settle();
  EXPECT_OK(answer);
  EXPECT_EQ(world_.source.finished.at(7), 1);
  EXPECT_EQ(world_.NextOf("billing"), 8u);
  world_.dispatcher->Withdraw(id, [&](const Status& status) { answer = status; });
  world_.Settle();
  EXPECT_EQ(answer.code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace holdfast
