// The wheel beside a sorted map of what is set.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "journal/base/seeded_rng.h"
#include "runtime/timer_wheel.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

using Timer = TimerWheel::Timer;

// All times are nanoseconds.
class ComparedWheel {
 public:
  ComparedWheel(int64_t start, uint64_t seed)
      : now_(start), reached_(start / kTick), rng_(seed), wheel_(absl::Nanoseconds(start)) {}

  void Set() {
    const auto timer = static_cast<Timer>(rng_.Below(kTimers));
    const int64_t due = rng_.OneIn(8) ? now_ - AnyStretch() : now_ + AnyStretch();
    wheel_.Set(timer, absl::Nanoseconds(due));
    Forget(timer);
    const int64_t tick = due <= 0 ? 0 : due / kTick + (due % kTick == 0 ? 0 : 1);
    places_[timer] = pending_.emplace(std::max(tick, reached_), timer);
  }
  void Clear() {
    const auto timer = static_cast<Timer>(rng_.Below(kTimers));
    wheel_.Clear(timer);
    Forget(timer);
  }
  void Turn() {
    now_ = std::min(now_ + AnyStretch(), kLast);
    const size_t most = rng_.OneIn(2) ? SIZE_MAX : rng_.Below(6);
    std::vector<Timer> due;
    const size_t moved = rng_.OneIn(2) ? SIZE_MAX : rng_.Below(4);
    // Whoever may move less comes back until there is nothing to do, or has enough.
    bool more = true;
    while (more && due.size() < most) {
      more = wheel_.Turn(absl::Nanoseconds(now_),
                         {.due = most - due.size(), .moved = std::max<size_t>(moved, 1)}, due);
    }
    const int64_t end = now_ / kTick;
    for (const Timer timer : due) {
      const auto place = places_.find(timer);
      ASSERT_NE(place, places_.end()) << timer << " was not set";
      ASSERT_LE(place->second->first, end) << timer << " is early";
      ASSERT_EQ(place->second->first, pending_.begin()->first) << timer << " is out of order";
      Forget(timer);
    }
    ASSERT_LE(due.size(), most);
    if (pending_.empty() || pending_.begin()->first > end) {
      reached_ = end;
    } else {
      ASSERT_EQ(due.size(), most) << pending_.begin()->second << " is late";
      reached_ = pending_.begin()->first;
    }
  }
  void ExpectTheSame() const {
    ASSERT_EQ(wheel_.size(), pending_.size());
    for (Timer timer = 0; timer < kTimers; ++timer) {
      ASSERT_EQ(wheel_.IsSet(timer), places_.contains(timer)) << timer;
    }
  }

 private:
  static constexpr Timer kTimers = 48;
  static constexpr int64_t kTick = 16'000'000;
  static_assert(TimerWheel::kGrain == absl::Nanoseconds(kTick));
  static constexpr int64_t kLast = int64_t{1} << 61;

  // Anything from nothing to nine years, short ones as often as long ones; often whole ticks, and
  // often as long as a ring.
  int64_t AnyStretch() {
    const uint64_t bits = rng_.OneIn(8) ? rng_.Below(58) : rng_.Below(44);
    const auto stretch = static_cast<int64_t>(rng_.Below(uint64_t{1} << bits));
    switch (rng_.Below(4)) {
      case 0:
        return stretch / kTick * kTick;
      case 1:
        return (int64_t{1} << (8 * rng_.Below(5))) * kTick +
               static_cast<int64_t>(rng_.Below(5) * kTick / 2) - kTick - now_ % kTick;
      default:
        return stretch;
    }
  }
  void Forget(Timer timer) {
    const auto place = places_.find(timer);
    if (place == places_.end()) return;
    pending_.erase(place->second);
    places_.erase(place);
  }

  int64_t now_;
  int64_t reached_;  // ticks; what is set for earlier is due together with it
  SeededRng rng_;
  TimerWheel wheel_;
  std::multimap<int64_t, Timer> pending_;
  std::map<Timer, std::multimap<int64_t, Timer>::iterator> places_;
};

// Proves: T2
TEST(TimerWheelModelTest, RandomOperationsDoWhatASortedMapDoes) {
  for (const uint64_t seed : Seeds(60)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    ComparedWheel both(static_cast<int64_t>(rng.OneIn(2) ? 0 : rng.Below(uint64_t{1} << 58)), seed);
    const uint64_t sets = 1 + rng.Below(8);
    for (int i = 0; i < 1'500; ++i) {
      const uint64_t choice = rng.Below(sets + 3);
      if (choice < sets) {
        both.Set();
      } else if (choice == sets) {
        both.Clear();
      } else {
        both.Turn();
      }
      both.ExpectTheSame();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace holdfast
