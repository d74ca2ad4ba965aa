// EngineOptions: every knob of the engine, with its unit, range and default.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "holdfast/log_sink.h"
#include "holdfast/rng.h"
#include "holdfast/store_factory.h"

namespace holdfast {

enum class Backend {
  kJournal,  // durable, in EngineOptions::directory
  kMemory,   // nothing survives; for tests and as the baseline of the benchmarks
};

enum class Durability {
  kSynced,   // confirmed = survives process kill, OS crash and power loss
  kWritten,  // confirmed = survives a process kill only; synced at least once a second
};

enum class IoBackend {
  kAuto,   // io_uring where the kernel allows it, else POSIX; which one is logged once
  kUring,  // io_uring or fail
  kPosix,
};

// How far an open has come.
struct RecoveryProgress {
  uint64_t bytes_done = 0;  // of checkpoint and journal, read and taken
  uint64_t bytes_total = 0;
  uint64_t records = 0;  // replayed so far
};

struct EngineOptions {
  // Created if it does not exist (one level, not for read_only). A directory with foreign content
  // is refused.
  std::string directory;
  Backend backend = Backend::kJournal;
  Durability durability = Durability::kSynced;
  IoBackend io = IoBackend::kAuto;

  // 0: a commit goes out as soon as the device is free. Otherwise commits are written as they fill
  // groups, and one flush each interval confirms them all. 0 .. 10 s.
  absl::Duration commit_interval = absl::ZeroDuration();

  // Size of one journal file, a multiple of 4 KiB, 64 KiB .. 1 GiB. Existing files keep theirs.
  uint64_t segment_bytes = uint64_t{64} << 20;

  // Largest event. What really fits is also bounded by a batch: 64 bytes less than
  // min(16 MiB, segment_bytes / 4).
  uint64_t event_bytes_max = uint64_t{16} << 20;

  // Events at least this large are stored compressed where that saves an eighth; 0 switches it off.
  uint64_t compress_event_bytes_min = 4096;

  // Values that were read, kept in memory, least recently used out first; both bounds hold. What
  // was put last is in memory besides: up to 8 MiB of journal.
  uint64_t value_cache_entries = 10'000;
  uint64_t value_cache_bytes = uint64_t{64} << 20;

  // In the background, and at a clean stop, a checkpoint of the index is taken after so much
  // journal, or as much as the last checkpoint took, or a quarter of the live bytes, whichever is
  // most: what a restart has to read besides the checkpoint. 0: one segment.
  uint64_t checkpoint_every_bytes = 0;

  // Segment files take at most max(space_ratio × live bytes, live bytes + 8 segments). To keep it,
  // what is still live in the oldest segments is stated again at the end of the journal, and
  // mutations wait where that falls behind. Smaller means less disk and more writing. 1.5 .. 100.
  double space_ratio = 3;

  // Most that this may read and write a second while the bound is not in danger. 0: no limit.
  uint64_t compact_bytes_per_second = uint64_t{64} << 20;

  // Acknowledgements that are remembered, so that a repeated one gets the same answer, after a
  // restart too: the newest. About 60 bytes of memory each, and 16 of what counts as live.
  // 0 .. 10,000,000. Raising it does not bring back what was forgotten.
  uint64_t remembered_answers = 100'000;

  // How long to wait for the lock of a killed predecessor whose writes are still in flight.
  absl::Duration lock_wait = absl::Seconds(10);

  // Recover into memory and write nothing, beside a live writer too. Mutations fail with kReadOnly.
  bool read_only = false;

  // Where subscriptions, sessions and tasks live: by default in the same journal. Its sessions.*
  // and tasks.* are their time limits.
  SharedStoreOptions shared = {};

  // Called during Open, in its thread, for each few MiB of journal read. May be empty.
  std::function<void(const RecoveryProgress&)> on_recovery_progress = {};

  // Borrowed; must outlive the Engine. Null: the real clock, random seed, no log.
  Clock* clock = nullptr;
  Rng* rng = nullptr;
  LogSink* log = nullptr;
};

}  // namespace holdfast
