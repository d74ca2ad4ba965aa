#include "recovery/evidence.h"

#include <gtest/gtest.h>

#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

struct Viewed {
  explicit Viewed(const SimDisk& disk) : storage(disk), view(ReadView(storage)) {
    CHECK_OK(view.status());
    CHECK(view->evidence.has_value());
  }
  const Evidence& evidence() const { return *view->evidence; }
  SimStorage storage;
  StatusOr<StoreView> view;
};

// A reader that saw the clean MARK and then what the next boot wrote must not call that damage.
TEST(EvidenceTest, ACleanMarkThatWasTakenBackIsAChange) {
  Boot closed{SimDisk()};
  closed.store().AppendSynced({1});
  closed.store().CloseClean();
  Boot boot{closed.Killed(), 2};
  const Viewed before(closed.Killed());
  EXPECT_TRUE(ChainHasChanged(*boot.storage, before.view->layout));
  const Viewed open(boot.Killed());
  boot.store().AppendSynced({1});
  EXPECT_FALSE(ChainHasChanged(*boot.storage, open.view->layout));
}

TEST(EvidenceTest, ProofComesFromGroupsBehindHolesToo) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1});
  const uint64_t hole = boot.store().AppendSynced({1});
  boot.store().Append({1});  // says that 1 and 2 are synced
  SimDisk disk = boot.Killed();
  disk.Damage(Name(1), hole, std::vector<std::byte>(kBlockBytes));
  const Viewed viewed(disk);
  EXPECT_EQ(viewed.evidence().proved(), Lsn(2));
  EXPECT_EQ(viewed.evidence().highest_lsn, Lsn(3));
}

TEST(EvidenceTest, PromisesCountForThisBootOfTheHostOnly) {
  Boot boot{SimDisk()};
  boot.store().PromiseWritten();
  boot.store().AppendSynced({1});
  boot.store().Append({1});
  boot.store().Append({1});  // promises 2
  const Viewed killed(boot.Killed());
  EXPECT_EQ(killed.evidence().proved(), Lsn(1));
  EXPECT_EQ(killed.evidence().rules.horizon, Lsn(2));
  const Viewed cut(boot.PowerCutKeepingAll());
  EXPECT_EQ(cut.evidence().rules.horizon, Lsn(1));
}

TEST(EvidenceTest, WhatAnOpenCopiedIsProved) {
  Boot first{SimDisk()};
  first.store().Append({3});
  Boot second{first.Killed(), 2};
  ASSERT_OK(second.status);
  const Viewed viewed(second.Killed());
  EXPECT_EQ(viewed.evidence().tail.copied_through, Lsn(3));
  EXPECT_EQ(viewed.evidence().proved(), Lsn(3));
}

// A segment that a cut left behind may say what it likes, but its LSNs are not given out again.
TEST(EvidenceTest, DeadSegmentsProveNothing) {
  Boot first{SimDisk()};
  first.store().AppendSynced({1});
  const uint64_t hole = first.store().Append({1});
  first.store().Rotate(*first.storage);
  first.store().Append({1});
  SimDisk before = first.PowerCutKeepingAll();
  before.Damage(Name(1), hole, std::vector<std::byte>(kBlockBytes));
  Boot second{before, 2};  // LSN 2 and what follows are cut
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(1));
  second.store().AppendSynced({1});
  const Lsn last = second.store().last();
  const Viewed viewed(second.Killed());
  EXPECT_EQ(viewed.evidence().proved(), Lsn(1));
  EXPECT_EQ(viewed.evidence().highest_lsn, last);
}

// A power cut may take the Link, which was not synced, and leave what stands behind it.
TEST(EvidenceTest, WhatStandsBehindALostLinkCounts) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1});
  boot.store().Rotate(*boot.storage);
  boot.store().Append({1});
  SimDisk disk = boot.PowerCutKeepingAll();
  disk.Damage(Name(2), kSegmentHeaderBytes, std::vector<std::byte>(kBlockBytes));
  const Viewed viewed(disk);
  EXPECT_EQ(viewed.view->layout.newest().id, SegmentId(1));
  const TracedSegment* behind = viewed.evidence().Traced(SegmentId(2));
  ASSERT_NE(behind, nullptr);
  EXPECT_EQ(behind->trace.groups.size(), 1u);
  EXPECT_EQ(viewed.evidence().highest_lsn, Lsn(2));
}

TEST(EvidenceTest, TheNewestEngineTimeIsFound) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1});
  const Viewed viewed(boot.Killed());
  EXPECT_EQ(viewed.evidence().engine_time, absl::Nanoseconds(12'345));
}

}  // namespace
}  // namespace holdfast
