// Engine: the stores of one directory. Everything a host program needs starts here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/commit.h"
#include "holdfast/dead_letter_store.h"
#include "holdfast/delivery_state_store.h"
#include "holdfast/detail.h"
#include "holdfast/meta_store.h"
#include "holdfast/offset_store.h"
#include "holdfast/options.h"
#include "holdfast/session_store.h"
#include "holdfast/subscription_store.h"
#include "holdfast/task_store.h"
#include "holdfast/transaction.h"

namespace holdfast {

// What opening found. All zero for the memory backend.
struct RecoveryReport {
  bool created = false;  // the directory held no store
  bool clean = false;    // the last writer closed it
  bool unproven_tail =
      false;  // unclean, and nothing on disk proves where the confirmed records end
  uint64_t segments = 0;
  uint64_t records = 0;             // replayed
  uint64_t skipped_records = 0;     // among them: of unknown types that may be skipped
  uint64_t bytes = 0;               // read
  uint64_t checkpoint_lsn = 0;      // replay began behind it; 0: no checkpoint was used
  uint64_t checkpoint_entries = 0;  // that it brought
  uint64_t checkpoint_bytes = 0;    // of its file
  uint64_t bad_checkpoints = 0;     // passed over; an open for writing sets them aside
  uint64_t copied_records = 0;      // in doubt, and stated again in the new segment
  uint64_t torn_bytes = 0;          // cut: written when the last writer died, never confirmed
  uint64_t ignored_groups = 0;      // whole groups behind a hole; never confirmed, never replayed
  uint64_t last_lsn = 0;            // newest record taken
  uint64_t deliveries = 0;
  uint64_t offsets = 0;
  uint64_t dead_letters = 0;
  absl::Duration duration;
};

// What a compaction did.
struct CompactionReport {
  uint64_t compacted_segments = 0;  // whose live records were stated again
  uint64_t restated_records = 0;
  uint64_t restated_bytes = 0;
  uint64_t retired_segments = 0;
  uint64_t disk_bytes_before = 0;  // of all segment files
  uint64_t disk_bytes_after = 0;
  // Not needed any more, but kept until the older of the two checkpoints has passed them, or
  // because of records of unknown types.
  uint64_t waiting_segments = 0;
};

// A snapshot of the engine's counters since Open. Sizes in bytes.
struct EngineStats {
  std::string io_backend;                       // "io_uring", "posix", "memory"
  std::string io_reason;                        // why not another one
  Durability durability = Durability::kSynced;  // really in force
  uint64_t appended_lsn = 0;
  uint64_t written_lsn = 0;
  uint64_t synced_lsn = 0;
  uint64_t records = 0;
  uint64_t batches = 0;
  uint64_t groups = 0;
  uint64_t record_bytes = 0;   // fields and record headers
  uint64_t written_bytes = 0;  // groups as written, padding included
  uint64_t durable_writes = 0;
  uint64_t flushes = 0;
  uint64_t segments = 0;
  // How often a mutation waited for the next segment, and for how long in all: the disk was slow,
  // or what the files take had reached disk_bytes_bound and something had to go first.
  uint64_t segment_waits = 0;
  absl::Duration segment_wait_time;
  // What the state rests on, and what the files take. Write amplification since Open is
  // written_bytes / (record_bytes - restated_bytes); checkpoints are counted apart.
  uint64_t live_records = 0;  // each remembered answer counts as one
  uint64_t live_bytes = 0;
  uint64_t remembered_answers = 0;  // now; see EngineOptions
  uint64_t disk_bytes = 0;          // segment files of every kind, spare ones too
  uint64_t disk_bytes_bound = 0;    // see EngineOptions::space_ratio
  uint64_t sealed_segments = 0;
  uint64_t compacted_segments = 0;
  uint64_t restated_records = 0;
  uint64_t restated_bytes = 0;
  uint64_t retired_segments = 0;
  uint64_t checkpoints = 0;     // taken
  uint64_t checkpoint_lsn = 0;  // of the newest: replay would begin behind it; 0: there is none
  uint64_t checkpoint_bytes = 0;
  uint64_t checkpoint_written_bytes = 0;  // by all of them
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t cache_entries = 0;
  uint64_t cache_bytes = 0;
  bool poisoned = false;
};

// Owns: the journal, its threads, all six stores and the Meta. One writing Engine per directory at
// a time. Threads: any, except the destructor, which needs every other call to have returned.
class Engine {
 public:
  // Locks the directory, recovers what is there, and starts. A refusal has changed no byte.
  // Errors: kInvalidArgument     an option is out of range
  //         kFailedPrecondition  kLocked, kReadOnly, kForeign, kNewerFormat; see Detail
  //         kResourceExhausted   no room for the first segment
  //         kUnavailable         the disk could not be read or written
  //         kDataLoss            damage, named by segment, offset and LSN; run `holdfast verify`
  static absl::StatusOr<std::unique_ptr<Engine>> Open(const EngineOptions& options);

