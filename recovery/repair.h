// Repair: what to do about damage, as a plan that can be read before it is carried out. Nothing is
// ever deleted: a damaged file is renamed to quarantine, and what is lost is named.
#pragma once

#include <string>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/log_sink.h"
#include "holdfast/rng.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/io/storage.h"

namespace holdfast {

struct LsnRange {
  Lsn first, last;
};

struct RepairPlan {
  // In the order in which they are carried out, one sentence each. Empty: nothing to do.
  std::vector<std::string> steps;
  std::vector<LsnRange> lost;
  // What the loss may mean: "deliveries acknowledged in the lost range may come back", ...
  std::vector<std::string> consequences;
  bool empty() const { return steps.empty(); }
};

// Reads only.
// Errors: kNotFound            no store here
//         kFailedPrecondition  kNewerFormat
//         kUnavailable         a read failed
//         kDataLoss            nothing can be read any more: no segment, or no salt to check one
//                              with
StatusOr<RepairPlan> PlanRepair(Storage& storage);

struct RepairOptions {
  absl::Duration lock_wait = absl::Seconds(10);
  LogSink* log = nullptr;
};

// Takes the lock, plans again, carries the plan out and returns it. A crash at any point leaves a
// store that a second repair finishes, with every healthy byte still there.
// Errors: as PlanRepair and OpenStore
StatusOr<RepairPlan> ApplyRepair(Storage& storage, Clock& clock, Rng& rng,
                                 const RepairOptions& options);

}  // namespace holdfast
