#include "runtime/retry_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

class ConstantRng final : public Rng {
 public:
  explicit ConstantRng(uint64_t value) : value_(value) {}
  uint64_t Next() override { return value_; }

 private:
  const uint64_t value_;
};

class RetryPolicyTest : public testing::Test {
 protected:
  absl::Duration Wait(uint32_t attempts) { return BackoffAfter(options_, attempts, middle_); }

  DispatcherOptions options_{.backoff_min = absl::Seconds(1), .backoff_max = absl::Seconds(16)};
  ConstantRng zeros_{0}, ones_{UINT64_MAX};
  ConstantRng middle_{uint64_t{1} << 63};  // no jitter, whatever there is
};

TEST_F(RetryPolicyTest, DoublesForEachAttemptUpToTheMaximum) {
  EXPECT_EQ(Wait(1), absl::Seconds(1));
  EXPECT_EQ(Wait(2), absl::Seconds(2));
  EXPECT_EQ(Wait(3), absl::Seconds(4));
  EXPECT_EQ(Wait(4), absl::Seconds(8));
  for (uint32_t attempts = 5; attempts < 200; ++attempts) {
    ASSERT_EQ(Wait(attempts), absl::Seconds(16)) << attempts;
  }
}

TEST_F(RetryPolicyTest, NoAttemptCountsAsOne) { EXPECT_EQ(Wait(0), Wait(1)); }

TEST_F(RetryPolicyTest, AMaximumThatIsNoDoublingIsStillTheMaximum) {
  options_.backoff_max = absl::Milliseconds(2'500);
  EXPECT_EQ(Wait(2), absl::Seconds(2));
  EXPECT_EQ(Wait(3), absl::Milliseconds(2'500));
  options_.backoff_max = options_.backoff_min;
  EXPECT_EQ(Wait(1), absl::Seconds(1));
  EXPECT_EQ(Wait(9), absl::Seconds(1));
}

TEST_F(RetryPolicyTest, NoNumberOfAttemptsOverflows) {
  for (const uint32_t attempts : {64u, 65u, 1u << 31, UINT32_MAX - 1, UINT32_MAX}) {
    EXPECT_EQ(Wait(attempts), absl::Seconds(16)) << attempts;
  }
  options_.backoff_min = absl::Nanoseconds(1);
  options_.backoff_max = absl::Hours(24 * 365);
  EXPECT_EQ(Wait(30), absl::Nanoseconds(1 << 29));
  EXPECT_EQ(Wait(UINT32_MAX), options_.backoff_max);
}

// No chance makes it more than `backoff_jitter` shorter or longer, and the extremes are reached.
TEST_F(RetryPolicyTest, JitterStaysWithinItsBounds) {
  constexpr absl::Duration kRounding = absl::Nanoseconds(1);
  for (const double jitter : {0.0, 0.2, 0.5, 1.0}) {
    options_.backoff_jitter = jitter;
    for (const uint32_t attempts : {0u, 1u, 2u, 5u, UINT32_MAX}) {
      const absl::Duration middle = Wait(attempts);
      const absl::Duration shortest = BackoffAfter(options_, attempts, zeros_);
      const absl::Duration longest = BackoffAfter(options_, attempts, ones_);
      EXPECT_GE(shortest, absl::ZeroDuration());
      EXPECT_LE(absl::AbsDuration(shortest - middle * (1 - jitter)), kRounding) << jitter;
      EXPECT_LE(absl::AbsDuration(longest - middle * (1 + jitter)), kRounding) << jitter;
    }
  }
}

// What becomes due at one time is spread evenly, not tried again at one time.
TEST_F(RetryPolicyTest, JitterSpreadsEvenly) {
  options_.backoff_jitter = 0.5;
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::array<int, 10> parts{};  // each a tenth of a second, from 0.5 s to 1.5 s
    for (int i = 0; i < 10'000; ++i) {
      const absl::Duration wait = BackoffAfter(options_, 1, rng);
      ASSERT_GE(wait, absl::Milliseconds(500));
      ASSERT_LE(wait, absl::Milliseconds(1'500));
      const auto part =
          static_cast<size_t>((wait - absl::Milliseconds(500)) / absl::Milliseconds(100));
      ++parts.at(std::min<size_t>(part, 9));
    }
    for (const int in_part : parts) {
      EXPECT_GT(in_part, 800);
      EXPECT_LT(in_part, 1'200);
    }
  }
}

TEST_F(RetryPolicyTest, APartIsAnythingFromNothingToTheWhole) {
  for (const absl::Duration whole :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Seconds(1), absl::Hours(24 * 365)}) {
    EXPECT_EQ(AnyPartOf(whole, zeros_), absl::ZeroDuration());
    EXPECT_EQ(AnyPartOf(whole, middle_), whole / 2);
    EXPECT_LE(AnyPartOf(whole, ones_), whole);
    EXPECT_GE(AnyPartOf(whole, ones_), whole - absl::Nanoseconds(10));
  }
}

TEST_F(RetryPolicyTest, NothingWaitsLongerThanTheLongestWait) {
  options_.ack_timeout = absl::Seconds(30);
  options_.backoff_jitter = 0.25;
  EXPECT_EQ(LongestWait(options_), absl::Seconds(30));
  options_.ack_timeout = absl::Seconds(3);
  EXPECT_EQ(LongestWait(options_), absl::Seconds(20));
  for (const uint64_t seed : Seeds(500)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    options_.ack_timeout = absl::Microseconds(1 + static_cast<int64_t>(rng.Below(1'000'000)));
    options_.backoff_min = absl::Nanoseconds(1 + static_cast<int64_t>(rng.Below(1'000'000'000)));
    options_.backoff_max = options_.backoff_min * (1 + static_cast<int64_t>(rng.Below(10'000)));
    options_.backoff_jitter = static_cast<double>(rng.Below(101)) / 100;
    EXPECT_GE(LongestWait(options_), options_.ack_timeout);
    EXPECT_GE(LongestWait(options_), BackoffAfter(options_, UINT32_MAX, ones_));
    EXPECT_GE(LongestWait(options_), BackoffAfter(options_, 1, ones_));
    EXPECT_GE(LongestWait(options_), BackoffAfter(options_, static_cast<uint32_t>(seed), rng));
  }
}

}  // namespace
}  // namespace holdfast
