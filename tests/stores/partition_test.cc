// Two instances on a real etcd, each behind a network of its own that is cut, falls silent, loses
// answers and comes back.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/engine.h"
#include "meta/etcd_meta.h"
#include "meta/membership.h"
#include "stores/offset_mirror.h"
#include "stores/subscription_store.h"
#include "stores/task_store.h"
#include "tests/support/real_etcd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"

namespace holdfast {
namespace {

const SourceKey kPartition{"orders", 1, 0};
constexpr absl::Duration kLease = absl::Seconds(2);

// One instance: its network, its view of the Meta, and what stands on it.
class Instance {
 public:
  Instance(const RealEtcd& etcd, const std::string& name, uint64_t nonce)
      : network_(etcd.endpoint().port), transport_(NewHttpTransport({}).value()) {
    EtcdOptions options;
    options.endpoints = {{.host = "127.0.0.1", .port = network_.port()}};
    options.watch_idle_max = absl::Seconds(1);
    meta_ = *EtcdMeta::Create(*transport_, RealClock(), options);
    membership_ = *Membership::Join(
        *meta_, nonce, RealClock(),
        {.instance = name, .lease_ttl = kLease, .margin = absl::Milliseconds(200)});
    subscriptions_ = std::make_unique<MetaSubscriptionStore>(*meta_, nonce, RealClock());
    tasks_ = std::make_unique<MetaTaskStore>(*meta_, nonce, TaskStoreOptions(), RealClock());
  }

  TcpProxy& network() { return network_; }
  MetaStore& meta() { return *meta_; }
  Membership& membership() { return *membership_; }
  SubscriptionStore& subscriptions() { return *subscriptions_; }
  TaskStore& tasks() { return *tasks_; }

  // Clients of the topic, as this instance knows them.
  std::map<std::string, uint64_t> Known() {
    std::map<std::string, uint64_t> known;
    const auto targets = subscriptions_->TargetsFor(
        "topic", [](std::string_view) -> std::optional<std::string_view> { return std::nullopt; });
    if (!targets.ok()) return known;
    for (const SubscriptionTarget& target : *targets) known[target.client] = target.epoch;
    return known;
  }

 private:
  TcpProxy network_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<EtcdMeta> meta_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<MetaSubscriptionStore> subscriptions_;
  std::unique_ptr<MetaTaskStore> tasks_;
};

class PartitionTest : public testing::Test {
 protected:
  PartitionTest() { EXPECT_TRUE(etcd_.ready()) << "needs the package etcd-server"; }

