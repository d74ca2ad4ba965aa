// The TaskStore on a Meta: one entry for each task, changed by compare with its revision.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "holdfast/task_store.h"
#include "journal/base/status.h"
#include "meta/meta_writer.h"

namespace holdfast {

// Threads: any.
class MetaTaskStore final : public TaskStore {
 public:
  // `meta` and `clock` are borrowed and outlive it. `nonce`: as MetaWriter's.
  MetaTaskStore(MetaStore& meta, uint64_t nonce, const TaskStoreOptions& options, Clock& clock)
      : meta_(meta), writer_(meta, nonce), options_(options), clock_(clock) {}

  absl::StatusOr<TaskRecord> Create(const TaskRecord& task) override;
  absl::StatusOr<TaskRecord> Get(std::string_view id) override;
  absl::StatusOr<TaskRecord> Update(const TaskUpdate& update) override;
  absl::StatusOr<TaskPage> List(const TaskQuery& query) override;
  absl::StatusOr<Expired> ExpireStale() override;

 private:
  struct Stored {
    TaskRecord task;
    uint64_t revision = 0;
  };
  StatusOr<Stored> Read(std::string_view id);
  // Puts `task` where `revision` stands. Errors: kAborted  it stands there no more
  StatusOr<TaskRecord> Replace(TaskRecord task, uint64_t revision);
  // Calls `visit` with every task that decodes, all as of one moment, until it answers an error.
  Status ForEach(const std::function<Status(Stored)>& visit);
  // Finished longer ago than it is kept.
  bool IsForgotten(const TaskRecord& task, absl::Time now) const {
    return IsTerminal(task.status) && task.updated + options_.terminal_kept <= now;
  }

  MetaStore& meta_;
  MetaWriter writer_;
  const TaskStoreOptions options_;
  Clock& clock_;
};

}  // namespace holdfast
