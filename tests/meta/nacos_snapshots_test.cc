#include "meta/nacos_snapshots.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_clock.h"

namespace holdfast {
namespace {

TEST(NacosSnapshotsTest, OneIsFoundByItsRevisionForWhatIsInIt) {
  SimClock clock;
  NacosSnapshots snapshots(clock);
  snapshots.Keep({.prefix = "a/", .revision = 3});
  snapshots.Keep({.prefix = "b/", .revision = 5});
  ASSERT_NE(snapshots.Find("a/", 3), nullptr);
  EXPECT_EQ(snapshots.Find("a/", 3)->prefix, "a/");
  EXPECT_NE(snapshots.Find("a/b", 3), nullptr);
  EXPECT_EQ(snapshots.Find("a", 3), nullptr);
  EXPECT_EQ(snapshots.Find("a/", 5), nullptr);
  EXPECT_EQ(snapshots.Find("a/", 4), nullptr);
}

TEST(NacosSnapshotsTest, TheOldestAndTheOldAreForgotten) {
  SimClock clock;
  NacosSnapshots snapshots(clock, {.count_max = 2, .age_max = absl::Seconds(10)});
  for (const uint64_t revision : {1, 2, 3}) snapshots.Keep({.revision = revision});
  EXPECT_EQ(snapshots.Find("", 1), nullptr);
  EXPECT_NE(snapshots.Find("", 2), nullptr);
  clock.Advance(absl::Seconds(11));
  EXPECT_EQ(snapshots.Find("", 2), nullptr);
  EXPECT_EQ(snapshots.Find("", 3), nullptr);
}

}  // namespace
}  // namespace holdfast
