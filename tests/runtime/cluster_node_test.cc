#include "runtime/cluster_node.h"

#include <atomic>
#include <thread>

#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

using Fault = FaultyMeta::Fault;

constexpr uint64_t kPartitions = 4;

std::vector<SourceKey> Partitions() {
  std::vector<SourceKey> partitions;
  for (uint64_t number = 0; number < kPartitions; ++number) {
    partitions.push_back({"orders", 1, number});
  }
  return partitions;
}

// An instance, and the host of it. Nothing happens by itself.
class Member final : public ClusterHost {
 public:
  Member(MetaStore& meta, std::string name) : meta_(meta), name_(std::move(name)) { Begin(); }
  ~Member() override { End(); }

  void Begin() {
    world.Start();
    ClusterOptions options{.instance = name_, .partitions = Partitions()};
    options.clock = &world.clock;
    options.join_wait = absl::ZeroDuration();
    auto opened = ClusterNode::Open(*world.engine, meta_, options, /*threads=*/false);
    ASSERT_OK(opened);
    node_ = *std::move(opened);
    world.host.guard = &node_->guard();
    world.host.ledger = &node_->ledger();
    world.dispatcher =
        Dispatcher::Make(*world.engine, world.rng, world.options, world.host).value();
    ASSERT_OK(world.dispatcher->Recover());
    channel = world.Open("billing");
    node_->Start(*world.dispatcher, *this);
  }
  // In good order, unless it has left before.
  void End() {
    world.dispatcher.reset();
    node_.reset();
    world.Stop();
    served.clear();
  }
  void Taken(const OwnedPartition& taken) override { served[taken.partition.partition] = taken; }
  void Left(const SourceKey& partition) override { served.erase(partition.partition); }

  ClusterNode& node() { return *node_; }
  DeliverResult Deliver(uint64_t partition, uint64_t offset,
                        const std::vector<Target>& targets = {{.client = "billing"}}) {
    auto result = world.dispatcher->Deliver(
        {.source = {"orders", 1, partition}, .offset = offset, .event = "e"}, targets);
    EXPECT_OK(result);
    world.Settle();
    return result.ok() ? *std::move(result) : DeliverResult{.targets = {{}}, .durable = {}};
  }
  std::string IdOf(uint64_t partition, uint64_t offset) {
    return Deliver(partition, offset).targets[0].id;
  }
  Status Ack(const std::string& id) { return world.Ack(id, "billing"); }
  // The partitions that it serves, each from its cursor up to `end`; how many are new to it.
  uint64_t Replay(uint64_t end) {
    uint64_t accepted = 0;
    for (const auto& [number, taken] : served) {
      for (uint64_t offset = taken.cursor.value_or(0); offset < end; ++offset) {
        accepted += Deliver(number, offset).targets[0].outcome == DeliverOutcome::kAccepted;
      }
    }
    return accepted;
  }

  DispatcherWorld world;
  std::shared_ptr<RecordingChannel> channel;
  std::map<uint64_t, OwnedPartition> served;  // by number

 private:
  MetaStore& meta_;
  const std::string name_;
  std::unique_ptr<ClusterNode> node_;
};

class ClusterNodeTest : public testing::Test {
 protected:
  // Time goes on for all of them; those named live.
  void Pass(absl::Duration by, const std::vector<Member*>& alive) {
    for (absl::Duration step = absl::Seconds(1); by > absl::ZeroDuration(); by -= step) {
      clock_.Advance(step);
      for (Member* member : all_) member->world.Advance(step);
      for (Member* member : alive) {
        member->node().Beat();
        (void)member->node().Mirror();  // a test looks at what comes of it
        member->node().Turn();
        member->world.Settle();
      }
    }
  }
  void Add(Member& member) { all_.push_back(&member); }

  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta to_one_{meta_};
  std::vector<Member*> all_;
};

