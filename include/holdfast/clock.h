// Time, handed in by the host so that tests can own it.
#pragma once

#include "absl/time/time.h"

namespace holdfast {

// Threads: any. A clock outlives every object that was given it.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic time since an arbitrary start. Never steps back; used for every delay and deadline.
  virtual absl::Duration Now() = 0;

  // Wall time. May jump either way; used for stamps that people read and for task deadlines only.
  virtual absl::Time WallNow() = 0;

  // Longest time to sleep in reality for a monotonic `deadline`: the real clock answers
  // max(0, deadline - Now()). A simulated clock may answer less, so that a loop looks again.
  virtual absl::Duration Until(absl::Duration deadline) = 0;
};

// The clock of a running program: CLOCK_MONOTONIC and CLOCK_REALTIME. Stateless; lives for ever.
Clock& RealClock();

}  // namespace holdfast
