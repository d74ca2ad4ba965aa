// Many deliveries that are pushed and wait for their acknowledgement, none of them due: what they
// cost in memory, and what a tick costs beside them.
#pragma once

#include <cstdint>
#include <string>

#include "bench/progress.h"
#include "holdfast/options.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct DispatchPendingFigures {
  uint64_t pending = 0;
  double fill_seconds = 0;  // until the last one was durable
  // Of one delivery, dispatcher and stores together, its id and the cache of values taken off.
  double bytes = 0;
  uint64_t ticks = 0;
  double tick_p50_micros = 0, tick_p99_micros = 0, tick_max_micros = 0;
  // The dearest tick there can be: all timers move on to a finer ring of the wheel.
  double cascade_micros = 0;
  uint64_t found = 0;  // in flight at the end, in the dispatcher or the stores: the smaller one
  bool intact() const { return found == pending; }
};

// In a child process, on a store of its own in `directory`, which is removed again.
// Errors: kResourceExhausted  kDiskFull: too little is free for so many
//         kUnavailable        the child ended early; what it met is told on stderr
StatusOr<DispatchPendingFigures> MeasureDispatchPending(const std::string& directory, IoBackend io,
                                                        uint64_t pending, Progress& progress);

}  // namespace holdfast::bench
