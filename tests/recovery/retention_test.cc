#include "recovery/retention.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

constexpr uint64_t kSegment = uint64_t{1} << 20;

// Segments 5, 6, 7, ... with LSNs up to 100, 200, 300, ...
RetentionFacts FactsWith(const std::vector<uint64_t>& live_records) {
  RetentionFacts facts;
  for (const uint64_t live : live_records) {
    const uint64_t index = facts.sealed.size();
    facts.sealed.push_back({.id = SegmentId(5 + index),
                            .last = Lsn(100 * (index + 1)),
                            .file_bytes = kSegment,
                            .live_records = live});
  }
  facts.appended = facts.synced = Lsn(1'000);
  facts.checkpoint = facts.older_checkpoint = Lsn(900);
  facts.disk_bytes = (live_records.size() + 5) * kSegment;
  return facts;
}

class RetentionTest : public testing::Test {
 protected:
  RetentionOptions options_{.segment_bytes = kSegment};
  Retention retention_{options_};
};

TEST_F(RetentionTest, TheBoundIsThreeTimesLiveOrEightSegmentsOverIt) {
  EXPECT_EQ(DiskBound(options_, 0), 8 * kSegment);
  EXPECT_EQ(DiskBound(options_, kSegment), 9 * kSegment);
  EXPECT_EQ(DiskBound(options_, 100 * kSegment), 300 * kSegment);
  for (const uint64_t live : {uint64_t{0}, kSegment, 5 * kSegment, 100 * kSegment}) {
    EXPECT_LT(DiskTarget(options_, live), DiskBound(options_, live));
  }
}

TEST_F(RetentionTest, DeadSegmentsGoOldestFirst) {
  const RetentionFacts facts = FactsWith({0, 0, 3, 0});
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId(7));
}

TEST_F(RetentionTest, NothingGoesBehindALiveOne) {
  const RetentionFacts facts = FactsWith({1, 0, 0});
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId());
}

// The removals and copies that made it so must be durable, not only appended.
TEST_F(RetentionTest, ASegmentGoesOnlyOnceWhatMadeItDeadIsSynced) {
  RetentionFacts facts = FactsWith({0});
  facts.synced = Lsn(950);
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId());
  // What is appended later does not count.
  facts.appended = Lsn(2'000);
  facts.synced = Lsn(999);
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId());
  facts.synced = Lsn(1'000);
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId(6));
}

TEST_F(RetentionTest, ASegmentGoesOnlyBehindTheOlderCheckpoint) {
  RetentionFacts facts = FactsWith({0, 0});
  facts.older_checkpoint = Lsn(199);
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId(6));
  facts.older_checkpoint = Lsn(99);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId());
  facts.older_checkpoint = Lsn();
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId());
}

TEST_F(RetentionTest, UnknownRecordsPinTheirSegmentAndAllLaterOnes) {
  RetentionFacts facts = FactsWith({0, 0, 0});
  facts.pinned = SegmentId(6);
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId(6));
  facts = FactsWith({2, 2, 2});
  facts.disk_bytes = 100 * kSegment;
  facts.pinned = SegmentId(5);
  retention_.Observe(facts);
  EXPECT_EQ(retention_.ToCompact(facts), std::nullopt);
}

TEST_F(RetentionTest, ACheckpointIsDueByBytes) {
  RetentionFacts facts = FactsWith({});
  facts.since_checkpoint_bytes = kSegment - 1;
  EXPECT_FALSE(retention_.WantsCheckpoint(facts));
  facts.since_checkpoint_bytes = kSegment;
  EXPECT_TRUE(retention_.WantsCheckpoint(facts));
  facts.checkpoint_bytes = 2 * kSegment;  // a large one is not repeated for every segment
  EXPECT_FALSE(retention_.WantsCheckpoint(facts));
  facts.since_checkpoint_bytes = 2 * kSegment;
  EXPECT_TRUE(retention_.WantsCheckpoint(facts));
  facts.live_bytes = 12 * kSegment;  // so does what states a large backlog
  EXPECT_FALSE(retention_.WantsCheckpoint(facts));
  facts.since_checkpoint_bytes = 3 * kSegment;
  EXPECT_TRUE(retention_.WantsCheckpoint(facts));
  facts.checkpoint = facts.appended;  // it would say nothing new
  EXPECT_FALSE(retention_.WantsCheckpoint(facts));
}

