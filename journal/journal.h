// Journal: the face of this floor. Appends batches, confirms them, reads records back.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "holdfast/engine.h"
#include "holdfast/log_sink.h"
#include "holdfast/options.h"
#include "journal/engine_clock.h"
#include "journal/mark.h"
#include "journal/record_sink.h"
#include "journal/segment.h"
#include "journal/segment_ledger.h"
#include "journal/space_limit.h"
#include "journal/state_machine.h"

namespace holdfast {

struct JournalOptions {
  Durability durability = Durability::kSynced;
  absl::Duration commit_interval = absl::ZeroDuration();
  uint64_t segment_bytes = uint64_t{64} << 20;   // of new segments
  uint64_t group_bytes_max = uint64_t{1} << 20;  // a larger single batch gets a group of its own
  // False: no thread is started. Whoever waits drives the disk, segments are made when they are
  // needed, and Tick() does what the clock asks for. This is how the simulator runs the same code.
  bool threads = true;
};

// What recovery hands over: a store that is decided, cut and ready for the next record.
struct JournalStart {
  StoreIdentity identity;
  Segment active;    // its Link and the copied groups are in place and durable
  uint64_t end = 0;  // where the next group goes, a multiple of 4 KiB
  Lsn last;          // newest LSN taken = appended = written = synced; none in a new store
  Lsn next;          // the first that may be given out
  SegmentId oldest;
  std::vector<SealedSegment> sealed;  // the chain before `active`, oldest first
  // Spare files of `segment_bytes`, synced in a life before and no segment any more.
  std::vector<SegmentId> spares;
  uint64_t life_counter = 0;   // used up by this boot so far
  absl::Duration engine_time;  // newest found on disk
  std::unique_ptr<MarkWriter> mark;
  std::unique_ptr<File> lock;  // DIR/LOCK, held
};

// Counters for EngineStats; see there.
struct JournalStats {
  Lsn appended, written, synced;
  uint64_t records = 0, batches = 0, groups = 0;
  uint64_t record_bytes = 0, written_bytes = 0;
  uint64_t durable_writes = 0, flushes = 0, segments = 0;
  uint64_t segment_waits = 0;
  absl::Duration segment_wait_time;
  bool poisoned = false;
};

// What there is on disk, at one moment.
struct JournalSpace {
  std::vector<SealedSegment> sealed;  // closed, oldest first, without gaps
  SegmentId active;
  uint64_t disk_bytes = 0;      // segment files of every kind: sealed, active, prepared, spare
  bool short_of_space = false;  // the reserve is not whole, and making more of it met a full disk
  Lsn appended, synced;
};

// Threads: any.
class Journal : public RecordSink {
 public:
  // Starts at what recovery decided. Storage, clock, machines and mutex are borrowed and outlive
  // it.
  static StatusOr<std::unique_ptr<Journal>> Start(Storage& storage, Clock& clock, LogSink* log,
                                                  const JournalOptions& options, JournalStart start,
                                                  const StateMachines& machines, Mutex& sequencer);

  // Confirms everything appended so far.
  virtual Status Flush() ABSL_LOCKS_EXCLUDED(sequencer_) = 0;
  // Flushes, writes a clean MARK and stops the threads. Later calls of Reserve fail with kClosed.
  // Errors: kUnavailable  poisoned: the store is as after a kill
  virtual Status Close() ABSL_LOCKS_EXCLUDED(sequencer_) = 0;
  // Without threads: does what is due now (interval flush, MARK, heartbeat, the next segment).
  virtual void Tick() ABSL_LOCKS_EXCLUDED(sequencer_) = 0;

  virtual JournalSpace space() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) = 0;
  // Nobody needs what the segments below `keep_from` hold: the state does not rest on it, durably,
  // and no checkpoint's replay begins there. They leave the chain; their files are removed, or used
  // again. Segments from the one in which S stands on stay; a later call takes them.
  // Durable: that they are not needed, before the first file is touched. After a crash at any point
  //          the next open removes what is left of them.
  // Threads: one at a time, and none once Close() begins.
  // Needs:   keep_from is at most the active segment
  // Errors:  kUnavailable         poisoned, by this or before; or kIo: a file could not be removed
  //                               or renamed, it is tried again by the next call
  //          kFailedPrecondition  kClosed
  virtual Status RetireBelow(SegmentId keep_from) ABSL_LOCKS_EXCLUDED(sequencer_) = 0;
  // Removes one segment of the reserve, so that a full disk has room for a checkpoint: without one
  // dead segments could not go.
  // Errors: kResourceExhausted  kDiskFull: none can be spared now
  //         kUnavailable        poisoned, or the file could not be removed
  virtual Status GiveUpReserve() ABSL_LOCKS_EXCLUDED(sequencer_) = 0;

  // From now on no segment file is made beyond `limit` (null: none), but for compaction: batches
  // that need one wait. Only with threads. The limit is borrowed until another is set.
  virtual void SetSpaceLimit(SpaceLimit* limit) ABSL_LOCKS_EXCLUDED(sequencer_) = 0;
  // The limit may answer differently now.
  virtual void Recheck() ABSL_LOCKS_EXCLUDED(sequencer_) = 0;

  virtual EngineClock& engine_clock() = 0;
  virtual JournalStats stats() ABSL_LOCKS_EXCLUDED(sequencer_) = 0;

 protected:
  explicit Journal(Mutex& sequencer) : RecordSink(sequencer) {}
};

}  // namespace holdfast
