// A source that another instance takes, and that comes back.
#include <deque>

#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

class Owner final : public OwnershipGuard {
 public:
  bool Owns(const SourceKey&) override { return owns; }
  bool owns = true;
};

// Keeps the question until the test answers it.
class SlowSink final : public DeadLetterSink {
 public:
  void Write(const Delivery&, std::string_view,
             std::function<void(absl::StatusOr<DeadLetterPlace>)> done) override {
    waiting.push_back(std::move(done));
  }
  std::deque<std::function<void(absl::StatusOr<DeadLetterPlace>)>> waiting;
};

class DispatcherMoveTest : public testing::Test {
 protected:
  DispatcherMoveTest() { world_.host.guard = &owner_; }

  void LetGo() {
    owner_.owns = false;
    EXPECT_OK(world_.dispatcher->LetGo(world_.kSource));
  }
  void ComesBack(std::optional<uint64_t> handed_in_before = {}) {
    EXPECT_OK(world_.dispatcher->Adopt(world_.kSource, handed_in_before));
    owner_.owns = true;
  }
  std::vector<DeliverOutcome> OutcomesOf(uint64_t from, uint64_t end, const std::string& client) {
    std::vector<DeliverOutcome> outcomes;
    for (uint64_t offset = from; offset < end; ++offset) {
      outcomes.push_back(world_.Deliver(offset, {client}).targets.at(0).outcome);
    }
    return outcomes;
  }
  static std::vector<DeliverOutcome> Times(size_t count, DeliverOutcome outcome) {
    return std::vector(count, outcome);
  }

  Owner owner_;
  DispatcherWorld world_;
};

// Proves: S5, S9
TEST_F(DispatcherMoveTest, WhatIsLetGoEndsHereAndIsNotFinished) {
  world_.StartAndRecover();
  const auto channel = world_.Open("billing");
  std::vector<std::string> ids;
  for (uint64_t offset = 0; offset < 5; ++offset) {
    ids.push_back(world_.Deliver(offset, {"billing", "audit"}).targets[0].id);
  }
  ASSERT_OK(world_.Ack(ids[0], "billing"));
  ASSERT_OK(world_.Ack(ids[3], "billing"));  // out of order
  const std::string unnumbered =
      world_.dispatcher
          ->Deliver({.source = world_.kSource, .offset = {}, .event = "e"}, {{.client = "billing"}})
          ->targets[0]
          .id;
  LetGo();
  EXPECT_EQ(world_.engine->deliveries().Count(), 1u);
  EXPECT_OK(world_.engine->deliveries().Get(unnumbered).status()) << "nobody else has it";
  EXPECT_EQ(world_.dispatcher->Stats().moved_away, 8u);
  EXPECT_EQ(world_.dispatcher->Stats().withdrawn, 0u);
  EXPECT_EQ(world_.NextOf("billing"), 1u);
  EXPECT_EQ(world_.NextOf("audit"), 0u);
  world_.Advance(absl::Seconds(60));
  EXPECT_TRUE(world_.source.finished.empty());
  EXPECT_EQ(world_.engine->offsets().ReadSource(world_.kSource)->cursor, 0u);
  // Whatever the guard says meanwhile.
  owner_.owns = true;
  EXPECT_FAILS(world_.dispatcher->Deliver({.source = world_.kSource, .offset = 5, .event = "e"},
                                          {{.client = "billing"}}),
               kPermissionDenied, kStaleOwner);
  EXPECT_EQ(world_.Ack(ids[1], "billing").code(), StatusCode::kNotFound);
  LetGo();  // again
  EXPECT_EQ(world_.dispatcher->Stats().moved_away, 8u);
}

