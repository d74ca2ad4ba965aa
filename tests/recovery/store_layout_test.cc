#include "recovery/store_layout.h"

#include <gtest/gtest.h>

#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

TEST(StoreLayoutTest, NamesAreSortedByWhatTheyAre) {
  SimDisk disk = TwoSegments(true);
  for (const char* name :
       {"journal/spare-0000000000000005", "journal/quarantine-0000000000000001.seg",
        "quarantine-MARK", "journal/notes", "stray"}) {
    disk.SetContents(name, AsBytes("x"));
  }
  SimStorage storage(disk);
  ASSERT_OK_AND_ASSIGN(const StoreNames names, ListStore(storage));
  EXPECT_TRUE(names.mark && names.journal && names.store());
  EXPECT_EQ(names.segments, (std::vector<SegmentId>{SegmentId(1), SegmentId(2)}));
  EXPECT_EQ(names.spares.size(), 1u);
  EXPECT_EQ(names.quarantine.size(), 2u);
  EXPECT_EQ(names.strangers, (std::vector<std::string>{"stray", "journal/notes"}));
  EXPECT_EQ(QuarantineName(names, "MARK"), "quarantine-MARK.2");
  EXPECT_EQ(QuarantineName(names, Name(1)), "journal/quarantine-0000000000000001.seg.2");
  EXPECT_EQ(QuarantineName(names, Name(2)), "journal/quarantine-0000000000000002.seg");
}

TEST(StoreLayoutTest, TheChainEndsWithTheHighestEpochNotTheHighestId) {
  Boot first{SimDisk()};
  first.store().AppendSynced({1});
  first.store().Append({1});
  first.store().Rotate(*first.storage);
  first.store().Append({1});
  const SimDisk before = first.PowerCutKeepingAll();
  Boot second{before, 2};  // puts a new segment 2 in the place of the old one
  ASSERT_OK(second.status);
  SimDisk disk = second.Killed();
  disk.SetContents(Name(3), AsBytes(before.Contents(Name(2))));  // under a wrong name it is nothing
  SimStorage wrong(disk);
  ASSERT_OK_AND_ASSIGN(const StoreLayout bad, ReadLayout(wrong));
  EXPECT_EQ(bad.segments.back().state, SegmentState::kBad);
  ASSERT_EQ(bad.damages.size(), 1u);
  EXPECT_EQ(bad.newest().id, SegmentId(2));
}

TEST(StoreLayoutTest, ASegmentMadeAheadIsVoid) {
  Boot boot{SimDisk()};
  (void)boot.store().Prepare(*boot.storage);  // only its file matters
  SimStorage storage(boot.Killed());
  ASSERT_OK_AND_ASSIGN(const StoreLayout layout, ReadLayout(storage));
  EXPECT_TRUE(layout.damages.empty());
  ASSERT_EQ(layout.segments.size(), 2u);
  EXPECT_EQ(layout.segments[0].state, SegmentState::kChain);
  EXPECT_EQ(layout.segments[1].state, SegmentState::kVoid);
  EXPECT_EQ(layout.newest().id, SegmentId(1));
}

TEST(StoreLayoutTest, ChangesAreSeen) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1});
  ASSERT_OK_AND_ASSIGN(const StoreLayout before, ReadLayout(*boot.storage));
  boot.store().AppendSynced({1});
  ASSERT_OK_AND_ASSIGN(const StoreLayout same, ReadLayout(*boot.storage));
  EXPECT_TRUE(same.SameAs(before));
  boot.store().Rotate(*boot.storage);
  ASSERT_OK_AND_ASSIGN(const StoreLayout rotated, ReadLayout(*boot.storage));
  EXPECT_FALSE(rotated.SameAs(before));
  EXPECT_TRUE(rotated.KeepsChainOf(before));
  EXPECT_FALSE(before.KeepsChainOf(rotated));
}

}  // namespace
}  // namespace holdfast
