#include "meta/nacos_revisions.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class NacosRevisionsTest : public testing::Test {
 protected:
  uint64_t Settle() { return revisions_.Settle(clock_.Now()).value(); }

  SimClock clock_;
  NacosRevisions revisions_{clock_};
};

TEST_F(NacosRevisionsTest, ANewOneIsAboveAllThatWereGivenOutOrSeen) {
  const NacosRevisions::Write first = revisions_.Begin();
  revisions_.Saw("k", 40);
  const NacosRevisions::Write second = revisions_.Begin();
  EXPECT_LT(first.revision(), 40u);
  EXPECT_EQ(second.revision(), 41u);
}

TEST_F(NacosRevisionsTest, WhatIsSettledHasNoWriteBelowItUnderWay) {
  EXPECT_EQ(Settle(), 1u);
  {
    const NacosRevisions::Write under_way = revisions_.Begin();
    EXPECT_FAILS(revisions_.Settle(clock_.Now()), kUnavailable, kNone);
  }
  const uint64_t settled = Settle();
  const NacosRevisions::Write after = revisions_.Begin();
  EXPECT_GT(settled, 2u);
  EXPECT_GT(after.revision(), settled);
}

TEST_F(NacosRevisionsTest, SettlingWaitsForTheEndOfAWrite) {
  std::thread settles;
  {
    const NacosRevisions::Write write = revisions_.Begin();
    settles = std::thread([this] { EXPECT_OK(revisions_.Settle(absl::InfiniteDuration())); });
  }
  settles.join();
}

TEST_F(NacosRevisionsTest, CoverReachesOverWhatWasSeenUnlessAWriteHasBegun) {
  const uint64_t settled = Settle();
  revisions_.Saw("k", 70);
  EXPECT_EQ(revisions_.Cover(settled), 71u);
  const NacosRevisions::Write write = revisions_.Begin();
  EXPECT_EQ(revisions_.Cover(settled), settled);
  EXPECT_GT(write.revision(), 71u);
}

TEST_F(NacosRevisionsTest, WhatWasSeenOfAKeyNeverGoesBack) {
  revisions_.Saw("a", 5);
  revisions_.Saw("a", 3);
  revisions_.Saw("ab", 4);
  revisions_.Saw("b", 4);
  EXPECT_EQ(revisions_.SeenOf("a"), 5u);
  EXPECT_EQ(revisions_.SeenOf("c"), 0u);
  EXPECT_EQ(revisions_.SeenUnder("a"), (std::map<std::string, uint64_t>{{"a", 5}, {"ab", 4}}));
  EXPECT_EQ(revisions_.SeenUnder("").size(), 3u);
}

TEST_F(NacosRevisionsTest, OfTooManyKeysTheNewestAreKept) {
  NacosRevisions few(clock_, 2);
  few.Saw("a", 1);
  few.Saw("b", 2);
  few.Saw("a", 3);
  few.Saw("c", 4);
  EXPECT_EQ(few.SeenUnder(""), (std::map<std::string, uint64_t>{{"a", 3}, {"c", 4}}));
}

}  // namespace
}  // namespace holdfast
