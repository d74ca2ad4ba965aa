// Opener: lock, read, decide, cut by one rename, hand over (JOURNAL protocol, "Opening").
#pragma once

#include <memory>
#include <optional>

#include "holdfast/clock.h"
#include "holdfast/engine.h"
#include "holdfast/log_sink.h"
#include "holdfast/rng.h"
#include "journal/base/status.h"
#include "journal/io/storage.h"
#include "journal/journal.h"
#include "journal/state_machine.h"

namespace holdfast {

struct OpenerOptions {
  uint64_t segment_bytes = uint64_t{64} << 20;
  absl::Duration lock_wait = absl::Seconds(10);
  LogSink* log = nullptr;
};

struct OpenedStore {
  JournalStart start;
  RecoveryReport report;
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
};
// Beside a live writer too: bytes beyond the newest mark are then the live tail, not damage.
// Errors: as Engine::Open
//         kNotFound  no store here
StatusOr<ReadStore> OpenReadOnly(Storage& storage, const StateMachines& machines);

}  // namespace holdfast
