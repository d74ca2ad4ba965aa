// A partition that moves between two instances: what one finished the other does not make again,
// and whoever was replaced does nothing any more.
#include "meta/membership.h"
#include "meta/memory_meta.h"
#include "stores/offset_mirror.h"
#include "tests/meta/faulty_meta.h"
#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

const SourceKey& kSource = DispatcherWorld::kSource;

// An instance with all that it needs for its part in a cluster.
class Member {
 public:
  Member(MetaStore& meta, const std::string& name, uint64_t nonce) {
    membership_ = *Membership::Join(meta, nonce, world.clock, {.instance = name, .thread = false});
    world.Start();
    mirror_ =
        *OffsetMirror::Open(*world.engine, meta, *membership_, world.clock, {.thread = false});
    world.host.guard = mirror_.get();
    world.dispatcher =
        Dispatcher::Make(*world.engine, world.rng, world.options, world.host).value();
    EXPECT_OK(world.dispatcher->Recover());
    channel = world.Open("billing");
  }
  ~Member() {
    world.dispatcher.reset();
    mirror_.reset();
    membership_.reset();
    world.Stop();
  }

  Membership& membership() { return *membership_; }
  OffsetMirror& mirror() { return *mirror_; }
  // Returns from where the source hands in again.
  uint64_t TakeOver() {
    EXPECT_OK(membership_->Acquire(kSource));
    const auto restored = mirror_->Restore(kSource);
    EXPECT_OK(restored);
    EXPECT_OK(world.dispatcher->Adopt(kSource, std::nullopt));
    world.Settle();
    return restored.ok() ? restored->cursor.value_or(0) : 0;
  }
  std::string Deliver(uint64_t offset) {
    return world.Deliver(offset, {"billing"}).targets.at(0).id;
  }
  DeliverOutcome OutcomeOf(uint64_t offset) {
    return world.Deliver(offset, {"billing"}).targets.at(0).outcome;
  }
  Status Ack(const std::string& id) { return world.Ack(id, "billing"); }

  DispatcherWorld world;
  std::shared_ptr<RecordingChannel> channel;

 private:
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<OffsetMirror> mirror_;
};

class TakeoverTest : public testing::Test {
 protected:
  // Time goes on for both; only those named show that they live.
  void Pass(absl::Duration by, const std::vector<Member*>& alive) {
    for (absl::Duration step = absl::Seconds(1); by > absl::ZeroDuration(); by -= step) {
      for (Member* member : {&one_, &two_}) member->world.clock.Advance(step);
      clock_.Advance(step);
      for (Member* member : alive) {
        member->membership().Beat();
        EXPECT_OK(member->mirror().Flush());
      }
    }
  }

  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta to_one_{meta_};
  Member one_{to_one_, "one", 1}, two_{meta_, "two", 2};
};

// Proves: S9
TEST_F(TakeoverTest, WhatWasMirroredIsNotMadeAgainAndTheRestIs) {
  ASSERT_EQ(one_.TakeOver(), 0u);
  std::vector<std::string> ids;
  for (uint64_t offset = 0; offset < 10; ++offset) ids.push_back(one_.Deliver(offset));
  for (size_t i = 0; i < 5; ++i) ASSERT_OK(one_.Ack(ids[i]));
  one_.world.Advance(absl::Seconds(1));  // the cursor is written
  ASSERT_OK(one_.mirror().Flush());
  ASSERT_OK(one_.Ack(ids[5]));  // since the last mirror write
  Pass(absl::Seconds(11), {&two_});
  const uint64_t from = two_.TakeOver();
  EXPECT_EQ(from, 5u);
  for (uint64_t offset = from - 2; offset < 10; ++offset) {
    const bool finished = offset < 5;
    EXPECT_EQ(two_.OutcomeOf(offset),
              finished ? DeliverOutcome::kOutOfRange : DeliverOutcome::kAccepted)
        << offset;
  }
  EXPECT_EQ(two_.channel->pushed.size(), 5u);  // 5 comes again, and 6 .. 9
  EXPECT_EQ(two_.channel->pushed.front().offset, 5u);
}

// Proves: S5
TEST_F(TakeoverTest, WhoeverWasReplacedDoesNothingAnyMore) {
  one_.TakeOver();
  const std::string id = one_.Deliver(0);
  ASSERT_EQ(one_.channel->pushed.size(), 1u);
  Pass(absl::Seconds(11), {&two_});
  two_.TakeOver();
  EXPECT_FAILS(one_.Ack(id), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(one_.world.dispatcher->Deliver({.source = kSource, .offset = 1, .event = "e"},
                                              {{.client = "billing"}}),
               kPermissionDenied, kStaleOwner);
  one_.world.Advance(absl::Seconds(60));
  EXPECT_EQ(one_.channel->pushed.size(), 1u) << "a push of another's";
  EXPECT_TRUE(one_.world.source.finished.empty());
  // The new owner delivers it, and only its acknowledgement counts.
  const std::string again = two_.Deliver(0);
  ASSERT_OK(two_.Ack(again));
  EXPECT_EQ(two_.world.source.finished.at(0), 1);
}

// Proves: S9
TEST_F(TakeoverTest, WhatCameBackWasFinishedElsewhereAndIsWithdrawn) {
  one_.TakeOver();
  for (uint64_t offset = 0; offset < 4; ++offset) (void)one_.Deliver(offset);  // pushed, pending
  Pass(absl::Seconds(11), {&two_});
  two_.TakeOver();
  for (uint64_t offset = 0; offset < 6; ++offset) {
    const std::string id = two_.Deliver(offset);
    if (offset < 3) {
      ASSERT_OK(two_.Ack(id));
    }
  }
  two_.world.Advance(absl::Seconds(1));
  ASSERT_OK(two_.mirror().Flush());
  one_.membership().Beat();  // it joins again
  Pass(absl::Seconds(11), {&one_});
  EXPECT_EQ(one_.TakeOver(), 3u);
  EXPECT_EQ(one_.world.dispatcher->Pending("billing"), 1u);  // 3, which nobody acknowledged
  EXPECT_EQ(one_.OutcomeOf(2), DeliverOutcome::kAlreadyAcknowledged);
  EXPECT_EQ(one_.OutcomeOf(3), DeliverOutcome::kAlreadyInFlight);
  EXPECT_EQ(one_.OutcomeOf(4), DeliverOutcome::kAccepted);
}

// Proves: S2, S9
TEST_F(TakeoverTest, AnOwnerThatCannotMirrorRefusesAcknowledgements) {
  one_.TakeOver();
  const std::string id = one_.Deliver(0);
  to_one_.SetFaults([](FaultyMeta::Call) { return FaultyMeta::Fault::kUnreachable; });
  one_.world.clock.Advance(absl::Seconds(3));
  clock_.Advance(absl::Seconds(3));
  EXPECT_TRUE(one_.membership().Owns(kSource));
  EXPECT_FAILS(one_.Ack(id), kPermissionDenied, kStaleOwner);
  to_one_.Heal();
  ASSERT_OK(one_.mirror().Flush());
  EXPECT_OK(one_.Ack(id));
}

}  // namespace
}  // namespace holdfast
