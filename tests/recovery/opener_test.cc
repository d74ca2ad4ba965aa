// Opening for writing: what is taken, what is cut and what is stated again.
#include "recovery/opener.h"

#include <gtest/gtest.h>

#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

TEST(OpenerTest, ANewStoreIsEmptyAndGivesOutLsnOne) {
  Boot boot{SimDisk()};
  ASSERT_OK(boot.status);
  EXPECT_TRUE(boot.store().report().created);
  EXPECT_EQ(boot.store().start().next, Lsn(1));
  EXPECT_EQ(boot.store().start().last, Lsn());
  EXPECT_EQ(boot.store().start().identity.epoch, Epoch(1));
  EXPECT_EQ(boot.store().segment(), SegmentId(1));
  EXPECT_TRUE(boot.machine.places().empty());
}

// Proves: G2
TEST(OpenerTest, ACleanStoreComesBackWholeAndGoesOnWithTheNextLsn) {
  Boot boot{TwoSegments(/*clean=*/true)};
  ASSERT_OK(boot.status);
  EXPECT_TRUE(boot.store().report().clean);
  EXPECT_FALSE(boot.store().report().unproven_tail);
  EXPECT_EQ(boot.store().report().torn_bytes, 0u);
  EXPECT_EQ(boot.store().report().records, 12u);
  EXPECT_EQ(boot.store().report().copied_records, 0u);
  EXPECT_EQ(boot.machine.lsns(), UpTo(12));
  EXPECT_EQ(boot.store().start().next, Lsn(13));
  EXPECT_EQ(boot.store().segment(), SegmentId(3));
}

// Proves: A1
TEST(OpenerTest, EveryOpenHasAHigherEpoch) {
  SimDisk disk = TwoSegments(/*clean=*/true);
  for (uint64_t epoch = 2; epoch < 6; ++epoch) {
    Boot boot{disk, /*seed=*/epoch};
    ASSERT_OK(boot.status);
    EXPECT_EQ(boot.store().start().identity.epoch, Epoch(epoch));
    disk = boot.Killed();
  }
}

// Proves: G1 G2
TEST(OpenerTest, WhatWasSyncedComesBackAfterAPowerCut) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2});
  first.store().AppendSynced({1});
  first.store().Append({5});
  Boot second{first.PowerCut()};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(3));
  EXPECT_FALSE(second.store().report().clean);
}

TEST(OpenerTest, AfterAnUncleanStopLsnsJump) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2});
  Boot second{first.Killed()};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.store().start().next, Lsn(2 * kLsnJump));
  second.store().AppendSynced({1});
  Boot third{second.Killed()};
  ASSERT_OK(third.status);
  EXPECT_EQ(third.machine.lsns(), (std::vector<uint64_t>{1, 2, 2 * kLsnJump}));
  EXPECT_EQ(third.store().start().next, Lsn(4 * kLsnJump));
}

// An LSN may have been given out and lost: it is not given out again by a boot that follows a clean
// stop in which nothing was appended.
TEST(OpenerTest, ACleanStopDoesNotUndoTheJump) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2});
  Boot second{first.Killed()};
  second.store().CloseClean();
  Boot third{second.Killed()};
  ASSERT_OK(third.status);
  EXPECT_TRUE(third.store().report().clean);
  EXPECT_EQ(third.store().start().next, Lsn(2 * kLsnJump));
}

// Proves: G1
TEST(OpenerTest, TheWindowInDoubtIsStatedAgainInTheNewSegment) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2, 1});
  first.store().Append({1, 2});
  first.store().Append({4});
  Boot second{first.Killed()};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(10));
  EXPECT_EQ(second.store().report().copied_records, 7u);
  for (const auto& [lsn, ref] : second.machine.places()) EXPECT_EQ(ref.segment, lsn <= 3 ? 1 : 2);
  // All of it is proved now: a power cut takes nothing away.
  Boot third{second.PowerCut()};
  ASSERT_OK(third.status);
  EXPECT_EQ(third.machine.lsns(), UpTo(10));
  EXPECT_EQ(third.store().report().copied_records, 0u);
  EXPECT_EQ(third.machine.places(), second.machine.places());
}

