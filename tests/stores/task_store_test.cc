#include "stores/task_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "meta/memory_meta.h"
#include "meta/meta_key.h"
#include "tests/meta/faulty_meta.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class TaskStoreTest : public testing::Test {
 protected:
  TaskRecord Create(const std::string& id, const std::string& agent = "a") {
    const auto created = store_.Create({.id = id, .agent = agent, .client = "c", .input = "in"});
    EXPECT_OK(created);
    return *created;
  }
  StatusOr<TaskRecord> Move(const std::string& id, uint64_t epoch, TaskStatus status) {
    return store_.Update({.id = id, .expected_epoch = epoch, .status = status});
  }

  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta faulty_{meta_};
  const TaskStoreOptions options_{.pending_idle_max = absl::Minutes(10),
                                  .terminal_kept = absl::Hours(24)};
  MetaTaskStore store_{faulty_, 1, options_, clock_};
};

TEST_F(TaskStoreTest, ACreatedTaskIsThereAtOnce) {
  const TaskRecord created = Create("t");
  EXPECT_EQ(*store_.Get("t"), created);
  EXPECT_FAILS(store_.Get("other"), kNotFound, kNone);
  EXPECT_FAILS(store_.Create({.id = "t"}), kAlreadyExists, kNone);
  EXPECT_FAILS(store_.Create({.id = ""}), kInvalidArgument, kNone);
  EXPECT_EQ(*store_.Get("t"), created);
}

// Proves: K1
TEST_F(TaskStoreTest, ATerminalStateIsFinalAndTheLoserIsTold) {
  Create("t");
  EXPECT_OK(Move("t", 1, TaskStatus::kCanceled));
  EXPECT_FAILS(Move("t", 1, TaskStatus::kCompleted), kFailedPrecondition, kTerminal);
  EXPECT_FAILS(Move("t", 2, TaskStatus::kCompleted), kFailedPrecondition, kTerminal);
  EXPECT_EQ(store_.Get("t")->status, TaskStatus::kCanceled);
  EXPECT_EQ(store_.List({})->tasks[0].status, TaskStatus::kCanceled);
}

// Proves: K3
TEST_F(TaskStoreTest, AnUpdateFromAnOlderEpochIsAConflict) {
  Create("t");
  EXPECT_OK(Move("t", 1, TaskStatus::kRunning));
  EXPECT_FAILS(Move("t", 1, TaskStatus::kRunning), kAborted, kConflict);
  EXPECT_OK(Move("t", 2, TaskStatus::kRunning));
  EXPECT_EQ(store_.Get("t")->epoch, 3u);
  EXPECT_FAILS(Move("nobody", 1, TaskStatus::kRunning), kNotFound, kNone);
}

