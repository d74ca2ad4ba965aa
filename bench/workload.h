// The cycle workload: threads that put, remove and move offsets on, in one of three ways of
// waiting.
#pragma once

#include <cstdint>
#include <string>

#include "bench/latency_histogram.h"
#include "bench/subject.h"
#include "journal/base/status.h"

namespace holdfast::bench {

enum class Waiting {
  kAtTheEnd,  // batched: one wait at the end; latency is that of the call alone
  kEach,      // blocked: every cycle is confirmed before the next
  kWindow,    // in flight: a number of cycles are out at a time, confirmed by Then()
};

struct WorkloadPlan {
  Waiting waiting = Waiting::kEach;
  int threads = 1;
  int window = 1;  // for kWindow, of each thread
  double seconds = 1;
  double warm_up_seconds = 0;  // the same without waiting, before the clock starts
};

// Pending deliveries of each thread: a cycle removes what was put this many cycles earlier.
inline constexpr uint64_t kPendingOfThread = 1'000;
inline constexpr size_t kEventBytes = 256;

struct WorkloadResult {
  uint64_t cycles = 0;
  double seconds = 0;  // from the common start to the last confirmation
  double cpu_seconds = 0;
  SubjectCounters counters;  // of the measured cycles
  LatencyHistogram latency;

  double cycles_per_second() const { return static_cast<double>(cycles) / seconds; }
};

// Runs `plan` on `subject`, whose stores hold nothing of these clients yet. Fills the pending
// deliveries before the clock starts. Errors: the first that a cycle or a confirmation met
StatusOr<WorkloadResult> RunWorkload(Subject& subject, const WorkloadPlan& plan);

}  // namespace holdfast::bench
