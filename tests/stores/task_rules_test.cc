#include "stores/task_rules.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'770'000'000);

TaskRecord Pending() {
  return *NewTask({.id = "t", .agent = "a", .client = "c", .input = "in"}, kNow);
}

TEST(TaskRulesTest, ANewTaskIsPendingAtEpochOne) {
  const TaskRecord task = Pending();
  EXPECT_EQ(task.status, TaskStatus::kPending);
  EXPECT_EQ(task.epoch, 1u);
  EXPECT_EQ(task.created, kNow);
  EXPECT_EQ(task.updated, kNow);
  EXPECT_EQ(task.output, std::nullopt);
  ASSERT_EQ(task.transitions.size(), 1u);
  EXPECT_EQ(task.transitions[0].epoch, 1u);
}

TEST(TaskRulesTest, EveryMoveIsLegalOrRefused) {
  using enum TaskStatus;
  constexpr TaskStatus kAll[] = {kPending, kRunning, kCompleted, kFailed, kCanceled};
  for (const TaskStatus from : kAll) {
    for (const TaskStatus to : kAll) {
      TaskRecord task = Pending();
      task.status = from;
      const auto moved = UpdatedTask(task, {.id = "t", .expected_epoch = 1, .status = to}, kNow);
      if (IsTerminal(from)) {
        EXPECT_FAILS(moved, kFailedPrecondition, kTerminal);
      } else if (from == kRunning && to == kPending) {
        EXPECT_FAILS(moved, kInvalidArgument, kNone);
      } else {
        ASSERT_OK(moved);
        EXPECT_EQ(moved->status, to);
        EXPECT_EQ(moved->epoch, 2u);
      }
    }
  }
}

// Proves: K2
TEST(TaskRulesTest, AnUpdateWithoutOutputKeepsTheEarlierOne) {
  const TaskRecord first =
      *UpdatedTask(Pending(), {.id = "t", .expected_epoch = 1, .output = ""}, kNow);
  EXPECT_EQ(first.output, "");  // empty is not absent
  const TaskRecord second =
      *UpdatedTask(first, {.id = "t", .expected_epoch = 2, .output = "out"}, kNow);
  const TaskRecord third = *UpdatedTask(
      second, {.id = "t", .expected_epoch = 3, .status = TaskStatus::kCompleted}, kNow);
  EXPECT_EQ(third.output, "out");
}

TEST(TaskRulesTest, InputAndOutputAreBoundedTogether) {
  TaskRecord task = Pending();
  task.input = std::string(TaskRecord::kPayloadBytesMax, 'i');
  EXPECT_OK(NewTask(task, kNow));
  EXPECT_OK(UpdatedTask(task, {.id = "t", .expected_epoch = 1, .output = ""}, kNow));
  EXPECT_FAILS(UpdatedTask(task, {.id = "t", .expected_epoch = 1, .output = "o"}, kNow),
               kResourceExhausted, kLimit);
  task.input += 'i';
  EXPECT_FAILS(NewTask(task, kNow), kResourceExhausted, kLimit);
}

TEST(TaskRulesTest, TheLast64TransitionsAreKeptInOrder) {
  TaskRecord task = Pending();
  for (uint64_t epoch = 1; epoch < 200; ++epoch) {
    task = *UpdatedTask(task, {.id = "t", .expected_epoch = epoch, .detail = "working"}, kNow);
  }
  ASSERT_EQ(task.transitions.size(), TaskRecord::kTransitionsMax);
  for (size_t i = 0; i < task.transitions.size(); ++i) {
    EXPECT_EQ(task.transitions[i].epoch, 200 - TaskRecord::kTransitionsMax + 1 + i);
  }
}

TEST(TaskRulesTest, AStepBackOfTheWallClockDoesNotReorderATask) {
  const TaskRecord moved =
      *UpdatedTask(Pending(), {.id = "t", .expected_epoch = 1}, kNow - absl::Hours(1));
  EXPECT_EQ(moved.updated, kNow);
}

TEST(TaskRulesTest, TasksAreOverdueByDeadlineOrBecauseNobodyTookThem) {
  const TaskStoreOptions options{.pending_idle_max = absl::Minutes(10)};
  TaskRecord task = Pending();
  EXPECT_EQ(Overdue(task, options, kNow + absl::Minutes(9)), std::nullopt);
  EXPECT_EQ(Overdue(task, options, kNow + absl::Minutes(10)), "expired");
  task.deadline = kNow + absl::Minutes(1);
  EXPECT_EQ(Overdue(task, options, kNow + absl::Minutes(1)), "deadline exceeded");
  task.status = TaskStatus::kRunning;
  EXPECT_EQ(Overdue(task, options, kNow + absl::Minutes(1)), "deadline exceeded");
  task.deadline = absl::InfiniteFuture();
  EXPECT_EQ(Overdue(task, options, kNow + absl::Hours(1'000)), std::nullopt);
  task.status = TaskStatus::kFailed;
  task.deadline = kNow;
  EXPECT_EQ(Overdue(task, options, kNow + absl::Hours(1)), std::nullopt);
}

TEST(TaskRulesTest, PageTokensRoundTripAndForeignOnesAreRefused) {
  for (const TaskPlace& place :
       {TaskPlace{0, ""}, TaskPlace{-5, "a:b"}, TaskPlace{INT64_MAX, std::string(1, '\0')}}) {
    const auto parsed = ParsePageToken(PageToken(place));
    ASSERT_OK(parsed);
    EXPECT_EQ(parsed->updated_ns, place.updated_ns);
    EXPECT_EQ(parsed->id, place.id);
  }
  for (const char* token : {":", "x", "12", "12x:", "99999999999999999999:a"}) {
    EXPECT_FAILS(ParsePageToken(token), kInvalidArgument, kNone) << token;
  }
}

}  // namespace
}  // namespace holdfast