// Proves: K1, K3
TEST_F(TaskStoreTest, OfRacingThreadsOneCreatesAndOneFinishes) {
  for (int round = 0; round < 50; ++round) {
    const std::string id = "t" + std::to_string(round);
    std::atomic<int> created{0}, finished{0}, late{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (store_.Create({.id = id}).ok()) ++created;
        while (true) {
          const auto task = store_.Get(id);
          const auto moved =
              Move(id, task->epoch, i % 2 == 0 ? TaskStatus::kCompleted : TaskStatus::kCanceled);
          if (moved.ok()) ++finished;
          if (DetailOf(moved.status()) == Detail::kTerminal) ++late;
          if (DetailOf(moved.status()) != Detail::kConflict) break;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(created, 1);
    EXPECT_EQ(finished, 1);
    EXPECT_EQ(late, 3);
    EXPECT_EQ(store_.Get(id)->epoch, 2u);
  }
}

TEST_F(TaskStoreTest, ListsByWhatIsAskedNewestFirst) {
  for (int i = 0; i < 5; ++i) {
    Create("t" + std::to_string(i), i % 2 == 0 ? "even" : "odd");
    clock_.Advance(absl::Seconds(1));
  }
  ASSERT_OK(Move("t0", 1, TaskStatus::kRunning));
  const auto ids = [&](const TaskQuery& query) {
    std::string joined;
    const auto page = store_.List(query);
    EXPECT_OK(page);
    for (const TaskRecord& task : page->tasks) joined += task.id;
    return joined;
  };
  EXPECT_EQ(ids({}), "t0t4t3t2t1");
  EXPECT_EQ(ids({.agent = "even"}), "t0t4t2");
  EXPECT_EQ(ids({.agent = "even", .status = TaskStatus::kPending}), "t4t2");
  EXPECT_EQ(ids({.client = "nobody"}), "");
  EXPECT_FAILS(store_.List({.limit = 0}), kInvalidArgument, kNone);
  EXPECT_FAILS(store_.List({.limit = 1'001}), kInvalidArgument, kNone);
  EXPECT_FAILS(store_.List({.page_token = "nonsense"}), kInvalidArgument, kNone);
}

TEST_F(TaskStoreTest, ChildrenAndContextsAreFound) {
  ASSERT_OK(store_.Create({.id = "child", .parent = "p", .context = ""}));
  Create("stranger");
  EXPECT_EQ(store_.List({.parent = "p"})->tasks.size(), 1u);
  EXPECT_EQ(store_.List({.context = ""})->tasks.size(), 1u);  // empty is not absent
}

TEST_F(TaskStoreTest, PagesFollowEachOtherWithoutGapOrRepeat) {
  for (int i = 0; i < 23; ++i) {
    Create("t" + std::to_string(i));
    if (i % 3 == 0) clock_.Advance(absl::Seconds(1));  // some of the same time
  }
  std::vector<std::string> paged;
  std::string token;
  do {
    const auto page = store_.List({.limit = 5, .page_token = token});
    ASSERT_OK(page);
    EXPECT_LE(page->tasks.size(), 5u);
    for (const TaskRecord& task : page->tasks) paged.push_back(task.id);
    token = page->next_page_token;
  } while (!token.empty());
  std::vector<std::string> whole;
  ASSERT_OK_AND_ASSIGN(const TaskPage all, store_.List({}));
  for (const TaskRecord& task : all.tasks) whole.push_back(task.id);
  EXPECT_EQ(paged, whole);
  EXPECT_EQ(paged.size(), 23u);
}

// Proves: K4
TEST_F(TaskStoreTest, ExpiryFailsTheUnfinishedAndForgetsTheFinished) {
  Create("pending");
  Create("running");
  Create("done");
  ASSERT_OK(Move("running", 1, TaskStatus::kRunning));
  ASSERT_OK(Move("done", 1, TaskStatus::kCompleted));
  clock_.Advance(absl::Minutes(10));
  auto expired = store_.ExpireStale();
  EXPECT_EQ(expired->failed, std::vector<std::string>{"pending"});
  EXPECT_TRUE(expired->forgotten.empty());
  EXPECT_EQ(store_.Get("pending")->status, TaskStatus::kFailed);
  EXPECT_EQ(store_.Get("pending")->detail, "expired");
  EXPECT_EQ(store_.Get("running")->status, TaskStatus::kRunning);
  clock_.Advance(absl::Hours(24) - absl::Minutes(10));
  expired = store_.ExpireStale();
  EXPECT_EQ(expired->forgotten, std::vector<std::string>{"done"});
  EXPECT_FAILS(store_.Get("done"), kNotFound, kNone);
  EXPECT_EQ(store_.Get("pending")->status, TaskStatus::kFailed);  // failed later than that
}

// Proves: K4
TEST_F(TaskStoreTest, ATaskThatWasTouchedIsNotExpired) {
  Create("t");
  clock_.Advance(absl::Minutes(9));
  ASSERT_OK(Move("t", 1, TaskStatus::kPending));
  clock_.Advance(absl::Minutes(9));
  EXPECT_TRUE(store_.ExpireStale()->failed.empty());
}

// A task that was updated after the reaper looked at it is left alone.
// Proves: K4
TEST_F(TaskStoreTest, ExpiryLosesAgainstAnUpdate) {
  Create("t");
  clock_.Advance(absl::Minutes(11));
  MetaTaskStore other(meta_, 2, options_, clock_);
  bool updated = false;
  faulty_.SetFaults([&](FaultyMeta::Call call) {
    if (call == FaultyMeta::Call::kWrite && !std::exchange(updated, true)) {
      EXPECT_OK(other.Update({.id = "t", .expected_epoch = 1, .status = TaskStatus::kRunning}));
    }
    return FaultyMeta::Fault::kNone;
  });
  EXPECT_TRUE(store_.ExpireStale()->failed.empty());
  EXPECT_TRUE(updated);
  EXPECT_EQ(store_.Get("t")->status, TaskStatus::kRunning);
}

// Proves: K3, S3
TEST_F(TaskStoreTest, AnUpdateWhoseAnswerWasLostHappensOnce) {
  Create("t");
  faulty_.SetFaults([sent = 0](FaultyMeta::Call call) mutable {
    return call == FaultyMeta::Call::kWrite && sent++ == 0 ? FaultyMeta::Fault::kUnanswered
                                                           : FaultyMeta::Fault::kNone;
  });
  ASSERT_OK_AND_ASSIGN(const TaskRecord moved, Move("t", 1, TaskStatus::kRunning));
  EXPECT_EQ(moved.epoch, 2u);
  EXPECT_EQ(*store_.Get("t"), moved);
}

// Proves: K2
TEST_F(TaskStoreTest, OneThatCannotBeReadFailsAlone) {
  Create("t");
  ASSERT_OK(meta_.Put(MetaKey("tasks", {"newer"}), "\x63", {}));
  ASSERT_OK(meta_.Put(MetaKey("tasks", {"damaged"}), "\1", {}));
  EXPECT_FAILS(store_.Get("newer"), kUnimplemented, kNone);
  EXPECT_FAILS(store_.Get("damaged"), kDataLoss, kDamage);
  EXPECT_FAILS(Move("newer", 1, TaskStatus::kRunning), kUnimplemented, kNone);
  EXPECT_FAILS(store_.Create({.id = "newer"}), kAlreadyExists, kNone);
  EXPECT_EQ(store_.List({})->tasks.size(), 1u);
  EXPECT_OK(store_.ExpireStale());
  EXPECT_OK(meta_.Get(MetaKey("tasks", {"damaged"}), {}));  // and nobody deletes it
}

// Proves: S2
TEST_F(TaskStoreTest, AnOutageIsToldAndIsNotAbsence) {
  Create("t");
  faulty_.SetFaults([](FaultyMeta::Call) { return FaultyMeta::Fault::kUnreachable; });
  EXPECT_FAILS(store_.Get("t"), kUnavailable, kIo);
  EXPECT_FAILS(store_.Create({.id = "u"}), kUnavailable, kIo);
  EXPECT_FAILS(Move("t", 1, TaskStatus::kRunning), kUnavailable, kIo);
  EXPECT_FAILS(store_.List({}), kUnavailable, kIo);
  EXPECT_FAILS(store_.ExpireStale(), kUnavailable, kIo);
}

}  // namespace
}  // namespace holdfast
