// CrashRun: a seeded workload on a real engine over the simulated disk, with a snapshot of the disk
// before every operation that can change it. Each snapshot is a moment at which the power may go
// off or the process be killed; the run's history says what has to come back then.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"
#include "stores/engine_on_storage.h"
#include "tests/sim/history.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/sim/workload.h"

namespace holdfast {

struct CrashRunOptions {
  uint64_t seed = 1;
  Durability durability = Durability::kSynced;
  absl::Duration commit_interval = absl::ZeroDuration();
  size_t steps = 60;           // calls of the first boot, before its clean close
  size_t steps_reopened = 12;  // and of the second
  uint64_t event_bytes_max = 3000;
  bool lying_syncs = false;
  size_t depth_max = 8;
  uint32_t sector_bytes = 512;
  // Takes checkpoints, compacts and retires all the time.
  bool housekeeping = false;
};

// What must hold for whatever comes back after a crash at one moment.
struct CrashExpectation {
  size_t required = 0;         // calls confirmed at the level in force
  size_t required_synced = 0;  // calls that the engine counts as synced: these survive a power cut
  size_t begun = 0;
  uint64_t lsn_max = 0;  // the highest number handed out
  uint64_t epoch = 0;    // the newest boot that a caller has seen
  size_t ids = 0;        // how many delivery ids were handed out
};

struct CrashMoment {
  SimOperation operation;  // the one that did not happen any more
  SimDisk disk;
  CrashExpectation expect;
};

// What is needed to judge a disk after a crash. Borrows the run that it is of.
struct CrashWitness {
  const CrashRunOptions& options;
  const History& history;
  const std::vector<std::string>& ids;
};

EngineOptions EngineOptionsFor(const CrashRunOptions& options, Clock& clock, Rng& rng);

class CrashRun {
 public:
  explicit CrashRun(const CrashRunOptions& options);

  // Runs to the end; EXPECT-fails where the engine answers otherwise than the model. False: it did
  // not get to the end.
  bool Run();

  const std::vector<CrashMoment>& moments() const { return moments_; }
  const History& history() const { return history_; }
  CrashWitness witness() const { return {options_, history_, workload_.ids()}; }
  const CrashRunOptions& options() const { return options_; }
  uint64_t segments_max() const { return segments_max_; }
  // Over all boots.
  const EngineStats& housekept() const { return housekept_; }

 private:
  bool Boot(size_t steps);
  void Step(TickingEngine& engine);
  void Note(TickingEngine& engine);
  void KeepHouse(TickingEngine& engine);

  const CrashRunOptions options_;
  SimClock clock_;
  SeededRng choices_;
  History history_;
  Workload workload_;
  SeededRng engine_rng_;
  SimStorage storage_;
  CrashExpectation expect_;
  std::vector<CrashMoment> moments_;
  uint64_t segments_max_ = 0;
  EngineStats housekept_;
};

}  // namespace holdfast
