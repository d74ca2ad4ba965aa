// The shared stores of an engine that stands alone: in its journal, whatever ends it.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"
#include "stores/engine_on_storage.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

enum class Ending { kClosed, kKilled };

class SharedOnJournalTest : public testing::TestWithParam<Ending> {
 protected:
  SharedOnJournalTest() { Open(SimDisk()); }
  ~SharedOnJournalTest() override { storage_->PowerOff(); }

  void Restart(bool read_only = false) {
    if (GetParam() == Ending::kClosed) {
      ASSERT_OK(engine_->Close());
    } else {
      storage_->PowerOff();
    }
    engine_.reset();
    const SimDisk left = storage_->disk();
    Open(GetParam() == Ending::kClosed ? left : left.Kill(1, /*late=*/false), read_only);
  }
  void Open(const SimDisk& disk, bool read_only = false) {
    storage_ = std::make_unique<SimStorage>(disk, SimStorageOptions{.wait_really = true});
    auto engine = OpenEngineOn(*storage_, {.read_only = read_only, .clock = &clock_, .rng = &rng_},
                               /*threads=*/true);
    ASSERT_OK(engine);
    engine_ = *std::move(engine);
  }
  TaskStore& tasks() { return engine_->tasks(); }
  SessionStore& sessions() { return engine_->sessions(); }
  SubscriptionStore& subscriptions() { return engine_->subscriptions(); }

  SimClock clock_;
  SeededRng rng_{1};
  std::unique_ptr<SimStorage> storage_;
  std::unique_ptr<TickingEngine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Ends, SharedOnJournalTest,
                         testing::Values(Ending::kClosed, Ending::kKilled), [](const auto& info) {
                           return info.param == Ending::kClosed ? "Closed" : "Killed";
                         });

// Streams come with the gateway. Proves: K5, K6, W1
TEST_P(SharedOnJournalTest, TasksGoOnWhereTheyWere) {
  ASSERT_OK_AND_ASSIGN(
      const TaskRecord parent,
      tasks().Create({.id = "parent", .agent = "a", .client = "c", .input = "in"}));
  ASSERT_OK_AND_ASSIGN(const TaskRecord child,
                       tasks().Create({.id = "child",
                                       .output = std::nullopt,
                                       .deadline = clock_.WallNow() + absl::Seconds(90),
                                       .parent = "parent"}));
  ASSERT_OK(tasks().Update({.id = "child", .expected_epoch = 1, .status = TaskStatus::kRunning}));
  ASSERT_OK_AND_ASSIGN(const TaskRecord running, tasks().Get("child"));
  Restart();
  EXPECT_EQ(*tasks().Get("parent"), parent);
  EXPECT_EQ(*tasks().Get("child"), running);
  // Children are listed, and cancelling works, once.
  ASSERT_OK_AND_ASSIGN(const TaskPage children, tasks().List({.parent = "parent"}));
  ASSERT_EQ(children.tasks.size(), 1u);
  EXPECT_EQ(children.tasks[0], running);
  ASSERT_OK(tasks().Update({.id = "parent", .expected_epoch = 1, .status = TaskStatus::kCanceled}));
  Restart();
  EXPECT_FAILS(
      tasks().Update({.id = "parent", .expected_epoch = 2, .status = TaskStatus::kCompleted}),
      kFailedPrecondition, kTerminal);
  EXPECT_EQ(tasks().Get("parent")->transitions.size(), 2u);
  // The deadline is where it was.
  clock_.Advance(absl::Seconds(89));
  EXPECT_TRUE(tasks().ExpireStale()->failed.empty());
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(tasks().ExpireStale()->failed, std::vector<std::string>{"child"});
  Restart();
  EXPECT_EQ(tasks().Get("child")->detail, "deadline exceeded");
  EXPECT_EQ(child.epoch, 1u);
}

// Proves: S7, W1
TEST_P(SharedOnJournalTest, SubscriptionsAreThereAndEpochsOnlyRise) {
  ASSERT_OK_AND_ASSIGN(const uint64_t first, subscriptions().Put("t", "c", {.instance = "i"}));
  ASSERT_OK(subscriptions().Put(std::string_view("\0/%", 3), "c", {.instance = "j"}));
  ASSERT_OK_AND_ASSIGN(const uint64_t gone, subscriptions().Put("t", "gone", {.instance = "i"}));
  ASSERT_OK(subscriptions().Remove({"t", "gone", "i"}));
  Restart();
  EXPECT_EQ(*subscriptions().Topics(), (std::vector<std::string>{std::string("\0/%", 3), "t"}));
  EXPECT_EQ(*subscriptions().InstancesOf("c"), (std::vector<std::string>{"i", "j"}));
  const auto targets = subscriptions().TargetsFor("t", [](auto) { return std::nullopt; });
  ASSERT_EQ(targets->size(), 1u);
  EXPECT_EQ(targets->at(0).epoch, first);
  EXPECT_GT(*subscriptions().Put("t", "gone", {.instance = "i"}), gone);
  EXPECT_EQ(*subscriptions().Put("t", "c", {.instance = "i"}), first);
}

