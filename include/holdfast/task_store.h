// TaskStore: the tasks given to agents, from creation to a final state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace holdfast {

struct TaskStoreOptions {
  // A task that nobody took for this long fails as expired. 1 s .. 30 days.
  absl::Duration pending_idle_max = absl::Minutes(10);
  // How long a finished task can still be read. 1 s .. 365 days.
  absl::Duration terminal_kept = absl::Hours(24);
};

enum class TaskStatus : uint8_t {
  kPending = 1,  // created, not yet taken
  kRunning = 2,  // an agent has it
  kCompleted = 3,
  kFailed = 4,
  kCanceled = 5,
};
// A terminal state is final.
constexpr bool IsTerminal(TaskStatus status) { return status >= TaskStatus::kCompleted; }

// One step of a task's history; `epoch` numbers them without gaps.
struct TaskTransition {
  uint64_t epoch = 0;
  TaskStatus status = TaskStatus::kPending;
  absl::Time at;       // wall time
  std::string detail;  // see TaskRecord

  bool operator==(const TaskTransition&) const = default;
};

// Input and output together are at most 1 MiB, names shorter than 64 KiB. Empty and absent differ.
struct TaskRecord {
  static constexpr uint64_t kPayloadBytesMax = uint64_t{1} << 20;
  static constexpr size_t kTransitionsMax = 64;

  std::string id;      // not empty; never used again
  std::string agent;   // that has to do it
  std::string client;  // that asked for it
  TaskStatus status = TaskStatus::kPending;
  std::string detail;  // what the status does not say: a sub-state (input-required), why it failed
  absl::Time created;  // wall time; set by the store, like the next two
  absl::Time updated;
  uint64_t epoch = 0;  // 1 when created; every update raises it by one
  std::string input;
  std::optional<std::string> output;
  absl::Time deadline = absl::InfiniteFuture();  // wall time; then the task fails
  std::optional<std::string> parent;
  std::optional<std::string> context;
  std::vector<TaskTransition> transitions;  // the newest kTransitionsMax, oldest first

  bool operator==(const TaskRecord&) const = default;
};

struct TaskUpdate {
  std::string_view id;
  uint64_t expected_epoch = 0;  // of the record that the caller saw
  TaskStatus status = TaskStatus::kRunning;
  std::string_view detail;
  std::optional<std::string_view> output;  // none: an earlier output is kept
};

// Conditions that are set must all hold.
struct TaskQuery {
  std::optional<std::string_view> agent;
  std::optional<std::string_view> client;
  std::optional<std::string_view> parent;
  std::optional<std::string_view> context;
  std::optional<TaskStatus> status;
  size_t limit = 50;  // 1 .. 1000
  std::string_view
      page_token;  // TaskPage::next_page_token of the page before; empty: the first page
};

struct TaskPage {
  std::vector<TaskRecord> tasks;  // updated last comes first
  std::string next_page_token;    // empty: this was the last page
};

// Shared between the instances of a cluster: kept in a Meta, or in memory where there is one
// instance.
// Durable: when a mutation returns, as far as the backend goes.
// Threads: any; updates of one task are linearizable.
// Errors:  of every call: kUnavailable, the Meta cannot be reached or (kUnknownOutcome) did not
//          answer
class TaskStore {
 public:
  virtual ~TaskStore() = default;

  // Stores a new task as PENDING, epoch 1, and returns it; id, agent, client, detail, input,
  // deadline, parent and context are taken from `task`.
  // Errors: kAlreadyExists      another caller created this id
  //         kInvalidArgument    an empty id, a name of 64 KiB or more
  //         kResourceExhausted  kLimit: the input is over 1 MiB
  virtual absl::StatusOr<TaskRecord> Create(const TaskRecord& task) = 0;

  // Errors: kNotFound  no such task, or it was finished and is not kept any more
  virtual absl::StatusOr<TaskRecord> Get(std::string_view id) = 0;

  // Moves the task on and returns what is stored now. PENDING may become anything, RUNNING anything
  // but PENDING, a terminal state nothing.
  // Errors: kNotFound
  //         kFailedPrecondition kTerminal: the task is finished; nobody changes it any more
  //         kAborted            kConflict: the epoch is another one; read again
  //         kInvalidArgument    RUNNING to PENDING
  //         kResourceExhausted  kLimit: input and output together are over 1 MiB
  virtual absl::StatusOr<TaskRecord> Update(const TaskUpdate& update) = 0;

  // One page of the tasks that meet the query. A task updated between two pages may be seen twice
  // or in neither.
  // Errors: kInvalidArgument  limit or page_token
  virtual absl::StatusOr<TaskPage> List(const TaskQuery& query) = 0;

  struct Expired {
    std::vector<std::string> failed;     // by deadline or because nobody took them
    std::vector<std::string> forgotten;  // finished long enough ago
  };
  // Fails what is overdue and forgets what was finished long ago, by wall time. Each by compare: a
  // task that was updated after it was looked at is left alone, and a task that is not finished is
  // failed, never forgotten.
  virtual absl::StatusOr<Expired> ExpireStale() = 0;
};

}  // namespace holdfast
