#include "runtime/timer_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "journal/base/seeded_rng.h"

namespace holdfast {
namespace {

using Timer = TimerWheel::Timer;
using Timers = std::vector<Timer>;

constexpr size_t kAll = ~size_t{0};
constexpr TimerWheel::Most kEverything{.due = kAll, .moved = kAll};
constexpr absl::Duration kGrain = TimerWheel::kGrain;
constexpr absl::Duration kInstant = absl::Nanoseconds(1);
constexpr absl::Duration kYear = absl::Hours(24 * 365);

Timers TurnOf(TimerWheel& wheel, absl::Duration now, size_t most = kAll) {
  Timers due;
  wheel.Turn(now, {.due = most, .moved = kAll}, due);
  return due;
}

// How far each ring reaches, in ticks: 256, 256^2, 256^3, and what is set at once in the last one.
std::vector<int64_t> Borders() {
  return {int64_t{1} << 8, int64_t{1} << 16, int64_t{1} << 24, int64_t{1} << 31, int64_t{1} << 32};
}

TEST(TimerWheelTest, ATimerFiresOnce) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Set(3, 10 * kGrain);
  EXPECT_TRUE(wheel.IsSet(3));
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(TurnOf(wheel, 9 * kGrain), Timers());
  EXPECT_EQ(TurnOf(wheel, 10 * kGrain), Timers{3});
  EXPECT_FALSE(wheel.IsSet(3));
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(TurnOf(wheel, kYear), Timers());
}

TEST(TimerWheelTest, ATimerSaysWhenItFires) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Set(1, 10 * kGrain);
  wheel.Set(2, 10 * kGrain + kInstant);
  wheel.Set(3, -kYear);
  wheel.Set(4, 100 * kYear);
  EXPECT_EQ(wheel.DueOf(1), 10 * kGrain);
  EXPECT_EQ(wheel.DueOf(2), 11 * kGrain);
  EXPECT_EQ(wheel.DueOf(3), absl::ZeroDuration());
  EXPECT_GE(wheel.DueOf(4), 100 * kYear);
  EXPECT_EQ(TurnOf(wheel, 5 * kGrain), Timers{3});
  EXPECT_EQ(wheel.DueOf(2), 11 * kGrain);
}

TEST(TimerWheelTest, WhatIsDueIsAddedToWhatTheCallerHas) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Set(1, kGrain);
  Timers due{7};
  EXPECT_FALSE(wheel.Turn(kGrain, kEverything, due));
  EXPECT_EQ(due, (Timers{7, 1}));
}

TEST(TimerWheelTest, ClearingWhatIsNotSetDoesNothing) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Clear(0);
  wheel.Clear(1'000'000);
  EXPECT_FALSE(wheel.IsSet(1'000'000));
  wheel.Set(5, kGrain);
  wheel.Clear(4);
  wheel.Clear(5);
  wheel.Clear(5);
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(TurnOf(wheel, kYear), Timers());
}

