// Opener: lock, read, decide, cut by one rename, hand over (JOURNAL protocol, "Opening").
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/engine.h"
#include "holdfast/log_sink.h"
#include "holdfast/rng.h"
#include "journal/base/status.h"
#include "journal/io/storage.h"
#include "journal/journal.h"
#include "journal/state_machine.h"
#include "recovery/checkpoint_writer.h"
#include "recovery/replayer.h"

namespace holdfast {

struct OpenerOptions {
  uint64_t segment_bytes = uint64_t{64} << 20;
  absl::Duration lock_wait = absl::Seconds(10);
  // Replays the whole journal, whatever checkpoints there are.
  bool ignore_checkpoints = false;
  ProgressCallback progress = {};  // see EngineOptions::on_recovery_progress
  LogSink* log = nullptr;
};

struct OpenedStore {
  JournalStart start;
  RecoveryReport report;
  // That were kept: whole by header and footer, oldest first, at most kCheckpointsKept.
  std::vector<KeptCheckpoint> checkpoints;
  uint64_t replayed_bytes = 0;  // of journal behind the one that was used
  // The first segment with records of types that this program does not know and may skip; none:
  // there are none.
  SegmentId pinned;
};

// Opens the store in `storage` for writing (or makes a new one) and replays every record into
// `machines`. A refusal has changed no byte; a crash at any point is recovered by the next call.
// Errors: as Engine::Open
StatusOr<OpenedStore> OpenStore(Storage& storage, Clock& clock, Rng& rng,
                                const OpenerOptions& options, const StateMachines& machines);

// What a reader decides; nothing is locked or written.
struct ReadStore {
  RecoveryReport report;
  StoreIdentity identity;  // of the newest boot
  absl::Duration engine_time;
  SegmentId oldest, newest;
  uint64_t disk_bytes = 0;  // of all segment files
};
struct ReaderOptions {
  bool ignore_checkpoints = false;
  ProgressCallback progress = {};
  LogSink* log = nullptr;
};
// Beside a live writer too: bytes beyond the newest mark are then the live tail, not damage.
// Errors: as Engine::Open
//         kNotFound  no store here
StatusOr<ReadStore> OpenReadOnly(Storage& storage, const StateMachines& machines,
                                 const ReaderOptions& options = {});

}  // namespace holdfast
