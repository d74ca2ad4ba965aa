// Bounds how many operations of a caller are out at once, and waits until none is.
#pragma once

#include <cstdint>

#include "journal/base/check.h"
#include "journal/base/mutex.h"

namespace holdfast {

// Threads: any.
class InFlight {
 public:
  explicit InFlight(uint64_t count_max) : count_max_(count_max) {}

  // Waits for room. Not in a callback of the engine: those make the room.
  void Begin() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    while (count_ >= count_max_) changed_.Wait(mu_);
    ++count_;
  }
  void End() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    CHECK(count_ > 0);
    --count_;
    changed_.NotifyAll();
  }
  void AwaitNone() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    while (count_ > 0) changed_.Wait(mu_);
  }

 private:
  const uint64_t count_max_;
  Mutex mu_;
  CondVar changed_;
  uint64_t count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace holdfast
