#include "bench/latency_histogram.h"

#include <gtest/gtest.h>

#include "bench/samples.h"

namespace holdfast::bench {
namespace {

TEST(LatencyHistogramTest, AnEmptyOneAnswersZero) { EXPECT_EQ(LatencyHistogram().Micros(0.5), 0); }

TEST(LatencyHistogramTest, PercentilesAreWithinThreePercent) {
  LatencyHistogram histogram;
  for (int64_t nanos = 1; nanos <= 1'000'000; ++nanos) histogram.Add(nanos);
  EXPECT_EQ(histogram.count(), 1'000'000u);
  EXPECT_NEAR(histogram.Micros(0.5), 500, 15);
  EXPECT_NEAR(histogram.Micros(0.99), 990, 30);
  EXPECT_NEAR(histogram.Micros(0.999), 999, 30);
  EXPECT_NEAR(histogram.Micros(1), 1'000, 30);
}

TEST(LatencyHistogramTest, EveryValueHasABucket) {
  LatencyHistogram histogram;
  for (int64_t nanos : {int64_t{-5}, int64_t{0}, int64_t{31}, int64_t{32}, INT64_MAX}) {
    histogram.Add(nanos);
  }
  EXPECT_EQ(histogram.count(), 5u);
  EXPECT_NEAR(histogram.Micros(1), 9.22e15, 3e14);
}

TEST(LatencyHistogramTest, MergingIsAddingAll) {
  LatencyHistogram both, slow;
  both.Add(1'000);
  slow.Add(100'000);
  both.Merge(slow);
  EXPECT_EQ(both.count(), 2u);
  EXPECT_NEAR(both.Micros(1), 100, 3);
}

TEST(SamplesTest, MedianIsTheMiddleOfTheRounds) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2);
}

TEST(SamplesTest, RatesAreComparedWithinTheirRound) {
  Samples mine, theirs;
  for (double slow_down : {1.0, 2.0, 4.0}) {  // The machine gets slower; the ratio holds.
    mine.Add({.cycles_per_second = 800 / slow_down});
    theirs.Add({.cycles_per_second = 1'000 / slow_down});
  }
  EXPECT_DOUBLE_EQ(mine.RateAgainst(theirs), 0.8);
  EXPECT_EQ(mine.RateAgainst(Samples()), 0);
}

}  // namespace
}  // namespace holdfast::bench