TEST(TimerWheelTest, ATimerThatIsSetAnewFiresAtItsNewTimeOnly) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Set(1, 5 * kGrain);
  wheel.Set(1, 1'000 * kGrain);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(TurnOf(wheel, 999 * kGrain), Timers());
  wheel.Set(1, 2'000 * kGrain);
  wheel.Set(1, 1'001 * kGrain);
  EXPECT_EQ(TurnOf(wheel, 1'001 * kGrain), Timers{1});
  EXPECT_EQ(TurnOf(wheel, kYear), Timers());
}

// Years ahead and nearer by turns: what one was set for is forgotten with it.
TEST(TimerWheelTest, ATimerThatIsFarAheadIsClearedAndSetAnewLikeAnyOther) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Set(1, 5 * kYear);
  wheel.Set(2, 5 * kYear);
  wheel.Set(1, kYear / 2);
  wheel.Clear(2);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(wheel.DueOf(1), kYear / 2);
  wheel.Set(2, 10 * kGrain);
  EXPECT_EQ(wheel.DueOf(2), 10 * kGrain);
  EXPECT_EQ(TurnOf(wheel, kYear), (Timers{2, 1}));
  wheel.Set(1, 7 * kYear);
  EXPECT_EQ(wheel.DueOf(1), 7 * kYear);
  EXPECT_EQ(TurnOf(wheel, 7 * kYear - kInstant), Timers());
  EXPECT_EQ(wheel.DueOf(1), 7 * kYear);
  EXPECT_EQ(TurnOf(wheel, 7 * kYear), Timers{1});
}

TEST(TimerWheelTest, WhatIsDueInThePastIsDueAtOnce) {
  TimerWheel wheel(100 * kGrain + kInstant);
  wheel.Set(0, 100 * kGrain);
  wheel.Set(1, kGrain);
  wheel.Set(2, absl::ZeroDuration());
  wheel.Set(3, -kYear);
  wheel.Set(4, -absl::InfiniteDuration());
  wheel.Set(5, 100 * kGrain + kInstant);  // rounded up
  EXPECT_EQ(TurnOf(wheel, 100 * kGrain + kInstant), (Timers{0, 1, 2, 3, 4}));
  EXPECT_EQ(TurnOf(wheel, 101 * kGrain), Timers{5});
}

// Timers that are set afterwards are due by the latest time there was.
TEST(TimerWheelTest, TimeThatGoesBackChangesNothing) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Set(0, 1'100 * kGrain);
  EXPECT_EQ(TurnOf(wheel, 1'000 * kGrain), Timers());
  EXPECT_EQ(TurnOf(wheel, 500 * kGrain), Timers());
  wheel.Set(1, 700 * kGrain);
  EXPECT_EQ(TurnOf(wheel, 500 * kGrain), Timers{1});
  EXPECT_EQ(TurnOf(wheel, 1'099 * kGrain), Timers());
  EXPECT_EQ(TurnOf(wheel, 1'100 * kGrain), Timers{0});
}

TEST(TimerWheelTest, TimeMayBeginBeforeZero) {
  for (const absl::Duration start : {-absl::InfiniteDuration(), -kYear, -kInstant}) {
    TimerWheel wheel(start);
    wheel.Set(0, start);
    wheel.Set(1, absl::ZeroDuration());
    wheel.Set(2, kInstant);
    EXPECT_EQ(TurnOf(wheel, start), (Timers{0, 1}));
    EXPECT_EQ(TurnOf(wheel, kGrain), Timers{2});
    wheel.Set(3, kGrain);
    EXPECT_EQ(TurnOf(wheel, start), Timers{3});
  }
}

TEST(TimerWheelTest, WhatIsNeverDueStaysSet) {
  TimerWheel wheel(absl::ZeroDuration());
  wheel.Set(0, absl::InfiniteDuration());
  wheel.Set(1, 10'000 * kYear + kGrain);
  EXPECT_EQ(TurnOf(wheel, 10'000 * kYear), Timers());
  EXPECT_EQ(TurnOf(wheel, 10'001 * kYear), Timers{1});
  EXPECT_TRUE(wheel.IsSet(0));
  wheel.Clear(0);
  EXPECT_EQ(TurnOf(wheel, absl::InfiniteDuration()), Timers());
  wheel.Set(2, absl::Hours(1));
  EXPECT_EQ(TurnOf(wheel, absl::InfiniteDuration()), Timers{2});
}

// From anywhere, to both sides of every border, in one turn and in two.
TEST(TimerWheelTest, AroundTheBordersOfTheRingsNothingIsEarlyAndNothingLate) {
  std::vector<int64_t> ticks{0, 1, 2, 100};
  for (const int64_t border : Borders()) {
    for (const int64_t more : {-257, -256, -255, -1, 0, 1, 255, 256, 257}) {
      ticks.push_back(border + more);
      ticks.push_back(3 * border + more);
    }
  }
  for (const int64_t start : ticks) {
    for (const int64_t distance : ticks) {
      if (start < 0 || distance <= 0) continue;
      SCOPED_TRACE(testing::Message() << "from tick " << start << " on for " << distance);
      const absl::Duration due = kGrain * (start + distance);
      TimerWheel one(kGrain * start), two(kGrain * start), later(kGrain * start);
      one.Set(0, due);
      ASSERT_EQ(TurnOf(one, due), Timers{0});
      two.Set(0, due);
      ASSERT_EQ(TurnOf(two, due - kInstant), Timers());
      ASSERT_EQ(TurnOf(two, due), Timers{0});
      later.Set(0, due + kInstant);
      ASSERT_EQ(TurnOf(later, due), Timers());
      ASSERT_EQ(TurnOf(later, due + kGrain), Timers{0});
    }
  }
}

TEST(TimerWheelTest, EarlierSlotsComeFirst) {
  SeededRng rng(1);
  std::vector<int64_t> ticks;
  for (const int64_t border : Borders()) {
    for (int64_t more = -255; more <= 300; more += 3) ticks.push_back(border + more);
  }
  std::sort(ticks.begin(), ticks.end());
  Timers timers(ticks.size());
  std::iota(timers.begin(), timers.end(), 0);
  Timers shuffled = timers;
  for (size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[rng.Below(i)]);
  TimerWheel wheel(absl::ZeroDuration());
  for (const Timer timer : shuffled) {
    wheel.Set(timer, kGrain * ticks[timer]);
  }
  EXPECT_EQ(TurnOf(wheel, 10 * kYear), timers);
}

TEST(TimerWheelTest, ATurnTakesNoMoreThanItIsAsked) {
  TimerWheel wheel(absl::ZeroDuration());
  for (Timer timer = 0; timer < 10; ++timer) wheel.Set(timer, kGrain * (1 + timer / 4));
  EXPECT_EQ(TurnOf(wheel, kYear, 0), Timers());
  EXPECT_EQ(TurnOf(wheel, kYear, 3), (Timers{0, 1, 2}));
  EXPECT_EQ(wheel.size(), 7u);
  // What is left over can be cleared and set anew like any other, and time need not go on for it.
  wheel.Clear(3);
  wheel.Set(4, 2 * kYear);
  EXPECT_EQ(TurnOf(wheel, kYear, 3), (Timers{5, 6, 7}));
  EXPECT_EQ(TurnOf(wheel, kYear, 3), (Timers{8, 9}));
  EXPECT_EQ(TurnOf(wheel, kYear, 3), Timers());
  EXPECT_EQ(TurnOf(wheel, 2 * kYear, 3), Timers{4});
}

// Ten thousand years, year by year, are 2 * 10^13 ticks: looking at each would never end.
TEST(TimerWheelTest, StretchesWithoutATimerAreNotWalkedThrough) {
  TimerWheel wheel(absl::ZeroDuration());
  for (int64_t year = 1; year <= 10'000; ++year) {
    wheel.Set(0, year * kYear);
    wheel.Set(1, absl::InfiniteDuration());
    ASSERT_EQ(TurnOf(wheel, year * kYear - kGrain), Timers());
    ASSERT_EQ(TurnOf(wheel, year * kYear), Timers{0});
  }
}

// A million turns and a million timers: looking at each of them in each turn would never end.
// Proves: T3
TEST(TimerWheelTest, TurnsCostWhatIsDueNotWhatIsSet) {
  constexpr Timer kTimers = 1'000'000;
  TimerWheel wheel(absl::ZeroDuration());
  for (Timer timer = 0; timer < kTimers; ++timer) {
    wheel.Set(timer, absl::Hours(24) + absl::Milliseconds(timer));
  }
  Timers due;
  for (int64_t turn = 1; turn <= 1'000'000; ++turn) {
    ASSERT_FALSE(wheel.Turn(turn * kGrain, kEverything, due));
  }
  ASSERT_EQ(due, Timers());
  ASSERT_EQ(wheel.size(), kTimers);
  EXPECT_EQ(TurnOf(wheel, absl::Hours(48)).size(), kTimers);
}

// A million timers in one slot of a long ring: the turns that take them to shorter rings are as
// many as it needs, and none comes early, late or twice. Proves: T3
TEST(TimerWheelTest, ATurnMovesNoMoreThanItMay) {
  constexpr Timer kTimers = 10'000;
  constexpr TimerWheel::Most kFew{.due = kAll, .moved = 100};
  TimerWheel wheel(absl::ZeroDuration());
  const absl::Duration border = kGrain * (int64_t{1} << 16);
  for (Timer timer = 0; timer < kTimers; ++timer) wheel.Set(timer, border + timer % 300 * kGrain);
  Timers due;
  size_t turns = 1;
  while (wheel.Turn(border, kFew, due)) ++turns;
  EXPECT_GE(turns, kTimers / 100);
  EXPECT_EQ(due.size(), (kTimers + 299) / 300);
  // What is set or cleared in the middle of it is not lost.
  ASSERT_TRUE(wheel.Turn(border + 256 * kGrain, kFew, due));
  wheel.Set(kTimers, border + 257 * kGrain);
  wheel.Clear(299);
  while (wheel.Turn(border + 400 * kGrain, kFew, due)) continue;
  EXPECT_EQ(wheel.size(), 0u);
  std::sort(due.begin(), due.end());
  EXPECT_EQ(std::adjacent_find(due.begin(), due.end()), due.end());
  EXPECT_EQ(due.size(), kTimers);
  EXPECT_FALSE(std::binary_search(due.begin(), due.end(), Timer{299}));
}

}  // namespace
}  // namespace holdfast
