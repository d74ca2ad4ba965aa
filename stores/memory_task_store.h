// MemoryTaskStore: the tasks of one instance that stands alone.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "holdfast/clock.h"
#include "holdfast/task_store.h"
#include "journal/base/mutex.h"

namespace holdfast {

// Threads: any.
class MemoryTaskStore final : public TaskStore {
 public:
  // `clock` is borrowed and outlives the store.
  MemoryTaskStore(const TaskStoreOptions& options, Clock& clock)
      : options_(options), clock_(clock) {}

  absl::StatusOr<TaskRecord> Create(const TaskRecord& task) override;
  absl::StatusOr<TaskRecord> Get(std::string_view id) override;
  absl::StatusOr<TaskRecord> Update(const TaskUpdate& update) override;
  absl::StatusOr<TaskPage> List(const TaskQuery& query) override;
  absl::StatusOr<Expired> ExpireStale() override;

 private:
  // Finished longer ago than it is kept.
  bool IsForgotten(const TaskRecord& task, absl::Time now) const {
    return IsTerminal(task.status) && task.updated + options_.terminal_kept <= now;
  }

  const TaskStoreOptions options_;
  Clock& clock_;
  Mutex mu_;
  std::map<std::string, TaskRecord, std::less<>> tasks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
