// Checkpoint: the state of every machine in one file, so that an open replays the end of the
// journal only. Fuzzy, as in ARIES: appends go on while it is captured.
//
// It has two LSNs. `from` is the newest when the capture began: replay begins behind it. `through`
// is the newest when it ended: no entry rests on a newer record, so the file gets its name only
// when S has reached it. What changed in between may be in the file as it was or as it became, or
// be missing; Apply is absolute and idempotent, so replay from `from` on puts all of it right.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/checkpoint_header.h"
#include "journal/io/storage.h"
#include "journal/state_machine.h"
#include "recovery/checkpoint_writer.h"

namespace holdfast {

// Whose checkpoint it is.
struct CheckpointIdentity {
  StoreId store_id{};
  uint64_t salt = 0;
  Epoch epoch;
  absl::Duration engine_time;
  absl::Time created;
  SegmentId pinned;  // see CheckpointHeader
};

// All borrowed; they outlive the capture.
struct CaptureParts {
  Storage& storage;
  Mutex& sequencer;
  const StateMachines& machines;
  // The newest LSN that was given out; its record is applied. Called with the sequencer held.
  std::function<Lsn()> appended;
  // Returns when S >= the LSN. Called without the sequencer.
  // Errors: kDeadlineExceeded  not yet: the same step is to be taken again
  //         any other          S will not get there: the checkpoint is given up, its file stays as
  //                            it is for the next open to remove
  std::function<Status(Lsn)> wait_synced;
};

// One capture, step by step: a thread runs one after the other and rests in between as it likes;
// the simulator puts anything else in between. Threads: one at a time.
class CheckpointCapture {
 public:
  // How much is encoded under one hold of the sequencer, about: some 20 deliveries, in less time
  // than a writer looks for the sequencer before it sleeps. To be woken costs it ten times as much.
  static constexpr size_t kChunkBytes = size_t{2} << 10;

  // Takes `from` and begins the file.
  // Errors: kFailedPrecondition  nothing was ever appended
  //         as CheckpointWriter::Create
  static StatusOr<std::unique_ptr<CheckpointCapture>> Begin(const CaptureParts& parts,
                                                            const CheckpointIdentity& identity);

  // Takes one step: a chunk of entries, the end of the file, or its name. False: the checkpoint is
  // published. After an error there is no next step.
  // Errors: as CheckpointWriter, and as `wait_synced`
  StatusOr<bool> Step() ABSL_LOCKS_EXCLUDED(parts_.sequencer);

  Lsn from() const { return writer_->from(); }
  uint64_t written_bytes() const { return writer_->bytes(); }
  // Needs: Step() returned false.
  const KeptCheckpoint& result() const { return result_; }

 private:
  struct Source {
    uint32_t section;
    StateMachine* machine;
  };
  CheckpointCapture(const CaptureParts& parts, std::vector<Source> sources,
                    std::unique_ptr<CheckpointWriter> writer)
      : parts_(parts), sources_(std::move(sources)), writer_(std::move(writer)) {}

  Status CaptureChunk();
  Status Finish();

  const CaptureParts parts_;
  const std::vector<Source> sources_;
  std::unique_ptr<CheckpointWriter> writer_;
  size_t source_ = 0;    // whose entries come next
  uint64_t cursor_ = 0;  // of that machine
  std::string chunk_;
  Lsn through_;  // none: not known yet
  KeptCheckpoint result_;
};

// All steps at once. `between` is called after each with the bytes written so far, without the
// sequencer: it may sleep, and stops the capture by returning false.
// Errors: as CheckpointCapture; kFailedPrecondition kClosed  stopped; nothing is left of it
StatusOr<KeptCheckpoint> CaptureCheckpoint(const CaptureParts& parts,
                                           const CheckpointIdentity& identity,
                                           const std::function<bool(uint64_t)>& between);

}  // namespace holdfast
