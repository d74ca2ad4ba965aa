// `holdfast-bench backlog`: many deliveries that stay pending, and a constant flow of short-lived
// ones beside them: disk, memory, amplification, and what an operation costs against a store that
// holds a thousand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/run_facts.h"
#include "holdfast/options.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct BacklogOptions {
  std::string directory;  // exists; the stores are made in it and removed again
  IoBackend io = IoBackend::kAuto;
  uint64_t pending = 1'000'000;
  uint64_t event_bytes = 256;
  double seconds = 2;  // of each turn of the flow
  int turns = 5;       // beside the backlog; as many before it and after it on the small store
};

// The flow on one store.
struct FlowFigures {
  double micros = 0;  // of a cycle, until the last one was confirmed; median of the turns
  double cpu_micros = 0;
  uint64_t cycles = 0;       // of all turns
  double amplification = 0;  // groups as written / records of the flow, over all turns
};

struct BacklogReport {
  FlowFigures small;    // 1,000 pending
  FlowFigures backlog;  // all of them
  double fill_seconds = 0;
  double index_bytes = 0;          // a delivery, besides its id and the cache of values
  uint64_t live_bytes = 0;         // records that the state rests on, as counted here
  uint64_t engine_live_bytes = 0;  // as counted by the engine
  uint64_t bound_bytes = 0;        // max(3 x live, live + 8 segments)
  uint64_t disk_bytes = 0;         // of the journal when the flow ended
  uint64_t disk_bytes_max = 0;     // at the end of any turn
  uint64_t checkpoint_bytes = 0;
  uint64_t restated_bytes = 0;
  uint64_t retired_segments = 0;
  uint64_t found = 0;  // Count() at the end
};

// Errors: kResourceExhausted  kDiskFull: too little room for the backlog and its flow
//         kUnavailable        a child process failed; what it met is told on stderr
StatusOr<BacklogReport> RunBacklogBench(const BacklogOptions& options);
// Pending deliveries when the flow stands still.
uint64_t BacklogExpected(const BacklogOptions& options);

std::vector<Target> TargetsOf(const BacklogReport& report);
std::string BacklogMarkdown(const BacklogReport& report, const BacklogOptions& options,
                            const RunFacts& facts);
std::string BacklogJson(const BacklogReport& report, const BacklogOptions& options,
                        const RunFacts& facts);

}  // namespace holdfast::bench
