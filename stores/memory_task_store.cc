#include "stores/memory_task_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "journal/base/status.h"
#include "stores/task_rules.h"

namespace holdfast {
namespace {

constexpr size_t kPageTasksMax = 1000;

Status NoTask() { return NotFound("no task of this id"); }

}  // namespace

StatusOr<TaskRecord> MemoryTaskStore::Create(const TaskRecord& task) {
  const absl::Time now = clock_.WallNow();
  ASSIGN_OR_RETURN(TaskRecord created, NewTask(task, now));
  MutexLock lock(mu_);
  const auto [place, inserted] = tasks_.try_emplace(task.id, std::move(created));
  if (!inserted) return AlreadyExists("a task of this id exists");
  return place->second;
}

StatusOr<TaskRecord> MemoryTaskStore::Get(std::string_view id) {
  MutexLock lock(mu_);
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || IsForgotten(found->second, clock_.WallNow())) return NoTask();
  return found->second;
}

StatusOr<TaskRecord> MemoryTaskStore::Update(const TaskUpdate& update) {
  const absl::Time now = clock_.WallNow();
  MutexLock lock(mu_);
  const auto found = tasks_.find(update.id);
  if (found == tasks_.end() || IsForgotten(found->second, now)) return NoTask();
  ASSIGN_OR_RETURN(found->second, UpdatedTask(found->second, update, now));
  return found->second;
}

StatusOr<TaskPage> MemoryTaskStore::List(const TaskQuery& query) {
  if (query.limit == 0 || query.limit > kPageTasksMax) {
    return Invalid("limit: {} is out of range, 1 .. {}", query.limit, kPageTasksMax);
  }
  std::optional<TaskPlace> after;
  if (!query.page_token.empty()) {
    ASSIGN_OR_RETURN(after, ParsePageToken(query.page_token));
  }
  const absl::Time now = clock_.WallNow();
  MutexLock lock(mu_);
  std::vector<std::pair<TaskPlace, const TaskRecord*>> wanted;
  for (const auto& [id, task] : tasks_) {
    if (IsForgotten(task, now) || !Meets(task, query)) continue;
    TaskPlace place = PlaceOf(task);
    if (!after.has_value() || Before(*after, place)) wanted.emplace_back(std::move(place), &task);
  }
  const size_t count = std::min(query.limit, wanted.size());
  std::partial_sort(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(count), wanted.end(),
                    [](const auto& a, const auto& b) { return Before(a.first, b.first); });
  TaskPage page;
  for (size_t i = 0; i < count; ++i) page.tasks.push_back(*wanted[i].second);
  if (count < wanted.size()) page.next_page_token = PageToken(wanted[count - 1].first);
  return page;
}

StatusOr<MemoryTaskStore::Expired> MemoryTaskStore::ExpireStale() {
  const absl::Time now = clock_.WallNow();
  MutexLock lock(mu_);
  Expired expired;
  std::erase_if(tasks_, [&](const auto& task) {
    if (!IsForgotten(task.second, now)) return false;
    expired.forgotten.push_back(task.first);
    return true;
  });
  for (auto& [id, task] : tasks_) {
    const std::optional<std::string> why = Overdue(task, options_, now);
    if (!why.has_value()) continue;
    StatusOr<TaskRecord> failed = UpdatedTask(
        task,
        {.id = id, .expected_epoch = task.epoch, .status = TaskStatus::kFailed, .detail = *why},
        now);
    if (!failed.ok())
      continue;  // It is the state just read: only a detail too long could be refused.
    task = *std::move(failed);
    expired.failed.push_back(id);
  }
  return expired;
}

}  // namespace holdfast