// Proves: S8
TEST_P(SharedOnJournalTest, AgentsAndSessionsHaveTheirFullTimeAgainAndOldOwnersNone) {
  ASSERT_OK_AND_ASSIGN(const uint64_t agent,
                       sessions().RegisterAgent({.id = "a", .instance = "i1"}));
  ASSERT_OK_AND_ASSIGN(const uint64_t session,
                       sessions().OpenSession({.id = "s", .client = "c", .instance = "i1"}));
  ASSERT_OK(sessions().Bind("s", session, "a"));
  clock_.Advance(absl::Seconds(25));
  Restart();
  clock_.Advance(absl::Seconds(25));  // of 30
  EXPECT_OK(sessions().Heartbeat("a", agent));
  EXPECT_EQ(sessions().GetSession("s")->agent, "a");
  ASSERT_OK_AND_ASSIGN(const uint64_t taken,
                       sessions().RegisterAgent({.id = "a", .instance = "i2"}));
  EXPECT_GT(taken, agent);
  Restart();
  EXPECT_FAILS(sessions().Heartbeat("a", agent), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(sessions().MarkReady("a", agent), kPermissionDenied, kStaleOwner);
  EXPECT_OK(sessions().MarkReady("a", taken));
  clock_.Advance(absl::Seconds(30));
  EXPECT_FAILS(sessions().GetAgent("a"), kNotFound, kNone);
  Restart();
  EXPECT_FAILS(sessions().GetAgent("a"), kNotFound, kNone);
}

TEST_P(SharedOnJournalTest, AReaderSeesThemAndChangesNothing) {
  ASSERT_OK(tasks().Create({.id = "t"}));
  ASSERT_OK(subscriptions().Put("topic", "c", {.instance = "i"}));
  ASSERT_OK(sessions().OpenSession({.id = "s"}));
  Restart(/*read_only=*/true);
  EXPECT_EQ(tasks().List({})->tasks.size(), 1u);
  EXPECT_EQ(*subscriptions().Topics(), std::vector<std::string>{"topic"});
  EXPECT_OK(sessions().GetSession("s"));
  EXPECT_FAILS(tasks().Create({.id = "u"}), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(tasks().Update({.id = "t", .expected_epoch = 1}), kFailedPrecondition, kReadOnly);
}

// Whatever checkpoints and compactions there are meanwhile.
// Proves: K1, K3
TEST_P(SharedOnJournalTest, RacingThreadsFinishEachTaskOnceAndHousekeepingLosesNone) {
  constexpr int kTasks = 40, kThreads = 3;
  std::atomic<int> created{0}, finished{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kTasks; ++i) {
        const std::string id = "t" + std::to_string(i);
        if (tasks().Create({.id = id, .input = std::string(2'000, 'x')}).ok()) ++created;
        const auto moved = tasks().Update(
            {.id = id,
             .expected_epoch = 1,
             .status = thread == 0 ? TaskStatus::kCanceled : TaskStatus::kCompleted});
        if (moved.ok()) ++finished;
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(engine_->Compact());
    EXPECT_OK(engine_->Checkpoint());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, kTasks);
  EXPECT_EQ(finished, kTasks);
  ASSERT_OK_AND_ASSIGN(const TaskPage before, tasks().List({.limit = 1000}));
  EXPECT_EQ(before.tasks.size(), size_t{kTasks});
  Restart();
  ASSERT_OK_AND_ASSIGN(const TaskPage after, tasks().List({.limit = 1000}));
  EXPECT_EQ(after.tasks, before.tasks);
}

// An engine in memory keeps them in the Meta that it shows, too.
TEST(SharedInMemoryTest, TheMetaOfAnEngineInMemoryHasItsSharedStores) {
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  ASSERT_OK(engine->tasks().Create({.id = "t"}));
  EXPECT_EQ(engine->meta().List("/em/tasks/", {})->entries.size(), 1u);
}

// What a host asked to keep in memory is not in the journal.
// Proves: W2
TEST(SharedInMemoryTest, TheBackendOfTheSharedStoresIsTheOneThatWasAskedFor) {
  SimStorage storage(SimDisk(), {.wait_really = true});
  EngineOptions options;
  options.shared.backend = SharedBackend::kMemory;
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenEngineOn(storage, options, /*threads=*/true));
  ASSERT_OK(engine->tasks().Create({.id = "t"}));
  EXPECT_TRUE(engine->meta().List("/em/", {})->entries.empty());
}

}  // namespace
}  // namespace holdfast
