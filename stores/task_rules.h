// The rules of a task's life, the same for every backend. Pure.
#pragma once

#include <optional>
#include <string>

#include "holdfast/task_store.h"
#include "journal/base/status.h"

namespace holdfast {

// The record that Create stores for `task`.
// Errors: kInvalidArgument, kResourceExhausted as TaskStore::Create
StatusOr<TaskRecord> NewTask(const TaskRecord& task, absl::Time now);

// What `task` is after `update`.
// Errors: as TaskStore::Update, besides kNotFound
StatusOr<TaskRecord> UpdatedTask(const TaskRecord& task, const TaskUpdate& update, absl::Time now);

// Why the task has to fail now; none if it has not.
std::optional<std::string> Overdue(const TaskRecord& task, const TaskStoreOptions& options,
                                   absl::Time now);

bool Meets(const TaskRecord& task, const TaskQuery& query);

// The order of List: updated last first. A page token names the last task of its page.
struct TaskPlace {
  int64_t updated_ns = 0;
  std::string id;
};
bool Before(const TaskPlace& a, const TaskPlace& b);
TaskPlace PlaceOf(const TaskRecord& task);
std::string PageToken(const TaskPlace& place);
// Errors: kInvalidArgument  no token of ours
StatusOr<TaskPlace> ParsePageToken(std::string_view token);

}  // namespace holdfast
