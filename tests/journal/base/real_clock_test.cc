#include <gtest/gtest.h>

#include "holdfast/clock.h"

namespace holdfast {
namespace {

TEST(RealClockTest, NeverGoesBack) {
  Clock& clock = RealClock();
  absl::Duration before = clock.Now();
  for (int i = 0; i < 1'000; ++i) {
    const absl::Duration now = clock.Now();
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(RealClockTest, WallTimeIsOfThisCentury) {
  EXPECT_GT(RealClock().WallNow(), absl::FromUnixSeconds(1'600'000'000));
}

TEST(RealClockTest, NoTimeIsLeftUntilAMomentThatIsOver) {
  Clock& clock = RealClock();
  EXPECT_EQ(clock.Until(clock.Now() - absl::Seconds(1)), absl::ZeroDuration());
  const absl::Duration left = clock.Until(clock.Now() + absl::Hours(1));
  EXPECT_GT(left, absl::ZeroDuration());
  EXPECT_LE(left, absl::Hours(1));
}

}  // namespace
}  // namespace holdfast
