// `holdfast-bench stores`: the cycle on the journal stores, against the floor, the in-memory stores
// and bare maps, and against the device alone; everything in one run, as ratios.
#pragma once

#include <string>
#include <vector>

#include "bench/samples.h"
#include "holdfast/options.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct StoresOptions {
  std::string directory;  // exists; the run makes what it needs in it and removes the stores again
  IoBackend io = IoBackend::kAuto;
  double seconds = 1;                  // of each measurement
  bool batched = true, synced = true;  // which cases
  int rounds = 3;  // the cases take turns, so that a slow minute meets all of them
};

enum class SubjectKind { kJournal, kFloor, kMemory, kMaps };
const char* NameOf(SubjectKind kind);

struct StoresCase {
  std::string callers;  // "4", "4 x 64 in flight"
  bool batched = false;
  WorkloadPlan plan;
  std::vector<std::pair<SubjectKind, Samples>> subjects;
  std::vector<double> device_p50_micros;  // of each round, just before this case's

  // Needs: the case has that subject.
  const Samples& of(SubjectKind kind) const;
};

struct StoresReport {
  std::string io;  // what the journal stores wrote with
  std::vector<StoresCase> cases;
};

// Errors: the first of any measurement
StatusOr<StoresReport> RunStoresBench(const StoresOptions& options);

}  // namespace holdfast::bench
