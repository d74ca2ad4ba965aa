// `holdfast-bench dispatcher`: deliver, push, acknowledge, on the journal and on the in-memory
// stores in turn: in a closed loop, at a fixed rate, and a tick beside many that are not due.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/dispatch_pending.h"
#include "bench/dispatch_workload.h"
#include "bench/samples.h"

namespace holdfast::bench {

struct DispatcherBenchOptions {
  std::string directory;  // exists; the run makes what it needs in it and removes it again
  IoBackend io = IoBackend::kAuto;
  std::string cases = "all";  // or one of "closed", "open", "pending"
  double seconds = 2;         // of each measurement
  int rounds = 3;             // the cases take turns, so that a slow minute meets all of them
  std::vector<int> threads = {1, 2, 4};
  uint64_t in_flight = 100'000;
  double rate = 50'000;
  uint64_t pending = 1'000'000;
  double retries = 0, dlq = 0;
};

struct DispatchCase {
  DispatchPlan plan;
  Samples samples;
  uint64_t redelivered = 0, dead_lettered = 0;  // over all rounds
};

struct DispatcherReport {
  std::string io;  // what the journal wrote with
  std::vector<DispatchCase> closed, open;
  std::optional<DispatchPendingFigures> pending;
  std::vector<std::string> faults;  // what was lost or came twice
};

// Errors: the first of any measurement
StatusOr<DispatcherReport> RunDispatcherBench(const DispatcherBenchOptions& options);

}  // namespace holdfast::bench
