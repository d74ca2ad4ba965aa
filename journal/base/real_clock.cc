#include <time.h>

#include "holdfast/clock.h"

namespace holdfast {
namespace {

absl::Duration Read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return absl::DurationFromTimespec(now);
}

class SystemClock final : public Clock {
 public:
  absl::Duration Now() override { return Read(CLOCK_MONOTONIC); }
  absl::Time WallNow() override { return absl::UnixEpoch() + Read(CLOCK_REALTIME); }
  absl::Duration Until(absl::Duration deadline) override {
    return std::max(absl::ZeroDuration(), deadline - Now());
  }
};

}  // namespace

Clock& RealClock() {
  static SystemClock clock;
  return clock;
}

}  // namespace holdfast
