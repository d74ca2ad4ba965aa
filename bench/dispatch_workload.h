// The dispatcher's workload: clients that deliver, are pushed to and acknowledge, each call its own
// batch, in a closed loop (a fixed number in flight) or an open one (a fixed rate).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workload.h"
#include "holdfast/options.h"

namespace holdfast::bench {

enum class DispatchStores { kMemory, kBatched, kWriteThrough };
const char* NameOf(DispatchStores stores);

struct DispatchPlan {
  DispatchStores stores = DispatchStores::kMemory;
  std::string directory;  // of the store, which is made new and removed again
  IoBackend io = IoBackend::kAuto;
  int threads = 1;  // of clients
  uint64_t in_flight = 100'000;
  double rate = 0;  // events a second by schedule; 0: the closed loop
  double seconds = 1;
  double retries = 0, dlq = 0;  // shares of events: nacked once, never acknowledged
};

struct DispatchResult {
  // Cycles are acknowledged events. Closed loop: those that were asked for while the clock ran.
  // Open loop: all, and `seconds` is how long they take at the pace that was reached.
  WorkloadResult work;
  uint64_t redelivered = 0, dead_lettered = 0;
  std::vector<std::string> faults;  // what was lost or came twice; empty: nothing
  std::string io;                   // what the journal wrote with
};

// Errors: the first that a call or an acknowledgement met
StatusOr<DispatchResult> RunDispatch(const DispatchPlan& plan);

}  // namespace holdfast::bench