// Proves: S6
TEST_F(ClusterNodeTest, WrongOptionsAreRefusedByName) {
  DispatcherWorld world;
  world.Start();
  const std::vector<SourceKey> twice{{"t", 1, 0}, {"t", 1, 0}};
  for (const auto& [name, options] :
       {std::pair<std::string, ClusterOptions>{"instance", {}},
        {"partitions", {.instance = "i", .partitions = twice}},
        {"lease_ttl", {.instance = "i", .lease_ttl = {}}},
        {"lease_margin", {.instance = "i", .lease_margin = -absl::Seconds(1)}},
        {"mirror_interval", {.instance = "i", .mirror_interval = {}}},
        {"balance_interval", {.instance = "i", .balance_interval = {}}},
        {"join_wait", {.instance = "i", .join_wait = absl::Hours(3)}}}) {
    const auto refused = Cluster::OpenOn(*world.engine, meta_, options);
    EXPECT_FAILS(refused, kInvalidArgument, kNone);
    EXPECT_TRUE(Message(refused.status()).starts_with(name)) << refused.status();
  }
  const auto refused = Cluster::Open(*world.engine, {.instance = "i"});
  EXPECT_FAILS(refused, kInvalidArgument, kNone);
  EXPECT_TRUE(Message(refused.status()).starts_with("shared.backend")) << refused.status();
  to_one_.SetFaults([](FaultyMeta::Call) { return Fault::kUnreachable; });
  EXPECT_FAILS(Cluster::OpenOn(*world.engine, to_one_, {.instance = "i"}), kUnavailable, kIo);
  EXPECT_TRUE(meta_.List("/em/", {})->entries.empty());
}

// Proves: S5
TEST_F(ClusterNodeTest, PartitionsAreSharedAndFollowADeath) {
  Member one(to_one_, "one");
  Add(one);
  Pass(absl::Seconds(2), {&one});
  EXPECT_EQ(one.served.size(), kPartitions);
  const auto before = one.served;
  Member two(meta_, "two");
  Add(two);
  Pass(absl::Seconds(3), {&one, &two});
  EXPECT_EQ(one.served.size(), 2u);
  EXPECT_EQ(two.served.size(), 2u);
  EXPECT_EQ(one.node().Stats().handed_over, 2u);
  for (const auto& [number, taken] : two.served) {
    EXPECT_FALSE(one.served.contains(number));
    EXPECT_GT(taken.token, before.at(number).token);
    EXPECT_TRUE(two.node().guard().Owns(taken.partition));
    EXPECT_FALSE(one.node().guard().Owns(taken.partition));
  }
  EXPECT_EQ(two.node().Stats().instances, 2u);
  EXPECT_GT(two.node().LeaseLeft(), absl::Seconds(8));
  Pass(absl::Seconds(12), {&two});
  EXPECT_EQ(two.served.size(), kPartitions);
  EXPECT_EQ(one.node().LeaseLeft(), absl::ZeroDuration());
  // It comes back, and gets as much as is its share, not what it had.
  Pass(absl::Seconds(4), {&one, &two});
  EXPECT_EQ(one.served.size(), 2u);
  EXPECT_EQ(two.served.size(), 2u);
  EXPECT_EQ(one.node().Stats().lost, 2u);
}

// What was acknowledged is known there, what is in flight comes there, and ends here.
// Proves: S5, S9
TEST_F(ClusterNodeTest, AHandOverRepeatsNothingThatWasAcknowledged) {
  Member one(to_one_, "one");
  Add(one);
  Pass(absl::Seconds(1), {&one});
  for (uint64_t number = 0; number < kPartitions; ++number) {
    std::vector<std::string> ids;
    for (uint64_t offset = 0; offset < 6; ++offset) ids.push_back(one.IdOf(number, offset));
    for (uint64_t i = 0; i < 4; ++i) ASSERT_OK(one.Ack(ids[i]));
  }
  Member two(meta_, "two");
  Add(two);
  two.node().Turn();  // it is there, and has nothing to take
  one.node().Turn();
  EXPECT_EQ(one.served.size(), 2u);
  EXPECT_EQ(one.world.dispatcher->Pending("billing"), 4u);
  EXPECT_EQ(one.world.dispatcher->Stats().moved_away, 4u);
  two.node().Turn();
  ASSERT_EQ(two.served.size(), 2u);
  EXPECT_EQ(two.Replay(8), 8u);  // 4 .. 7 of two partitions
  EXPECT_EQ(two.world.dispatcher->Stats().redispatched, 4u);
  for (const Delivery& pushed : two.channel->pushed) EXPECT_GE(*pushed.offset, 4u);
}

