// GroupCommitter: many appends, few syncs, a true result for each. The lock, the threads and the
// waiting around the decisions of CommitQueue.
//
// One mutex, the sequencer, guards the order of records and everything here. Whoever waits drives:
// the first waiter submits groups and reaps completions, the others sleep until their group is
// confirmed. Two roles, each held by at most one thread: the *submitter* seals and submits a group,
// the *reaper* sits in WriteQueue::WaitOne. Where nobody waits, or an interval is set, the
// committer thread drives.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "holdfast/clock.h"
#include "holdfast/log_sink.h"
#include "journal/base/mutex.h"
#include "journal/commit_callbacks.h"
#include "journal/commit_queue.h"
#include "journal/commit_waiters.h"
#include "journal/engine_clock.h"
#include "journal/group_assembler.h"
#include "journal/record_sink.h"
#include "journal/segment_set.h"

namespace holdfast {

struct GroupCommitterOptions {
  CommitQueueOptions queue;
  uint64_t group_bytes_max = 0;
  // So long the disk may owe every answer before they count as lost, which poisons: somebody waits
  // for each of them.
  absl::Duration silence_max = absl::Minutes(1);
  bool threads = true;
};

// What it starts from; all borrowed things outlive it.
struct GroupCommitterParts {
  Mutex& sequencer;
  Clock& clock;
  EngineClock& engine_clock;
  LogSink* log;  // may be null
  std::unique_ptr<WriteQueue> disk;
  Epoch epoch;
  Lsn last;  // newest taken
};

// Counters, all since the start.
struct CommitCounts {
  uint64_t records = 0, batches = 0, groups = 0;
  uint64_t record_bytes = 0, written_bytes = 0;
  uint64_t durable_writes = 0, flushes = 0;
};

class GroupCommitter {
 public:
  GroupCommitter(const GroupCommitterOptions& options, GroupCommitterParts parts,
                 std::unique_ptr<SegmentSet> segments);
  // Needs: Stop() was called.
  ~GroupCommitter();
  GroupCommitter(const GroupCommitter&) = delete;
  GroupCommitter& operator=(const GroupCommitter&) = delete;

  // --- Confirming: see RecordSink and CommitSource ---
  void Kick() ABSL_LOCKS_EXCLUDED(mu_);
  Status WaitFor(Lsn lsn) ABSL_LOCKS_EXCLUDED(mu_);
  void CallWhenReached(Lsn lsn, std::function<void(Status)> callback) ABSL_LOCKS_EXCLUDED(mu_);
  bool Reached(Lsn lsn) const { return reached_.load(std::memory_order_acquire) >= lsn.value(); }
  // Writes and syncs everything appended so far, whatever the level.
  Status Flush() ABSL_LOCKS_EXCLUDED(mu_);

  // Refuses what comes, flushes, and ends the threads; what still waits gets its result.
  Status Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // Without threads: does what is due.
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);

  // The record, if its group is in memory still. One that is not written yet is.
  std::optional<std::string> FindInMemory(const RecordRef& ref, Lsn lsn) ABSL_LOCKS_EXCLUDED(mu_);

