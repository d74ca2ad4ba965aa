#include "recovery/lock_taker.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Proves: G9
TEST(LockTakerTest, ALockedFileIsRefusedWhenTheWaitIsOver) {
  SimStorage storage{SimDisk()};
  SimClock clock;
  clock.JumpWhenAsked(absl::Seconds(1));
  LockTaker first(storage, clock, absl::Seconds(10));
  ASSERT_OK_AND_ASSIGN(const auto held, first.Take("LOCK", OpenMode::kCreate));
  const absl::Duration begun = clock.Now();
  LockTaker second(storage, clock, absl::Seconds(10));
  EXPECT_FAILS(second.Take("LOCK", OpenMode::kCreate), kFailedPrecondition, kLocked);
  EXPECT_GE(clock.Now() - begun, absl::Seconds(9));
  EXPECT_LE(clock.Now() - begun, absl::Seconds(10));
}

TEST(LockTakerTest, AClockThatStandsStillDoesNotHang) {
  SimStorage storage{SimDisk()};
  SimClock clock;
  LockTaker first(storage, clock, absl::Milliseconds(20));
  ASSERT_OK_AND_ASSIGN(const auto held, first.Take("LOCK", OpenMode::kCreate));
  LockTaker second(storage, clock, absl::Milliseconds(20));
  EXPECT_FAILS(second.Take("LOCK", OpenMode::kCreate), kFailedPrecondition, kLocked);
}

TEST(LockTakerTest, ALockThatIsLetGoIsTaken) {
  SimStorage storage{SimDisk()};
  SimClock clock;
  LockTaker taker(storage, clock, absl::ZeroDuration());
  ASSERT_OK_AND_ASSIGN(auto held, taker.Take("LOCK", OpenMode::kCreate));
  EXPECT_FAILS(taker.Take("LOCK", OpenMode::kCreate), kFailedPrecondition, kLocked);
  held.reset();
  EXPECT_OK(taker.Take("LOCK", OpenMode::kCreate));
}

TEST(LockTakerTest, AMissingFileIsNotMade) {
  SimStorage storage{SimDisk()};
  SimClock clock;
  LockTaker taker(storage, clock, absl::ZeroDuration());
  EXPECT_EQ(taker.Take("LOCK", OpenMode::kReadWrite).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(storage.disk().Names().empty());
}

}  // namespace
}  // namespace holdfast