// Nobody took anything while the lease was lost: what is in flight goes on under its ids.
// Proves: S9
TEST_F(ClusterNodeTest, WhatNobodyTookContinues) {
  Member one(to_one_, "one");
  Add(one);
  Pass(absl::Seconds(1), {&one});
  std::vector<std::string> ids;
  for (uint64_t offset = 0; offset < 4; ++offset) ids.push_back(one.IdOf(0, offset));
  ASSERT_OK(one.Ack(ids[2]));  // out of order
  Pass(absl::Seconds(15), {});
  EXPECT_FALSE(one.node().guard().Owns({"orders", 1, 0}));
  Pass(absl::Seconds(3), {&one});
  EXPECT_EQ(one.node().Stats().lost, kPartitions);
  EXPECT_EQ(one.node().Stats().continued, kPartitions);
  EXPECT_EQ(one.Replay(4), 4u * (kPartitions - 1));
  EXPECT_EQ(one.Deliver(0, 2).targets[0].outcome, DeliverOutcome::kAlreadyAcknowledged);
  EXPECT_OK(one.Ack(ids[0]));
  // Over a restart too.
  one.End();
  one.Begin();
  one.node().Turn();
  EXPECT_EQ(one.node().Stats().continued, kPartitions);
  EXPECT_EQ(one.Deliver(0, 1).targets[0].id, ids[1]);
  EXPECT_EQ(one.Deliver(0, 2).targets[0].outcome, DeliverOutcome::kAlreadyAcknowledged);
}

// The owner in between died before it made anything known.
// Proves: S9
TEST_F(ClusterNodeTest, WhatComesBackIsDeliveredAgain) {
  Member one(to_one_, "one");
  Add(one);
  Pass(absl::Seconds(1), {&one});
  for (uint64_t offset = 0; offset < 4; ++offset) one.Deliver(0, offset);
  Member two(meta_, "two");
  Add(two);
  Pass(absl::Seconds(12), {&two});
  ASSERT_EQ(two.served.size(), kPartitions);
  for (uint64_t offset = 0; offset < 6; ++offset) {
    two.Deliver(0, offset, {{.client = "billing"}, {.client = "audit"}});
  }
  Pass(absl::Seconds(12), {&one});
  ASSERT_EQ(one.served.size(), kPartitions);
  EXPECT_EQ(one.served.at(0).cursor.value_or(0), 0u);
  for (uint64_t offset = 0; offset < 6; ++offset) {
    const DeliverResult again =
        one.Deliver(0, offset, {{.client = "billing"}, {.client = "audit"}});
    for (const auto& target : again.targets) EXPECT_EQ(target.outcome, DeliverOutcome::kAccepted);
  }
}

// Proves: S5
TEST_F(ClusterNodeTest, WhoeverLeavesFreesItsPartitionsAtOnce) {
  Member one(to_one_, "one"), two(meta_, "two");
  Add(one), Add(two);
  Pass(absl::Seconds(3), {&one, &two});
  ASSERT_EQ(one.served.size(), 2u);
  const uint64_t number = one.served.begin()->first;
  const std::string id = one.IdOf(number, 0);
  ASSERT_OK(one.Ack(id));
  one.Deliver(number, 1);
  one.world.Advance(absl::Seconds(1));  // the cursor is written
  EXPECT_OK(one.node().Leave());
  EXPECT_OK(one.node().Leave());
  EXPECT_TRUE(one.served.empty());
  EXPECT_EQ(one.node().LeaseLeft(), absl::ZeroDuration());
  EXPECT_EQ(one.world.engine->deliveries().Count(), 1u) << "it may be back before anybody takes it";
  two.node().Turn();
  EXPECT_EQ(two.served.size(), kPartitions);
  EXPECT_EQ(two.served.at(number).cursor, 1u);
  EXPECT_EQ(two.Deliver(number, 1).targets[0].outcome, DeliverOutcome::kAccepted);
}

