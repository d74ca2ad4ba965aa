#include "journal/base/seeded_rng.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

// The published sequence of splitmix64: a seed that found a fault must find it again.
TEST(SeededRngTest, IsSplitmix64) {
  SeededRng rng(1234567);
  EXPECT_EQ(rng.Next(), 6457827717110365317u);
  EXPECT_EQ(rng.Next(), 3203168211198807973u);
}

TEST(SeededRngTest, StaysBelowItsBound) {
  SeededRng rng(1);
  for (int i = 0; i < 1'000; ++i) EXPECT_LT(rng.Below(7), 7u);
  EXPECT_EQ(rng.Below(1), 0u);
  EXPECT_TRUE(rng.OneIn(1));
}

}  // namespace
}  // namespace holdfast