  // --- For the appender and the upkeep: all under the lock ---
  Mutex& mu() const ABSL_LOCK_RETURNED(mu_) { return mu_; }
  const CommitQueue& queue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return queue_; }
  SegmentSet& segments() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return *segments_; }
  GroupAssembler& groups() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return groups_; }
  const CommitCounts& counts() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return counts_; }
  bool stopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_; }
  // When S reached A last. Means something while all is synced.
  absl::Duration caught_up_at() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return caught_up_at_; }
  absl::Duration last_group_at() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return last_group_at_; }

  // A batch of `records` records up to `last` was added to the open group.
  void OnAppended(Lsn last, size_t records, uint64_t record_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The open group takes no more batches. Needs: it has some
  void CloseGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The next segment becomes active, with `link` as its first group.
  void PushLink(const Link& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WantSync() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { queue_.OnSyncWanted(); }
  // Drives, or waits for whoever does, until `done` or poison; releases the lock meanwhile. Without
  // threads it also ends when nothing is left to be done. `done` is called under the lock.
  void DriveUntil(const std::function<bool()>& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Something changed that DriveUntil may wait for.
  void OnProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { progress_.NotifyAll(); }
  // A write or sync failed: nothing is written any more, whoever waits for more gets UNKNOWN.
  void Poison(const Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  // Needs: poisoned()
  const Status& poison() const { return poison_; }

 private:
  // What is known of `lsn` for good. Without the lock.
  std::optional<Status> OutcomeOf(Lsn lsn) const;
  CommitDemand Demand() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayLead() const { return !options_.threads || !has_interval_; }

  GroupHeader HeaderNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Driving. All of these may release the lock meanwhile.
  CommitQueue::Step StartAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Submit(const CommitQueue::Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Reap(absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnCompleted(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Hold(absl::Duration until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Lead(const CommitQueue::Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void HandOver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeOthers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteRipe() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasSomething(const CommitQueue::Step& step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetReaping(bool reaping) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunCallbacks();

  // The committer thread.
  void CommitterLoop() ABSL_LOCKS_EXCLUDED(mu_);
  void IntervalTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteThroughTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SleepUntil(absl::Duration deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeCommitter() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const GroupCommitterOptions options_;
  const bool has_interval_;
  const bool disk_overlaps_;
  Clock& clock_;  // Borrowed, as all below.
  EngineClock& engine_clock_;
  LogSink* const log_;
  const Epoch epoch_;

  Mutex& mu_;  // The sequencer. Never held across a call of the disk.
  CommitQueue queue_ ABSL_GUARDED_BY(mu_);
  // The files and buffers outlive the queue that borrows them: they come before disk_.
  const std::unique_ptr<SegmentSet> segments_ ABSL_PT_GUARDED_BY(mu_);
  GroupAssembler groups_ ABSL_GUARDED_BY(mu_);
  const std::unique_ptr<WriteQueue> disk_;  // Called without the lock, by submitter and reaper.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  CommitCounts counts_ ABSL_GUARDED_BY(mu_);
  absl::Duration caught_up_at_ ABSL_GUARDED_BY(mu_);
  absl::Duration last_group_at_ ABSL_GUARDED_BY(mu_);
  absl::Duration silence_ ABSL_GUARDED_BY(mu_);  // waited for the disk, since it last answered

  bool submitting_ ABSL_GUARDED_BY(mu_) = false;
  bool reaping_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Lsn> leader_lsn_ ABSL_GUARDED_BY(mu_);  // what the reaper itself waits for
  size_t leaders_ ABSL_GUARDED_BY(mu_) = 0;             // blocked callers that are not asleep
  CommitWaiters waiters_;                               // Guarded by mu_, but for Sleep and Wake.
  CommitCallbacks callbacks_;
  CondVar progress_;  // A completion, new segments, or poison: for Reserve and Flush.
  size_t progress_waiters_ ABSL_GUARDED_BY(mu_) = 0;

  // For eyes without the lock.
  std::atomic<uint64_t> reached_;
  std::atomic<uint64_t> kept_from_;
  std::atomic<bool> poisoned_ = false;
  Status poison_;                     // Written once, before poisoned_ is set.
  std::atomic<bool> ripe_ = false;    // the open group should go out
  std::atomic<bool> driven_ = false;  // mirrors reaping_
  std::atomic<uint64_t> starts_ = 0;  // submissions so far

  CondVar committer_wake_;
  bool committer_wanted_ ABSL_GUARDED_BY(mu_) = false;
  bool committer_asleep_ ABSL_GUARDED_BY(mu_) = false;  // until it is due, or an append comes
  bool committer_reaping_ ABSL_GUARDED_BY(mu_) = false;
  bool committer_led_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t seen_activity_ ABSL_GUARDED_BY(mu_) = 0;
  int quiet_turns_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread committer_;
  std::thread callback_thread_;
};

}  // namespace holdfast
