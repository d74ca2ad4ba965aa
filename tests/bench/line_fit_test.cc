#include "bench/line_fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace holdfast::bench {
namespace {

TEST(LineFitTest, WithoutTwoPointsThereIsNoSlope) {
  LineFit fit;
  EXPECT_EQ(fit.slope(), 0);
  fit.Add(3, 4);
  fit.Add(3, 5);
  EXPECT_EQ(fit.slope(), 0);
}

TEST(LineFitTest, PointsOfALineGiveItsSlope) {
  LineFit fit;
  for (int x = 1'000'000; x < 1'000'100; ++x) fit.Add(x, 7 - 1.25 * x);
  EXPECT_NEAR(fit.slope(), -1.25, 1e-9);
}

// Asked for evenly over 5 s, answered in bursts each 100 ms: as fast as asked, whatever the phase.
TEST(LineFitTest, BurstsHaveTheSlopeOfTheLongRun) {
  for (const double phase : {0.0, 0.03, 0.05, 0.09}) {
    LineFit fit;
    for (int point = 0; point < 50'000; ++point) {
      const double asked = point * 1e-4;
      fit.Add(asked, (std::floor((asked + phase) * 10) + 1) / 10);
    }
    EXPECT_NEAR(fit.slope(), 1, 0.002) << phase;
  }
}

}  // namespace
}  // namespace holdfast::bench