TEST(OpenerTest, TheWindowInDoubtMayBeginInsideAChainOfSegments) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2});
  first.store().Append({1});  // says that 1 and 2 are synced
  first.store().Rotate(*first.storage);
  first.store().Append({2});
  Boot second{first.Killed()};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(5));
  EXPECT_EQ(second.store().report().copied_records, 3u);
  EXPECT_EQ(second.store().segment(), SegmentId(2));  // in the place of the one that was in doubt
  EXPECT_EQ(second.machine.places().at(2).segment, 1u);
  EXPECT_EQ(second.machine.places().at(3).segment, 2u);
}

TEST(OpenerTest, ABatchThatIsTornIsCutAndTheWholeOnesBeforeItAreKept) {
  Boot first{SimDisk()};
  first.store().AppendSynced({1});
  const uint64_t offset = first.store().Append({1, 1, 1});
  SimDisk disk = first.Killed();
  const std::string name = SegmentFileName(SegmentId(1));
  std::string bytes = disk.Contents(name).substr(offset, 4096);
  const size_t third = bytes.rfind(
      "t\x01"
      "c");  // the fields of the last record
  ASSERT_NE(third, std::string::npos);
  disk.Damage(name, offset + third, AsBytes("x"));
  Boot second{disk};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(3));
  EXPECT_GT(second.store().report().torn_bytes, 0u);
  EXPECT_TRUE(second.store().report().unproven_tail);
}

TEST(OpenerTest, WhatStandsBehindAHoleIsCountedAndNotUsed) {
  Boot first{SimDisk()};
  first.store().AppendSynced({1});
  const uint64_t hole = first.store().Append({1});
  first.store().Append({1});
  first.store().Append({1, 1});
  SimDisk disk = first.Killed();
  disk.Damage(SegmentFileName(SegmentId(1)), hole, std::vector<std::byte>(kBlockBytes));
  Boot second{disk};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(1));
  EXPECT_EQ(second.store().report().ignored_groups, 2u);
  // Nor by any later boot.
  second.store().AppendSynced({1});
  Boot third{second.Killed()};
  ASSERT_OK(third.status);
  EXPECT_EQ(third.machine.lsns(), (std::vector<uint64_t>{1, second.store().last().value()}));
  EXPECT_EQ(third.store().report().ignored_groups, 0u);
}

TEST(OpenerTest, AGroupHeaderIsRedundant) {
  SimDisk disk = TwoSegments(/*clean=*/true);
  disk.Damage(SegmentFileName(SegmentId(1)), kFirstGroupOffset + 10, AsBytes("x"));
  disk.Damage(SegmentFileName(SegmentId(2)), kFirstGroupOffset, AsBytes("stamp"));
  Boot boot{disk};
  ASSERT_OK(boot.status);
  EXPECT_TRUE(boot.store().report().clean);
  EXPECT_EQ(boot.machine.lsns(), UpTo(12));
}

TEST(OpenerTest, ASegmentHeaderIsRedundant) {
  SimDisk disk = TwoSegments(/*clean=*/false);
  for (const uint64_t id : {1, 2}) disk.Damage(SegmentFileName(SegmentId(id)), 40, AsBytes("x"));
  Boot boot{disk};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.machine.lsns(), UpTo(12));
}

// At level written, what a killed process was promised is there as long as the host runs.
// Proves: G1
TEST(OpenerTest, WhatWasPromisedIsDamagedIfItIsGoneAfterAKill) {
  Boot first{SimDisk()};
  first.store().PromiseWritten();
  first.store().AppendSynced({1});
  const uint64_t promised = first.store().Append({1});
  first.store().Append({1});
  ASSERT_OK(first.store().start().active.file->SyncData());  // so that a power cut keeps it too
  SimDisk disk = first.storage->disk();
  disk.Damage(SegmentFileName(SegmentId(1)), promised + 80, AsBytes("x"));
  {
    Boot second{disk.Kill(1, false)};
    EXPECT_FAILS(second.status, kDataLoss, kDamage);
    EXPECT_NE(Message(second.status).find("LSN 2"), std::string::npos) << second.status.ToString();
  }
  // After a power cut nothing was promised: it is a torn tail.
  Boot third{disk.PowerCut(std::vector<bool>(disk.Loose().size(), false))};
  ASSERT_OK(third.status);
  EXPECT_EQ(third.machine.lsns(), UpTo(1));
}