// Proves: S2, S3
TEST_F(ClusterNodeTest, AnOutageIsToldAndEndsByItself) {
  Member one(to_one_, "one"), two(meta_, "two");
  Add(one), Add(two);
  Pass(absl::Seconds(3), {&one, &two});
  for (const Fault fault : {Fault::kUnreachable, Fault::kUnanswered, Fault::kLost}) {
    const uint64_t failed = one.node().Stats().failed_turns;
    to_one_.SetFaults([fault](FaultyMeta::Call call) {
      return fault == Fault::kUnreachable || call == FaultyMeta::Call::kWrite ? fault
                                                                              : Fault::kNone;
    });
    EXPECT_OK(two.node().Leave());
    Pass(absl::Seconds(2), {&one});
    to_one_.Heal();
    // A lost answer is found by reading back.
    EXPECT_EQ(one.node().Stats().failed_turns > failed, fault != Fault::kUnanswered);
    Pass(absl::Seconds(2), {&one});
    EXPECT_EQ(one.served.size(), kPartitions);
    // And while it hands over.
    two.End();
    two.Begin();
    to_one_.SetFaults([fault](FaultyMeta::Call call) {
      return fault == Fault::kUnreachable || call == FaultyMeta::Call::kWrite ? fault
                                                                              : Fault::kNone;
    });
    Pass(absl::Seconds(2), {&one, &two});
    to_one_.Heal();
    Pass(absl::Seconds(3), {&one, &two});
    EXPECT_EQ(one.served.size(), 2u);
    EXPECT_EQ(two.served.size(), 2u);
  }
}

// With its threads, as hosts have it.
TEST(ClusterTest, InstancesComeAndGoByThemselves) {
  MemoryMeta meta(RealClock(), 1);
  struct Seat final : ClusterHost {
    void Taken(const OwnedPartition&) override { ++served; }
    void Left(const SourceKey&) override { --served; }
    std::atomic<uint64_t> served = 0;
    SeededRng rng{1};
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Cluster> cluster;
    std::unique_ptr<Dispatcher> dispatcher;
  };
  const auto sit = [&](Seat& seat, const std::string& name) {
    seat.engine = Engine::Open({.backend = Backend::kMemory}).value();
    seat.cluster = Cluster::OpenOn(*seat.engine, meta,
                                   {.instance = name,
                                    .partitions = Partitions(),
                                    .mirror_interval = absl::Milliseconds(10),
                                    .balance_interval = absl::Milliseconds(10)})
                       .value();
    seat.dispatcher =
        Dispatcher::Make(*seat.engine, seat.rng, {},
                         {.ledger = &seat.cluster->ledger(), .guard = &seat.cluster->guard()})
            .value();
    ASSERT_OK(seat.dispatcher->Recover());
    seat.dispatcher->Start();
    seat.cluster->Start(*seat.dispatcher, seat);
  };
  Seat one, two;
  sit(one, "one");
  sit(two, "two");
  while (one.served != 2 || two.served != 2) std::this_thread::yield();
  EXPECT_LE(one.cluster->Stats().owned, kPartitions);
  EXPECT_OK(one.cluster->Leave());
  one.dispatcher.reset();
  while (two.served != kPartitions) std::this_thread::yield();
  EXPECT_OK(two.cluster->Leave());
  two.dispatcher.reset();
  EXPECT_EQ(one.served + two.served, 0u);
}

}  // namespace
}  // namespace holdfast
