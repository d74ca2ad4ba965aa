#include "journal/base/duration_range.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(DurationRangeTest, BothEndsAreInIt) {
  const DurationRange range{absl::Milliseconds(10), absl::Hours(1)};
  EXPECT_OK(CheckRange("interval", absl::Milliseconds(10), range));
  EXPECT_OK(CheckRange("interval", absl::Hours(1), range));
}

TEST(DurationRangeTest, WhatIsOutsideIsToldWithTheRange) {
  const DurationRange range{absl::Milliseconds(10), absl::Hours(1)};
  const Status below = CheckRange("interval", absl::Milliseconds(9), range);
  EXPECT_FAILS(below, kInvalidArgument, kNone);
  EXPECT_EQ(Message(below), "interval: 9ms is out of range, 10ms .. 1h");
  EXPECT_FAILS(CheckRange("interval", absl::InfiniteDuration(), range), kInvalidArgument, kNone);
}

}  // namespace
}  // namespace holdfast
