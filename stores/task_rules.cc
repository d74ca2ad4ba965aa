#include "stores/task_rules.h"

#include <charconv>
#include <tuple>

#include "stores/nanos.h"
#include "stores/store_limits.h"

namespace holdfast {
namespace {

Status CheckPayload(const TaskRecord& task) {
  const uint64_t bytes = task.input.size() + (task.output.has_value() ? task.output->size() : 0);
  if (bytes <= TaskRecord::kPayloadBytesMax) return absl::OkStatus();
  return Exhausted(Detail::kLimit, "input and output: {} bytes together, at most {} are allowed",
                   bytes, TaskRecord::kPayloadBytesMax);
}

void Move(TaskRecord& task, TaskStatus status, std::string_view detail, absl::Time now) {
  ++task.epoch;
  task.status = status;
  task.detail = detail;
  task.updated = now;
  if (task.transitions.size() == TaskRecord::kTransitionsMax) {
    task.transitions.erase(task.transitions.begin());
  }
  task.transitions.push_back(
      {.epoch = task.epoch, .status = status, .at = now, .detail = task.detail});
}

}  // namespace

StatusOr<TaskRecord> NewTask(const TaskRecord& task, absl::Time now) {
  RETURN_IF_ERROR(CheckId("task id", task.id));
  RETURN_IF_ERROR(CheckName("agent", task.agent));
  RETURN_IF_ERROR(CheckName("client", task.client));
  RETURN_IF_ERROR(CheckName("detail", task.detail));
  if (task.parent.has_value()) RETURN_IF_ERROR(CheckName("parent", *task.parent));
  if (task.context.has_value()) RETURN_IF_ERROR(CheckName("context", *task.context));
  TaskRecord created{.id = task.id,
                     .agent = task.agent,
                     .client = task.client,
                     .created = now,
                     .input = task.input,
                     .output = std::nullopt,
                     .deadline = task.deadline,
                     .parent = task.parent,
                     .context = task.context};
  RETURN_IF_ERROR(CheckPayload(created));
  Move(created, TaskStatus::kPending, task.detail, now);
  return created;
}

StatusOr<TaskRecord> UpdatedTask(const TaskRecord& task, const TaskUpdate& update, absl::Time now) {
  // First the state, then the epoch: whoever comes too late is told that it is over.
  if (IsTerminal(task.status)) {
    return WrongState(Detail::kTerminal, "the task is finished since its epoch {}", task.epoch);
  }
  if (task.epoch != update.expected_epoch) {
    return MakeStatus(
        StatusCode::kAborted, Detail::kConflict,
        fmt::format("expected epoch {}, the task is at {}", update.expected_epoch, task.epoch));
  }
  RETURN_IF_ERROR(CheckName("detail", update.detail));
  if (task.status == TaskStatus::kRunning && update.status == TaskStatus::kPending) {
    return Invalid("status: a running task does not become pending again");
  }
  TaskRecord updated = task;
  if (update.output.has_value()) updated.output.emplace(*update.output);
  RETURN_IF_ERROR(CheckPayload(updated));
  // Never back in time, whatever the wall clock does.
  Move(updated, update.status, update.detail, std::max(now, task.updated));
  return updated;
}

std::optional<std::string> Overdue(const TaskRecord& task, const TaskStoreOptions& options,
                                   absl::Time now) {
  if (IsTerminal(task.status)) return std::nullopt;
  if (task.deadline <= now) return "deadline exceeded";
  if (task.status == TaskStatus::kPending && task.updated + options.pending_idle_max <= now) {
    return "expired";
  }
  return std::nullopt;
}

bool Meets(const TaskRecord& task, const TaskQuery& query) {
  return (!query.agent.has_value() || task.agent == *query.agent) &&
         (!query.client.has_value() || task.client == *query.client) &&
         (!query.parent.has_value() || task.parent == query.parent) &&
         (!query.context.has_value() || task.context == query.context) &&
         (!query.status.has_value() || task.status == *query.status);
}

bool Before(const TaskPlace& a, const TaskPlace& b) {
  return std::tie(b.updated_ns, b.id) < std::tie(a.updated_ns, a.id);
}

TaskPlace PlaceOf(const TaskRecord& task) { return {ToNanos(task.updated), task.id}; }

std::string PageToken(const TaskPlace& place) {
  return fmt::format("{}:{}", place.updated_ns, place.id);
}

StatusOr<TaskPlace> ParsePageToken(std::string_view token) {
  TaskPlace place;
  const char* const end = token.data() + token.size();
  const auto [rest, error] = std::from_chars(token.data(), end, place.updated_ns);
  if (error != std::errc() || rest == end || *rest != ':') {
    return Invalid("page_token: it is not one of ours");
  }
  place.id.assign(rest + 1, end);
  return place;
}

}  // namespace holdfast
