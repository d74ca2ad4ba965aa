// Housekeeper: keeps disk and restart in bounds. It takes checkpoints, has the oldest live records
// stated again, and retires what nobody needs. retention.h decides; this gathers the facts and does
// the work, in a thread of its own or, without threads, in Tick(). The thread also answers for the
// disk's bound: at it writers wait for what the thread sets free, unless it can set nothing free.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "holdfast/clock.h"
#include "holdfast/engine.h"
#include "holdfast/log_sink.h"
#include "journal/base/mutex.h"
#include "journal/journal.h"
#include "journal/live_bytes.h"
#include "journal/space_limit.h"
#include "journal/state_machine.h"
#include "recovery/checkpoint.h"
#include "recovery/compactor.h"
#include "recovery/retention.h"

namespace holdfast {

struct HousekeeperOptions {
  RetentionOptions retention;
  uint64_t compact_bytes_per_second = 0;  // read and written; 0: as fast as it goes
  bool threads = true;
};

// What recovery found of checkpoints and unknown records.
struct HousekeeperStart {
  Lsn checkpoint, older_checkpoint;     // where replay would begin; none: there is none
  uint64_t checkpoint_bytes = 0;        // of the newest
  uint64_t since_checkpoint_bytes = 0;  // of journal behind it
  SegmentId pinned;                     // the first with records of unknown types; none: none
};

// All borrowed; they outlive it.
struct HousekeeperParts {
  Storage& storage;
  Clock& clock;
  LogSink* log;  // may be null
  Journal& journal;
  const StateMachines& machines;
  const LiveBytes& live;  // guarded by the journal's sequencer
  StoreIdentity identity;
};

// Threads: any, for Checkpoint, Compact and AddTo; one duty is done at a time.
class Housekeeper final : private SpaceLimit {
 public:
  Housekeeper(const HousekeeperOptions& options, HousekeeperParts parts,
              const HousekeeperStart& start);
  // Needs: Stop() was called.
  ~Housekeeper() override;
  Housekeeper(const Housekeeper&) = delete;
  Housekeeper& operator=(const Housekeeper&) = delete;

  // Without threads: does what is due.
  void Tick();
  // Ends the thread; what is under way is given up where it stands. Then, if a restart would read
  // more than it costs and the journal is sound, takes a last checkpoint.
  void Stop();

  // Takes a checkpoint now, unless the newest says the same.
  // Errors: kResourceExhausted   kDiskFull; the older ones are as they were
  //         kUnavailable         an I/O error, or the journal is poisoned
  //         kFailedPrecondition  kClosed: Stop() was called
  Status Checkpoint();
  // States everything live in the sealed segments again and retires what can go.
  // Errors: as Checkpoint; kDataLoss  a segment is damaged
  StatusOr<CompactionReport> Compact();

  void AddTo(EngineStats& stats);

 private:
  bool MayTake(uint64_t disk_bytes) override;

  RetentionFacts Gather() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  bool DoOne(const RetentionFacts& facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  bool TryRetire(const RetentionFacts& facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  bool TryCheckpoint(const RetentionFacts& facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  bool TryCompact(const RetentionFacts& facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  Status TakeCheckpoint(bool stoppable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  Status BeginCompaction(SegmentId segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  StatusOr<bool> CompactPiece() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  void GiveUpOn(SegmentId segment, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  bool WorthCheckpointAtStop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  void Pause(absl::Duration time);
  void Loop();
  void Log(LogLevel level, const std::string& line) const;

  const HousekeeperOptions options_;
  const HousekeeperParts parts_;

  Mutex work_;  // Held while a duty is done; taken before the sequencer.
  Retention retention_ ABSL_GUARDED_BY(work_);
  Compactor compactor_ ABSL_GUARDED_BY(work_);
  HousekeeperStart known_ ABSL_GUARDED_BY(work_);
  uint64_t written_at_checkpoint_ ABSL_GUARDED_BY(work_) = 0;  // of the journal's counter
  SegmentId given_up_ ABSL_GUARDED_BY(work_);                  // cannot be stated again
  absl::Duration checkpoint_retry_at_ ABSL_GUARDED_BY(work_) = -absl::InfiniteDuration();

  Mutex mu_;  // Of the wait between two duties. May be taken under the sequencer.
  CondVar wake_;
  std::atomic<bool> refused_{false};   // a file beyond the bound, since the last duty
  std::atomic<bool> one_more_{false};  // may be made beyond it: nothing can be set free
  std::atomic<bool> stop_{false};      // set under mu_; a duty under way looks without it

  // For AddTo.
  std::atomic<uint64_t> checkpoints_{0}, checkpoint_lsn_{0}, checkpoint_bytes_{0},
      checkpoint_written_bytes_{0}, compacted_segments_{0}, restated_records_{0},
      restated_bytes_{0}, retired_segments_{0};
  std::thread thread_;
};

}  // namespace holdfast
