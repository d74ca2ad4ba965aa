#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

class DispatcherPushTest : public testing::Test {
 protected:
  DispatcherWorld world_;
};

// Proves: A7
TEST_F(DispatcherPushTest, TheCursorOfTheSourceNeverPassesTheLowestUnfinished) {
  world_.StartAndRecover();
  const auto a = world_.Open("a"), b = world_.Open("b");
  std::vector<DeliverResult> events;
  for (uint64_t offset = 0; offset < 3; ++offset) {
    events.push_back(world_.Deliver(offset, {"a", "b"}));
  }
  for (const DeliverResult& event : events) EXPECT_OK(world_.Ack(event.targets[0].id, "a"));
  world_.Advance(absl::Seconds(1));
  const auto cursor = [&] {
    const auto progress = world_.engine->offsets().ReadSource(world_.kSource);
    return progress.ok() && progress->has_cursor ? progress->cursor : 0;
  };
  EXPECT_EQ(cursor(), 0u);
  EXPECT_OK(world_.Ack(events[0].targets[1].id, "b"));
  world_.Advance(absl::Seconds(1));
  EXPECT_EQ(cursor(), 1u);
  EXPECT_OK(world_.Ack(events[2].targets[1].id, "b"));
  EXPECT_OK(world_.Ack(events[1].targets[1].id, "b"));
  world_.Advance(absl::Seconds(1));
  EXPECT_EQ(cursor(), 3u);
}

// Proves: T11
TEST_F(DispatcherPushTest, WithoutAChannelADeliveryWaitsAndSpendsNoAttempt) {
  world_.StartAndRecover();
  const std::string first = world_.Deliver(7, {"billing"}).targets[0].id;
  const std::string second = world_.Deliver(8, {"billing"}).targets[0].id;
  world_.Advance(absl::Seconds(200));
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 2u);
  EXPECT_EQ(world_.engine->deliveries().Get(first)->delivery.attempt, 0u);
  const auto channel = world_.Open("billing");
  EXPECT_EQ(channel->ids(), (std::vector<std::string>{first, second}));
  EXPECT_EQ(channel->pushed[0].attempt, 1u);
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 0u);
}

// Proves: T9
TEST_F(DispatcherPushTest, AClosedChannelGivesItsDeliveriesToAnother) {
  world_.StartAndRecover();
  const auto first = world_.Open("billing");
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  const auto second = world_.Open("billing");
  EXPECT_TRUE(second->pushed.empty());
  world_.dispatcher->ChannelClosed("billing", first.get());
  world_.Settle();
  ASSERT_EQ(second->ids(), std::vector<std::string>{id});
  EXPECT_EQ(second->pushed[0].attempt, 2u);
  world_.dispatcher->ChannelClosed("billing", second.get());
  world_.Settle();
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 1u);
  EXPECT_OK(world_.Ack(id, "billing"));
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 0u);
}

// By when they were pushed, not by where they are from.
TEST_F(DispatcherPushTest, WhatAClosedChannelGivesBackGoesOutOldestPushFirst) {
  world_.StartAndRecover();
  const auto first = world_.Open("billing");
  std::vector<std::string> ids;
  for (const uint64_t partition : {2, 0, 1}) {
    for (uint64_t offset = 0; offset < 2; ++offset) {
      const auto result = world_.dispatcher->Deliver(
          {.source = {"orders", 1, partition}, .offset = offset, .event = "event"},
          {{.client = "billing"}});
      ASSERT_OK(result);
      ids.push_back(result->targets[0].id);
    }
    world_.Advance(absl::Seconds(1));
  }
  // Pushed once more: it is the newest.
  const Status nacked = world_.dispatcher->Nack({.id = ids[0], .client = "billing", .epoch = 1});
  ASSERT_OK(nacked);
  world_.Advance(absl::Seconds(5));
  ASSERT_EQ(first->pushed.size(), 7u);
  std::rotate(ids.begin(), ids.begin() + 1, ids.end());
  const auto second = world_.Open("billing");
  world_.dispatcher->ChannelClosed("billing", first.get());
  world_.Settle();
  EXPECT_EQ(second->ids(), ids);
}

