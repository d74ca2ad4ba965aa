#include "stores/task_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "meta/meta_key.h"
#include "meta/meta_pages.h"
#include "stores/shared_values.h"
#include "stores/task_rules.h"

namespace holdfast {
namespace {

constexpr std::string_view kKind = "tasks";
constexpr size_t kPageTasksMax = 1000;
// Tasks may be a mebibyte each.
constexpr size_t kReadAtOnce = 32;

Status NoTask() { return NotFound("no task of this id"); }

}  // namespace

StatusOr<TaskRecord> MetaTaskStore::Create(const TaskRecord& task) {
  ASSIGN_OR_RETURN(TaskRecord created, NewTask(task, clock_.WallNow()));
  const StatusOr<uint64_t> written = writer_.Put(MetaKey(kKind, {task.id}), 0, EncodeTask(created));
  if (MetaResultOf(written.status()) == MetaResult::kConflict) {
    return AlreadyExists("a task of this id exists");
  }
  RETURN_IF_ERROR(written.status());
  return created;
}

StatusOr<MetaTaskStore::Stored> MetaTaskStore::Read(std::string_view id) {
  const StatusOr<MetaEntry> entry = meta_.Get(MetaKey(kKind, {id}), {});
  if (MetaResultOf(entry.status()) == MetaResult::kNotFound) return NoTask();
  RETURN_IF_ERROR(entry.status());
  ASSIGN_OR_RETURN(TaskRecord task, DecodeTask(id, entry->value));
  if (IsForgotten(task, clock_.WallNow())) return NoTask();
  return Stored{std::move(task), entry->revision};
}

StatusOr<TaskRecord> MetaTaskStore::Get(std::string_view id) {
  ASSIGN_OR_RETURN(Stored stored, Read(id));
  return std::move(stored.task);
}

StatusOr<TaskRecord> MetaTaskStore::Replace(TaskRecord task, uint64_t revision) {
  RETURN_IF_ERROR(writer_.Put(MetaKey(kKind, {task.id}), revision, EncodeTask(task)).status());
  return task;
}

StatusOr<TaskRecord> MetaTaskStore::Update(const TaskUpdate& update) {
  for (bool again = false;; again = true) {
    ASSIGN_OR_RETURN(const Stored stored, Read(update.id));
    ASSIGN_OR_RETURN(TaskRecord updated, UpdatedTask(stored.task, update, clock_.WallNow()));
    StatusOr<TaskRecord> replaced = Replace(std::move(updated), stored.revision);
    // Somebody was faster. What the task is now says what that means: finished, or another epoch.
    if (again || MetaResultOf(replaced.status()) != MetaResult::kConflict) return replaced;
  }
}

Status MetaTaskStore::ForEach(const std::function<Status(Stored)>& visit) {
  const auto decode = [&visit](const MetaEntry& entry) -> Status {
    const auto id = ParseMetaKey(kKind, 1, entry.key);
    if (!id.ok()) return absl::OkStatus();
    StatusOr<TaskRecord> task = DecodeTask(id->front(), entry.value);
    // One that this version cannot read fails its own readers, not those of all.
    if (!task.ok()) return absl::OkStatus();
    return visit({*std::move(task), entry.revision});
  };
  return ForEachEntry(meta_, MetaPrefix(kKind, {}), kReadAtOnce, decode).status();
}

StatusOr<TaskPage> MetaTaskStore::List(const TaskQuery& query) {
  if (query.limit == 0 || query.limit > kPageTasksMax) {
    return Invalid("limit: {} is out of range, 1 .. {}", query.limit, kPageTasksMax);
  }
  std::optional<TaskPlace> after;
  if (!query.page_token.empty()) {
    ASSIGN_OR_RETURN(after, ParsePageToken(query.page_token));
  }
  const absl::Time now = clock_.WallNow();
  // The first of the page, as a heap whose top is the one that comes last.
  using Placed = std::pair<TaskPlace, TaskRecord>;
  const auto before = [](const Placed& a, const Placed& b) { return Before(a.first, b.first); };
  std::vector<Placed> first;
  bool more = false;
  RETURN_IF_ERROR(ForEach([&](Stored stored) -> Status {
    if (IsForgotten(stored.task, now) || !Meets(stored.task, query)) return absl::OkStatus();
    TaskPlace place = PlaceOf(stored.task);
    if (after.has_value() && !Before(*after, place)) return absl::OkStatus();
    first.emplace_back(std::move(place), std::move(stored.task));
    std::push_heap(first.begin(), first.end(), before);
    if (first.size() > query.limit) {
      std::pop_heap(first.begin(), first.end(), before);
      first.pop_back();
      more = true;
    }
    return absl::OkStatus();
  }));
  std::sort_heap(first.begin(), first.end(), before);
  TaskPage page;
  if (more) page.next_page_token = PageToken(first.back().first);
  for (Placed& placed : first) page.tasks.push_back(std::move(placed.second));
  return page;
}

StatusOr<MetaTaskStore::Expired> MetaTaskStore::ExpireStale() {
  const absl::Time now = clock_.WallNow();
  Expired expired;
  RETURN_IF_ERROR(ForEach([&](Stored stored) -> Status {
    const std::string& id = stored.task.id;
    Status done;
    if (IsForgotten(stored.task, now)) {
      done = writer_.Delete(MetaKey(kKind, {id}), stored.revision).status();
      if (done.ok()) expired.forgotten.push_back(id);
    } else if (const auto why = Overdue(stored.task, options_, now)) {
      StatusOr<TaskRecord> failed = UpdatedTask(stored.task,
                                                {.id = id,
                                                 .expected_epoch = stored.task.epoch,
                                                 .status = TaskStatus::kFailed,
                                                 .detail = *why},
                                                now);
      done = failed.ok() ? Replace(*std::move(failed), stored.revision).status() : failed.status();
      if (done.ok()) expired.failed.push_back(id);
    }
    // It was updated since it was looked at: the next time will see.
    return MetaResultOf(done) == MetaResult::kConflict ? absl::OkStatus() : done;
  }));
  return expired;
}

}  // namespace holdfast