// Where nothing is appended any more, the older one is renewed until it has passed them.
TEST_F(RetentionTest, AnOlderCheckpointInTheWayIsRenewed) {
  RetentionFacts facts = FactsWith({0});
  facts.short_of_space = true;
  facts.checkpoint = facts.appended;
  facts.older_checkpoint = Lsn(50);
  retention_.Observe(facts);
  EXPECT_TRUE(retention_.WantsCheckpoint(facts));
  facts.older_checkpoint = facts.checkpoint - 1;
  EXPECT_FALSE(retention_.WantsCheckpoint(facts));
}

TEST_F(RetentionTest, ACheckpointIsDueWhenDeadSegmentsWaitForItAndRoomIsWanted) {
  RetentionFacts facts = FactsWith({0});
  facts.older_checkpoint = Lsn(50);
  retention_.Observe(facts);
  EXPECT_FALSE(retention_.WantsCheckpoint(facts));
  facts.short_of_space = true;
  EXPECT_TRUE(retention_.WantsCheckpoint(facts));
  facts.short_of_space = false;
  facts.disk_bytes = 8 * kSegment;
  EXPECT_TRUE(retention_.WantsCheckpoint(facts));
}

// What it waits for may come late by itself: where commits are batched, or only written.
TEST_F(RetentionTest, ASyncIsDueWhenADeadSegmentWaitsForItAndRoomIsWanted) {
  RetentionFacts facts = FactsWith({0});
  facts.synced = Lsn(950);
  retention_.Observe(facts);
  EXPECT_FALSE(retention_.WaitsForSync(facts));
  facts.disk_bytes = 8 * kSegment;
  EXPECT_TRUE(retention_.WaitsForSync(facts));
  facts.older_checkpoint = Lsn(50);
  EXPECT_FALSE(retention_.WaitsForSync(facts));
  facts.older_checkpoint = Lsn(900);
  facts.pinned = SegmentId(5);
  EXPECT_FALSE(retention_.WaitsForSync(facts));
  facts.pinned = SegmentId();
  facts.synced = facts.appended;
  EXPECT_FALSE(retention_.WaitsForSync(facts));
}

// Where no more file may be made, there is always something that compaction should do.
TEST_F(RetentionTest, WhoMayNotGrowIsBeyondTheTarget) {
  for (uint64_t live = 0; live < 64 * kSegment; live += kSegment / 4) {
    RetentionFacts facts = FactsWith({1});
    facts.live_bytes = live;
    facts.disk_bytes = DiskBound(options_, live) - kSegment;
    EXPECT_TRUE(retention_.MayGrow(facts));
    facts.disk_bytes += 1;
    EXPECT_FALSE(retention_.MayGrow(facts));
    EXPECT_GT(facts.disk_bytes, DiskTarget(options_, live)) << live;
  }
}

TEST_F(RetentionTest, CompactionBeginsAtTheTargetWithTheOldestLiveOne) {
  RetentionFacts facts = FactsWith({0, 4, 4});
  facts.live_bytes = kSegment;
  facts.disk_bytes = 9 * kSegment;  // one of them dead
  retention_.Observe(facts);
  EXPECT_EQ(retention_.ToCompact(facts), std::nullopt);
  facts.disk_bytes = 10 * kSegment;
  EXPECT_EQ(retention_.ToCompact(facts), SegmentId(6));
}

TEST_F(RetentionTest, OnAFullDiskCompactionBeginsEarlierButNotInVain) {
  RetentionFacts facts = FactsWith({4, 4, 4});
  facts.short_of_space = true;
  facts.live_bytes = kSegment;
  retention_.Observe(facts);
  EXPECT_EQ(retention_.ToCompact(facts), SegmentId(5));
  facts.live_bytes = 2 * kSegment;  // two turns would gain less than one segment
  EXPECT_EQ(retention_.ToCompact(facts), std::nullopt);
}

// A segment id that is gone is not remembered.
TEST_F(RetentionTest, ForgetsWhatWasRetired) {
  RetentionFacts facts = FactsWith({0, 0});
  retention_.Observe(facts);
  facts.sealed.erase(facts.sealed.begin());
  facts.sealed.front().live_records = 0;
  retention_.Observe(facts);
  EXPECT_EQ(retention_.KeepFrom(facts), SegmentId(7));
}

}  // namespace
}  // namespace holdfast