  // Closes cleanly unless Close() was called. Commits that are not confirmed yet become so, or
  // fail.
  virtual ~Engine() = default;

  virtual OffsetStore& offsets() = 0;
  virtual DeliveryStateStore& deliveries() = 0;
  virtual DeadLetterStore& dead_letters() = 0;
  virtual SubscriptionStore& subscriptions() = 0;
  virtual SessionStore& sessions() = 0;
  virtual TaskStore& tasks() = 0;
  // The Meta that this engine keeps itself: in its journal, or with Backend::kMemory in memory. It
  // is there whatever EngineOptions::shared says; with kEmbeddedMeta the shared stores are in it.
  virtual MetaStore& meta() = 0;
  // The Meta that this engine shares with other instances, where EngineOptions::shared.backend is
  // kRemoteMeta: its shared stores are in it, and a host may keep values of its own there, under
  // keys that do not begin with "/em/". Null with every other backend.
  virtual MetaStore* remote_meta() = 0;

  // Runs `fill` in the calling thread and commits what it collected as one atomic batch.
  // Errors: those of the collected calls; kInvalidArgument for more than 65,535 changes;
  //         kResourceExhausted when the batch is over min(16 MiB, segment_bytes / 4) - 64
  virtual Commit Transact(const std::function<void(Transaction&)>& fill) = 0;

  // A delivery id that was never issued before, by any boot of this store:
  // <bootEpoch>-<salt>-<seq>.
  virtual std::string NewDeliveryId() = 0;
  // Counts the boots of this store; durable before Open returns.
  virtual uint64_t boot_epoch() const = 0;
  // Monotonic time added up over all boots of this store: the clock of due times. After a kill it
  // may have lost about a second; it never gains.
  virtual absl::Duration EngineNow() = 0;

  virtual const RecoveryReport& recovery() const = 0;
  virtual EngineStats stats() = 0;

  // Takes a checkpoint now, in the calling thread; writers go on meanwhile. The engine takes them
  // by itself, see EngineOptions::checkpoint_every_bytes.
  // Errors: kResourceExhausted   kDiskFull; the older checkpoints are as they were
  //         kFailedPrecondition  kReadOnly, kClosed
  //         kUnavailable         an I/O error, or the journal is poisoned
  virtual absl::Status Checkpoint() = 0;
  // States everything that is live in sealed segments again and removes what nobody needs then; in
  // the calling thread, while writers go on. The engine does as much as its bound on disk asks for
  // by itself. What is left to the next checkpoint is in the report.
  // Errors: as Checkpoint; kDataLoss  a segment is damaged; run `holdfast verify`
  virtual absl::StatusOr<CompactionReport> Compact() = 0;

  // Blocks until everything written so far is confirmed.
  virtual absl::Status Flush() = 0;
  // Confirms what is written, marks the store clean and stops the threads. Mutations fail
  // afterwards; reads go on.
  // Errors: kUnavailable  the journal is poisoned; the store is as after a kill
  virtual absl::Status Close() = 0;
};

}  // namespace holdfast