// Proves: G7
TEST(OpenerTest, ACrashLoopDoesNotEatTheDisk) {
  SimDisk disk = TwoSegments(/*clean=*/false);
  uint64_t bytes_max = 0;
  for (uint64_t round = 1; round <= 20; ++round) {
    Boot boot{disk, round};
    ASSERT_OK(boot.status);
    EXPECT_EQ(boot.machine.lsns(), UpTo(12));
    disk = boot.Killed();
    uint64_t bytes = 0;
    for (const std::string& name : disk.Names()) bytes += disk.Contents(name).size();
    if (round == 2) bytes_max = bytes;  // by then the window in doubt has its place
    if (round > 2) {
      EXPECT_LE(bytes, bytes_max);
    }
  }
}

TEST(OpenerTest, FilesOutsideTheChainAreFreed) {
  Boot first{SimDisk()};
  first.store().AppendSynced({1});
  first.store().Rotate(*first.storage);
  (void)first.store().Prepare(*first.storage);  // only its file matters
  Boot second{first.Killed()};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.storage->disk().Names(),
            (std::vector<std::string>{"LOCK", "MARK", SegmentFileName(SegmentId(1)),
                                      SegmentFileName(SegmentId(2))}));
}

TEST(OpenerTest, ANewSegmentIsNoSmallerThanTheOneBeforeIt) {
  RecordingMachine first_machine, second_machine;
  SimStorage first{SimDisk()};
  StatusOr<StoreBuilder> large = StoreBuilder::Open(first, first_machine, 1, 4 * kSegmentBytesMin);
  ASSERT_OK(large);
  large->AppendSynced({1});
  SimStorage second{first.disk().Kill(1, false)};
  StatusOr<StoreBuilder> small = StoreBuilder::Open(second, second_machine, 2, kSegmentBytesMin);
  ASSERT_OK(small);
  EXPECT_EQ(small->start().active.header.segment_bytes, 4 * kSegmentBytesMin);
}

TEST(OpenReadOnlyTest, AnEmptyDirectoryIsNoStore) {
  SimStorage storage{SimDisk()};
  RecordingMachine machine;
  EXPECT_EQ(OpenReadOnly(storage, machine.machines()).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(storage.disk().Names().empty());
}

TEST(OpenReadOnlyTest, ReadsBesideALiveWriterAndChangesNothing) {
  Boot writer{SimDisk()};
  writer.store().AppendSynced({1, 2});
  writer.store().Append({1});
  writer.store().Rotate(*writer.storage);
  writer.store().Append({2});
  const uint64_t before = writer.storage->disk().Fingerprint();
  RecordingMachine machine;
  ASSERT_OK_AND_ASSIGN(const ReadStore read, OpenReadOnly(*writer.storage, machine.machines()));
  EXPECT_EQ(machine.lsns(), UpTo(6));
  EXPECT_FALSE(read.report.clean);
  EXPECT_EQ(read.newest, SegmentId(2));
  EXPECT_EQ(writer.storage->disk().Fingerprint(), before);
}

TEST(OpenReadOnlyTest, AStoreThatWasOnlyBegunIsEmpty) {
  SimStorage storage{SimDisk()};
  RecordingMachine machine;
  storage.SetFault(SimFault{.at = 1, .only = SimCall::kRename});
  EXPECT_FALSE(StoreBuilder::Open(storage, machine).ok());
  storage.SetFault(std::nullopt);
  ASSERT_OK_AND_ASSIGN(const ReadStore read, OpenReadOnly(storage, machine.machines()));
  EXPECT_EQ(read.report.records, 0u);
}

}  // namespace
}  // namespace holdfast