// Its owner in between died, and nothing of it was mirrored.
// Proves: S9
TEST_F(DispatcherMoveTest, WhatComesBackIsDeliveredAgain) {
  for (const bool restarted : {false, true}) {
    world_.Stop();
    world_.storage.reset();
    world_.StartAndRecover();
    std::vector<std::string> ids;
    for (uint64_t offset = 0; offset < 5; ++offset) {
      ids.push_back(world_.Deliver(offset, {"billing"}).targets[0].id);
    }
    ASSERT_OK(world_.Ack(ids[0], "billing"));
    LetGo();
    if (restarted) {
      world_.CutPower();
      world_.StartAndRecover();
    }
    ComesBack(/*handed_in_before=*/3);
    EXPECT_EQ(OutcomesOf(0, 1, "billing"), Times(1, DeliverOutcome::kAlreadyAcknowledged));
    EXPECT_EQ(OutcomesOf(1, 3, "billing"), Times(2, DeliverOutcome::kAccepted));
    EXPECT_EQ(world_.dispatcher->Stats().redispatched, 2u);
    // A kill before the rest was handed in: it is not taken for finished.
    world_.Kill();
    world_.StartAndRecover();
    ComesBack();
    EXPECT_EQ(OutcomesOf(1, 3, "billing"), Times(2, DeliverOutcome::kAlreadyInFlight));
    EXPECT_EQ(OutcomesOf(3, 6, "billing"), Times(3, DeliverOutcome::kAccepted));
    EXPECT_EQ(world_.NextOf("billing"), 1u);
  }
}

// A client that began at the owner in between has what it was handed there once more.
// Proves: S9
TEST_F(DispatcherMoveTest, AClientThatIsNewHereGetsItsEvents) {
  world_.StartAndRecover();
  for (uint64_t offset = 0; offset < 9; ++offset) world_.Deliver(offset, {"billing"});
  LetGo();
  ASSERT_OK(world_.engine->offsets().Write({"orders", "audit", 0}, {7, 1}).Wait());
  ComesBack();
  EXPECT_EQ(OutcomesOf(6, 7, "audit"), Times(1, DeliverOutcome::kOutOfRange));
  EXPECT_EQ(OutcomesOf(7, 9, "audit"), Times(2, DeliverOutcome::kAccepted));
}

// Beyond where it was, everything counts as before, after a restart too.
// Proves: O4
TEST_F(DispatcherMoveTest, WhatWasHandedInSinceCountsAgain) {
  world_.StartAndRecover();
  for (uint64_t offset = 0; offset < 3; ++offset) world_.Deliver(offset, {"billing"});
  LetGo();
  ComesBack();
  std::vector<std::string> ids;
  for (uint64_t offset = 0; offset < 6; ++offset) {
    ids.push_back(world_.Deliver(offset, {"billing"}).targets[0].id);
  }
  ASSERT_OK(world_.Ack(ids[4], "billing"));
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(OutcomesOf(4, 5, "billing"), Times(1, DeliverOutcome::kAlreadyAcknowledged));
    EXPECT_EQ(OutcomesOf(5, 6, "billing"), Times(1, DeliverOutcome::kAlreadyInFlight));
    world_.CutPower();
    world_.StartAndRecover();
  }
}

// Proves: S5, T4
TEST_F(DispatcherMoveTest, WhatIsWithTheDeadLettersEndsWhenItComesBackFromThere) {
  SlowSink sink;
  world_.options.attempts_max = 1;
  world_.options.ack_timeout = absl::Seconds(1);
  world_.host.sink = &sink;
  world_.StartAndRecover();
  world_.Open("billing");
  for (uint64_t offset = 0; offset < 2; ++offset) world_.Deliver(offset, {"billing"});
  world_.Advance(absl::Seconds(3));
  ASSERT_EQ(sink.waiting.size(), 2u);
  LetGo();
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 2u);
  sink.waiting[0](DeadLetterPlace{"dlq", 1});
  sink.waiting[1](absl::UnavailableError("away"));
  world_.Advance(absl::Seconds(30));
  EXPECT_EQ(world_.dispatcher->Pending("billing"), 0u);
  EXPECT_EQ(world_.engine->dead_letters().Count(), 1u);
  EXPECT_EQ(world_.dispatcher->Stats().moved_away, 1u);
  EXPECT_EQ(world_.NextOf("billing"), 0u);
}

}  // namespace
}  // namespace holdfast
