// EngineClock: monotonic time added up over the boots of a store.
#pragma once

#include "absl/time/time.h"
#include "holdfast/clock.h"

namespace holdfast {

// Threads: any.
class EngineClock {
 public:
  // `found` is the newest engine time that the previous boots left on disk.
  EngineClock(Clock& clock, absl::Duration found) : clock_(clock), offset_(found - clock.Now()) {}
  absl::Duration Now() { return offset_ + clock_.Now(); }
  int64_t NowNanos() { return absl::ToInt64Nanoseconds(Now()); }

 private:
  Clock& clock_;  // Borrowed; outlives this object.
  const absl::Duration offset_;
};

}  // namespace holdfast