// What has no number, and was pushed before a restart, is given back like everything else.
TEST_F(DispatcherPushTest, AClosedChannelGivesBackWhatHasNoNumber) {
  world_.StartAndRecover();
  ASSERT_OK(world_.dispatcher->Deliver({.source = world_.kSource, .event = "one", .token = 1},
                                       {{.client = "billing"}}));
  world_.Settle();
  world_.Kill();
  world_.StartAndRecover();
  ASSERT_OK(world_.dispatcher->Deliver({.source = world_.kSource, .event = "two", .token = 2},
                                       {{.client = "billing"}}));
  const auto first = world_.Open("billing");
  world_.Advance(absl::Seconds(1));
  ASSERT_EQ(first->pushed.size(), 2u);
  const auto second = world_.Open("billing");
  world_.dispatcher->ChannelClosed("billing", first.get());
  world_.Settle();
  ASSERT_EQ(second->pushed.size(), 2u);
  for (const std::string& id : second->ids()) EXPECT_OK(world_.Ack(id, "billing"));
  EXPECT_EQ(world_.dispatcher->Stats().in_flight, 0u);
  EXPECT_EQ(world_.source.tokens, (std::map<uint64_t, int>{{2, 1}}));
}

// A channel that closes while the count of its push is on its way: the push is made over the next
// one, and counted once.
// Proves: T1, T9
TEST_F(DispatcherPushTest, APushThatIsCountedIsMadeOverWhateverChannelComes) {
  world_.StartAndRecover();
  const std::string id = world_.Deliver(7, {"billing"}).targets[0].id;
  const auto first = std::make_shared<RecordingChannel>();
  world_.dispatcher->ChannelOpened("billing", first);
  world_.dispatcher->ChannelClosed("billing", first.get());
  world_.Settle();
  EXPECT_TRUE(first->pushed.empty());
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 1u);
  const auto second = world_.Open("billing");
  ASSERT_EQ(second->ids(), std::vector<std::string>{id});
  EXPECT_EQ(second->pushed[0].attempt, 1u);
  EXPECT_EQ(world_.engine->deliveries().Get(id)->delivery.attempt, 1u);
}

TEST_F(DispatcherPushTest, TheStatsOfAClientSayHowItGoes) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  const std::string old = world_.Deliver(7, {"billing"}).targets[0].id;
  world_.Advance(absl::Seconds(10));
  const std::string newer = world_.Deliver(8, {"billing"}).targets[0].id;
  EXPECT_OK(world_.Ack(newer, "billing"));
  world_.Advance(absl::Seconds(21));
  const auto of_billing = [&] { return world_.dispatcher->Stats().clients.at(0); };
  EXPECT_EQ(of_billing().client, "billing");
  EXPECT_EQ(of_billing().in_flight, 1u);
  EXPECT_EQ(of_billing().pushed, 3u);
  EXPECT_EQ(of_billing().redelivered, 1u);
  EXPECT_EQ(of_billing().acked, 1u);
  EXPECT_EQ(of_billing().oldest_age, absl::Seconds(31));
  EXPECT_EQ(of_billing().since_last_ack, absl::Seconds(21));
  world_.Kill();
  world_.StartAndRecover();
  EXPECT_EQ(of_billing().oldest_age, absl::Seconds(31)) << "from the wall clock";
  EXPECT_OK(world_.Ack(old, "billing"));
  EXPECT_EQ(of_billing().oldest_age, absl::ZeroDuration());
}

// What ends while it waits leaves nothing behind.
TEST_F(DispatcherPushTest, OfManyThatEndWhileTheyWaitTheLastStillGoesOut) {
  world_.StartAndRecover();
  for (uint64_t offset = 0; offset < 500; ++offset) {
    const std::string id = world_.Deliver(offset, {"billing"}).targets[0].id;
    if (offset % 100 != 0) world_.dispatcher->Withdraw(id, [](const Status&) {});
    world_.Settle();
  }
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 5u);
  const auto channel = world_.Open("billing");
  EXPECT_EQ(channel->pushed.size(), 5u);
  EXPECT_EQ(world_.dispatcher->Stats().waiting, 0u);
}

TEST_F(DispatcherPushTest, ChannelsOfAClientTakeTurns) {
  world_.StartAndRecover();
  const auto one = world_.Open("billing"), two = world_.Open("billing");
  for (uint64_t offset = 0; offset < 10; ++offset) world_.Deliver(offset, {"billing"});
  EXPECT_EQ(one->pushed.size(), 5u);
  EXPECT_EQ(two->pushed.size(), 5u);
}

TEST_F(DispatcherPushTest, WhatIsNotWantedAnyMoreIsWithdrawnBeforeItsNextPush) {
  bool wanted = true;
  world_.host.still_wanted = [&](const Delivery&) { return wanted; };
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  world_.Deliver(7, {"billing"});
  wanted = false;
  world_.Advance(absl::Seconds(31));
  EXPECT_EQ(channel->pushed.size(), 1u);
  EXPECT_EQ(world_.dispatcher->Stats().withdrawn, 1u);
  EXPECT_EQ(world_.source.finished.at(7), 1);
}

}  // namespace
}  // namespace holdfast
