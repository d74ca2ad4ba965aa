// StoreWriter: the one way in which the local stores change: judge a batch, append it, answer.
#pragma once

#include <array>
#include <vector>

#include "holdfast/commit.h"
#include "journal/record_sink.h"
#include "stores/fork_guard.h"
#include "stores/record_judge.h"
#include "stores/store_batch.h"
#include "stores/waiting_writes.h"

namespace holdfast {

// Threads: any.
class StoreWriter {
 public:
  // Both borrowed; they outlive it.
  StoreWriter(RecordSink& sink, const ForkGuard& fork_guard, const StoreLimits& limits)
      : sink_(sink), fork_guard_(fork_guard), limits_(limits) {}

  // `judge` decides about records of this type.
  // Needs: before the first Write
  void Route(RecordType type, RecordJudge& judge);

  // Judges the records of `batch` in order and appends those that change something as one batch,
  // or, if one is refused, nothing. Uses up the batch. A thread that holds the sequencer also
  // writes what others wait with.
  Commit Write(StoreBatch& batch);
  // Batches of threads that wait for the sequencer.
  size_t waiting() const { return waiting_.count(); }

  // An answer that changed nothing and rests on what record `lsn` did (none: on nothing).
  Commit Resting(Lsn lsn, Status refused);

  RecordSink& sink() const { return sink_; }
  const StoreLimits& limits() const { return limits_; }

 private:
  // What `write` was answered, after the rest was started.
  Commit Finish(WaitingWrite& write);
  void WriteWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sink_.sequencer());
  Commit JudgeAndAppend(StoreBatch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sink_.sequencer());

  RecordSink& sink_;
  const ForkGuard& fork_guard_;
  const StoreLimits limits_;
  std::array<RecordJudge*, 256> judges_{};  // Borrowed.
  std::vector<const RecordJudge*> each_judge_;
  WaitingWrites waiting_;
  BatchOverlay overlay_ ABSL_GUARDED_BY(sink_.sequencer());
  std::vector<size_t> dropped_ ABSL_GUARDED_BY(sink_.sequencer());  // records that change nothing
};

}  // namespace holdfast