  RealEtcd etcd_;
  Instance one_{etcd_, "one", 1}, two_{etcd_, "two", 2};
};

// Engines of a cluster share what stands in the etcd; one that cannot reach it does not start.
// Proves: S4, S6
TEST(ClusterTest, EnginesShareAnEtcdAndDoNotStartWithoutOne) {
  RealEtcd etcd;
  ASSERT_TRUE(etcd.ready()) << "needs the package etcd-server";
  const EngineOptions options{
      .backend = Backend::kMemory,
      .shared = {.cluster = true,
                 .backend = SharedBackend::kRemoteMeta,
                 .meta_endpoints = {"http://" + EndpointText(etcd.endpoint()) + "/"}}};
  ASSERT_OK_AND_ASSIGN(const auto one, Engine::Open(options));
  ASSERT_OK_AND_ASSIGN(const auto two, Engine::Open(options));
  ASSERT_OK(one->tasks().Create({.id = "t", .input = "in"}));
  EXPECT_EQ(two->tasks().Get("t")->input, "in");
  ASSERT_OK(one->subscriptions().Put("topic", "c", {.instance = "i"}));
  while (two->subscriptions().Topics()->empty()) std::this_thread::yield();
  ASSERT_OK_AND_ASSIGN(const uint64_t epoch, one->sessions().RegisterAgent({.id = "a"}));
  EXPECT_EQ(two->sessions().GetAgent("a")->owner_epoch, epoch);
  etcd.Kill();
  const auto alone = Engine::Open(options);
  EXPECT_EQ(alone.status().code(), StatusCode::kUnavailable) << alone.status();
  EXPECT_TRUE(Message(alone.status()).starts_with("shared.meta_endpoints")) << alone.status();
  EXPECT_EQ(two->tasks().Get("t").status().code(), StatusCode::kUnavailable);
}

// The owner is cut off, another takes over, and the owner comes back believing what it believes.
// Proves: S2, S5
TEST_F(PartitionTest, AnOwnerThatWasCutOffIsReplacedAndItsWritesAreRefused) {
  ASSERT_OK_AND_ASSIGN(const uint64_t first, one_.membership().Acquire(kPartition));
  ASSERT_OK_AND_ASSIGN(const MetaCondition fence, one_.membership().Fence(kPartition));
  ASSERT_OK_AND_ASSIGN(const TaskRecord task, one_.tasks().Create({.id = "t", .input = "in"}));
  one_.network().Set(TcpProxy::Mode::kSilent);
  StatusOr<uint64_t> second = two_.membership().Acquire(kPartition);
  while (DetailOf(second.status()) == Detail::kConflict) {
    // Until the lease has ended one of them owns it, and the first does not any more before that.
    second = two_.membership().Acquire(kPartition);
  }
  ASSERT_OK(second);
  EXPECT_FALSE(one_.membership().Owns(kPartition)) << "it knew before the other could take it";
  EXPECT_GT(*second, first);
  ASSERT_OK(two_.tasks().Update({.id = "t", .expected_epoch = 1, .status = TaskStatus::kRunning}));
  // Told as an outage, not as absence, and not as success.
  const auto unreachable = one_.meta().Get("k", {.timeout = absl::Milliseconds(300)});
  EXPECT_EQ(MetaResultOf(unreachable.status()), MetaResult::kUnavailable);
  one_.network().Set(TcpProxy::Mode::kPass);
  EXPECT_FAILS(
      one_.meta().Transact(
          {.conditions = {fence}, .changes = {{.key = "/em/offsets/x", .value = "stale"}}}, {}),
      kAborted, kConflict);
  EXPECT_FAILS(
      one_.tasks().Update({.id = "t", .expected_epoch = 1, .status = TaskStatus::kCompleted}),
      kAborted, kConflict);
  EXPECT_TRUE(two_.membership().Owns(kPartition));
  EXPECT_EQ(MetaResultOf(two_.meta().Get("/em/offsets/x", {}).status()), MetaResult::kNotFound);
}

// Shorter than the lease, however it looks from inside: nothing moves.
// Proves: S9
TEST_F(PartitionTest, ANetworkThatIsBadForAMomentMovesNothing) {
  ASSERT_OK_AND_ASSIGN(const uint64_t token, one_.membership().Acquire(kPartition));
  for (const auto mode : {TcpProxy::Mode::kCut, TcpProxy::Mode::kLoseAnswers}) {
    one_.network().Set(mode);
    EXPECT_FAILS(two_.membership().Acquire(kPartition), kAborted, kConflict);
    one_.network().Set(TcpProxy::Mode::kPass);
    one_.membership().Beat();
  }
  one_.network().Set(TcpProxy::Mode::kPass, absl::Milliseconds(50));
  one_.membership().Beat();
  EXPECT_TRUE(one_.membership().Owns(kPartition));
  EXPECT_EQ(*one_.membership().Acquire(kPartition), token);
}

// The write arrives and its answer does not.
// Proves: S3
TEST_F(PartitionTest, ATaskWhoseAnswerWasLostIsCreatedOnce) {
  one_.network().Set(TcpProxy::Mode::kLoseAnswers);
  const auto created = one_.tasks().Create({.id = "t", .input = "in"});
  EXPECT_FAILS(created, kUnavailable, kUnknownOutcome);
  one_.network().Set(TcpProxy::Mode::kPass);
  EXPECT_EQ(two_.tasks().Get("t")->epoch, 1u);
  EXPECT_FAILS(one_.tasks().Create({.id = "t"}), kAlreadyExists, kNone);
}

// Both go on registering and removing while one of them hears nothing for half a minute.
// Proves: S4
TEST_F(PartitionTest, SubscriptionsConvergeAfterHalfAMinuteApart) {
  const auto put = [](Instance& instance, const std::string& client) {
    return instance.subscriptions().Put("topic", client, {.instance = "i"}).status();
  };
  ASSERT_OK(put(one_, "both"));
  ASSERT_OK(put(two_, "goes"));
  while (one_.Known().size() < 2 || two_.Known().size() < 2) std::this_thread::yield();
  one_.network().Set(TcpProxy::Mode::kSilent);
  const absl::Duration end = RealClock().Now() + absl::Seconds(30);
  ASSERT_OK(two_.subscriptions().Remove({"topic", "goes", "i"}));
  size_t refused = 0;
  for (int i = 0; RealClock().Now() < end; ++i) {
    ASSERT_OK(put(two_, "new-" + std::to_string(i % 50)));
    if (i % 3 == 0) {
      ASSERT_OK(two_.subscriptions().Remove({"topic", "new-" + std::to_string(i % 50), "i"}));
    }
    ASSERT_EQ(one_.Known().size(), 2u) << "it goes on with what it knew";
    if (i % 100 == 0) {
      EXPECT_FALSE(put(one_, "lonely").ok());
      ++refused;
    }
  }
  EXPECT_GT(refused, 0u);
  one_.network().Set(TcpProxy::Mode::kPass);
  ASSERT_OK(put(two_, "last"));
  while (!one_.Known().contains("last")) std::this_thread::yield();
  EXPECT_EQ(one_.Known(), two_.Known());
  EXPECT_FALSE(one_.Known().contains("goes"));
}

}  // namespace
}  // namespace holdfast
