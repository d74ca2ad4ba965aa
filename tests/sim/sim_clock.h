// SimClock: time that moves only when a test says so.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "journal/base/mutex.h"

namespace holdfast {

// Threads: any.
class SimClock final : public Clock {
 public:
  // Some day in 2026; tests that print times are easier to read with a plausible one.
  explicit SimClock(absl::Time wall = absl::FromUnixSeconds(1'770'000'000)) : wall_(wall) {}

  absl::Duration Now() override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return now_;
  }
  absl::Time WallNow() override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return wall_;
  }
  // Never longer than a millisecond of real time, so that a loop soon sees a clock that was moved.
  // With jumps on, asking how long to wait is waiting: the clock moves to `deadline`, or by the
  // jump if that comes first.
  absl::Duration Until(absl::Duration deadline) override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (deadline <= now_) return absl::ZeroDuration();
    if (jump_ == absl::ZeroDuration()) return absl::Milliseconds(1);
    const absl::Duration step = std::min(jump_, deadline - now_);
    now_ += step;
    wall_ += step;
    return absl::ZeroDuration();
  }

  void Advance(absl::Duration by) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    now_ += by;
    wall_ += by;
  }
  // The wall clock is set, forward or back; monotonic time goes on.
  void SetWall(absl::Time wall) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    wall_ = wall;
  }
  void JumpWhenAsked(absl::Duration jump) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    jump_ = jump;
  }

 private:
  Mutex mu_;
  absl::Duration now_ ABSL_GUARDED_BY(mu_) = absl::Seconds(1000);
  absl::Time wall_ ABSL_GUARDED_BY(mu_);
  absl::Duration jump_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
};

}  // namespace holdfast
