// Opening with checkpoints: used, passed over, or ahead of what the journal holds.
#include <gtest/gtest.h>

#include "journal/base/checksum.h"
#include "recovery/evidence.h"
#include "recovery/repair.h"
#include "recovery/survey.h"
#include "tests/recovery/captured.h"
#include "tests/support/recording_log.h"

namespace holdfast {
namespace {

std::string NameOf(const KeptCheckpoint& checkpoint) { return CheckpointFileName(checkpoint.from); }

TEST(OpenerCheckpointTest, OnlyWhatIsBehindItIsReplayed) {
  TwoCheckpoints store;
  Boot boot{store.disk, 2};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.machine.lsns(), UpTo(9));
  const RecoveryReport& report = boot.store().report();
  EXPECT_EQ(report.checkpoint_lsn, 6u);
  EXPECT_EQ(report.checkpoint_entries, 6u);
  EXPECT_EQ(report.checkpoint_bytes, store.newer.bytes);
  EXPECT_EQ(report.bad_checkpoints, 0u);
  EXPECT_EQ(report.records, 3u);
  EXPECT_EQ(report.last_lsn, 9u);
  EXPECT_EQ(CheckpointNames(boot.storage->disk()).size(), 2u);
}

TEST(OpenerCheckpointTest, AReaderUsesThemAndChangesNothing) {
  TwoCheckpoints store;
  store.disk.SetContents(CheckpointTempName(Lsn(9)), AsBytes("cut short"));
  const uint64_t before = store.disk.Fingerprint();
  SimStorage storage(store.disk);
  RecordingMachine machine;
  ASSERT_OK_AND_ASSIGN(ReadStore read, OpenReadOnly(storage, machine.machines()));
  EXPECT_EQ(read.report.checkpoint_lsn, 6u);
  EXPECT_EQ(machine.lsns(), UpTo(9));
  ASSERT_OK_AND_ASSIGN(read,
                       OpenReadOnly(storage, machine.machines(), {.ignore_checkpoints = true}));
  EXPECT_EQ(read.report.checkpoint_lsn, 0u);
  EXPECT_EQ(machine.lsns(), UpTo(9));
  EXPECT_TRUE(machine.loaded().empty());
  EXPECT_EQ(storage.disk().Fingerprint(), before);
}

TEST(OpenerCheckpointTest, WhatWasCutShortIsRemoved) {
  TwoCheckpoints store;
  store.disk.SetContents(CheckpointTempName(Lsn(9)), AsBytes("cut short"));
  Boot boot{store.disk, 2};
  ASSERT_OK(boot.status);
  EXPECT_FALSE(boot.storage->disk().Exists(CheckpointTempName(Lsn(9))));
}

// Proves: G4 G6
TEST(OpenerCheckpointTest, AnyFlippedByteFallsBackToTheOlderOne) {
  const TwoCheckpoints store;
  for (uint64_t offset = 0; offset < store.newer.bytes; offset += offset % 512 == 100 ? 413 : 1) {
    SCOPED_TRACE(offset);
    SimDisk disk = store.disk;
    Flip(disk, NameOf(store.newer), offset);
    Boot boot{disk, 2};
    ASSERT_OK(boot.status);
    ASSERT_EQ(boot.machine.lsns(), UpTo(9));
    ASSERT_EQ(boot.store().report().checkpoint_lsn, 4u);
    ASSERT_EQ(boot.store().report().bad_checkpoints, 1u);
    ASSERT_EQ(
        CheckpointNames(boot.storage->disk()),
        (std::vector<std::string>{"0000000000000004.ckp", "quarantine-0000000000000006.ckp"}));
  }
}

// Proves: G4 G6
TEST(OpenerCheckpointTest, AnyOtherLengthFallsBackToTheOlderOne) {
  const TwoCheckpoints store;
  for (uint64_t bytes = 0; bytes < store.newer.bytes + 5000; bytes += 97) {
    if (bytes == store.newer.bytes) continue;
    SCOPED_TRACE(bytes);
    SimDisk disk = store.disk;
    disk.SetSize(NameOf(store.newer), bytes);
    Boot boot{disk, 2};
    ASSERT_OK(boot.status);
    ASSERT_EQ(boot.machine.lsns(), UpTo(9));
    ASSERT_EQ(boot.store().report().checkpoint_lsn, 4u);
  }
}

TEST(OpenerCheckpointTest, BothBadIsAFullScan) {
  TwoCheckpoints store;
  Flip(store.disk, NameOf(store.newer), kCheckpointHeaderBytes + 40);
  Flip(store.disk, NameOf(store.older), 3);
  RecordingLog log;
  SimStorage storage(store.disk);
  RecordingMachine machine;
  ASSERT_OK_AND_ASSIGN(const ReadStore read,
                       OpenReadOnly(storage, machine.machines(), {.log = &log}));
  EXPECT_EQ(read.report.bad_checkpoints, 2u);
  EXPECT_EQ(read.report.checkpoint_lsn, 0u);
  EXPECT_EQ(read.report.records, 9u);
  EXPECT_EQ(machine.lsns(), UpTo(9));
  EXPECT_TRUE(log.Count(NameOf(store.newer)) > 0);
  EXPECT_TRUE(log.Count(NameOf(store.older)) > 0);
}

TEST(OpenerCheckpointTest, OneOfAnotherStoreIsPassedOver) {
  TwoCheckpoints store;
  Boot other{SimDisk(), 77};
  other.store().AppendSynced({8});
  ASSERT_OK_AND_ASSIGN(const KeptCheckpoint foreign, TakeCheckpoint(other));
  store.disk.SetContents(NameOf(foreign), AsBytes(other.storage->disk().Contents(NameOf(foreign))));
  SimStorage storage(store.disk);
  RecordingMachine machine;
  RecordingLog log;
  ASSERT_OK_AND_ASSIGN(const ReadStore read,
                       OpenReadOnly(storage, machine.machines(), {.log = &log}));
  EXPECT_EQ(read.report.checkpoint_lsn, 6u);
  EXPECT_EQ(read.report.bad_checkpoints, 1u);
  EXPECT_TRUE(log.Count("another store") > 0);
  EXPECT_EQ(machine.lsns(), UpTo(9));
}

TEST(OpenerCheckpointTest, OneOfANewerVersionIsPassedOver) {
  TwoCheckpoints store;
  SimStorage storage(store.disk);
  ASSERT_OK_AND_ASSIGN(const StoreView view, ReadView(storage));
  std::string header = store.disk.Contents(NameOf(store.newer)).substr(0, kBlockBytes);
  header[8] = 2;
  const uint64_t check = Checksum(
      AsBytes(header).first(kBlockBytes - 8),
      SeedAt({.salt = view.layout.salt, .segment = 0, .stamp = store.newer.from.value()}, 0));
  std::memcpy(header.data() + kBlockBytes - 8, &check, sizeof check);
  store.disk.Damage(NameOf(store.newer), 0, AsBytes(header));
  Boot boot{store.disk, 2};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.machine.lsns(), UpTo(9));
  EXPECT_EQ(boot.store().report().checkpoint_lsn, 4u);
}

TEST(OpenerCheckpointTest, ItsNameIsPartOfIt) {
  TwoCheckpoints store;
  store.disk.SetContents(CheckpointFileName(Lsn(8)),
                         AsBytes(store.disk.Contents(NameOf(store.newer))));
  Boot boot{store.disk, 2};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.store().report().checkpoint_lsn, 6u);
  EXPECT_EQ(boot.store().report().bad_checkpoints, 1u);
  EXPECT_EQ(boot.machine.lsns(), UpTo(9));
}

// Proves: G5
TEST(OpenerCheckpointTest, OneThatIsAheadOfTheJournalIsDamage) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({2});
  const uint64_t end = boot.store().AppendSynced({3});
  ASSERT_OK_AND_ASSIGN(const KeptCheckpoint checkpoint, TakeCheckpoint(boot));
  SimDisk disk = boot.Killed();
  // The newest group is gone, and nothing else tells.
  const std::string zeros(kBlockBytes, '\0');
  disk.Damage(Name(1), end, AsBytes(zeros));
  const uint64_t before = disk.Fingerprint();
  Boot again{disk, 2};
  EXPECT_FAILS(again.status, kDataLoss, kDamage);
  EXPECT_NE(again.status.message().find("checkpoint/0000000000000005.ckp"), std::string::npos)
      << again.status;
  EXPECT_EQ(again.storage->disk().Fingerprint(), before);
  EXPECT_EQ(checkpoint.through, Lsn(5));
}

TEST(OpenerCheckpointTest, CheckpointsWithoutAJournalAreNoNewStore) {
  TwoCheckpoints store;
  store.disk.Erase("MARK");
  store.disk.Erase(Name(1));
  store.disk.Erase(Name(2));
  const uint64_t before = store.disk.Fingerprint();
  Boot boot{store.disk, 2};
  EXPECT_FAILS(boot.status, kDataLoss, kDamage);
  EXPECT_EQ(boot.storage->disk().Fingerprint(), before);
}

// Proves: G7
TEST(OpenerCheckpointTest, AReadErrorRefusesAndChangesNothing) {
  const TwoCheckpoints store;
  size_t refused = 0;
  for (uint64_t at = 1;; ++at) {
    SimStorage storage(store.disk);
    storage.SetFault(SimFault{.at = at, .only = SimCall::kReadAt});
    bool begun = false;  // to write the new truth
    storage.SetObserver([&](const SimOperation& operation, const SimDisk&) {
      begun = begun || operation.call == SimCall::kWriteAt;
    });
    RecordingMachine machine;
    const StatusOr<StoreBuilder> opened = StoreBuilder::Open(storage, machine, 2);
    if (!storage.fault_was_met() || begun) break;
    ++refused;
    ASSERT_EQ(storage.disk().Fingerprint(), store.disk.Fingerprint()) << at;
    ASSERT_EQ(opened.status().code(), StatusCode::kUnavailable);
  }
  EXPECT_GT(refused, 4u);
}

// LSNs go on above everything that a checkpoint may know.
TEST(OpenerCheckpointTest, TheNextLsnIsAboveIt) {
  const TwoCheckpoints store;
  Boot boot{store.disk, 2};
  ASSERT_OK(boot.status);
  EXPECT_GT(boot.store().start().next, store.newer.through);
}

// The records that the cut copies get new places, so what knows the old ones must be gone by then.
TEST(OpenerCheckpointTest, ABadOneDoesNotComeBackWithOldPlaces) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({2});
  boot.store().Append({2});
  boot.store().Sync();
  ASSERT_OK_AND_ASSIGN(const KeptCheckpoint checkpoint, TakeCheckpoint(boot));
  SimDisk disk = boot.Killed();
  Flip(disk, NameOf(checkpoint), checkpoint.bytes - 100);  // its footer: nothing proves LSN 4 now
  Boot second{disk, 2};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(4));
  EXPECT_EQ(CheckpointNames(second.storage->disk()),
            std::vector<std::string>{"quarantine-0000000000000004.ckp"});
  Boot third{second.PowerCut(), 3};
  ASSERT_OK(third.status);
  EXPECT_EQ(third.machine.places(), second.machine.places());
}

TEST(OpenerCheckpointTest, ACleanStopBehindARotationIsClean) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({3});
  ASSERT_OK(TakeCheckpoint(boot));
  boot.store().Rotate(*boot.storage);
  boot.store().WriteMark(/*clean=*/true);
  Boot again{boot.Killed(), 2};
  ASSERT_OK(again.status);
  EXPECT_EQ(again.store().report().checkpoint_lsn, 3u);
  EXPECT_EQ(again.machine.lsns(), UpTo(3));
}

TEST(OpenerCheckpointTest, VerifyReportsABadOneAsDamageThatOpens) {
  TwoCheckpoints store;
  Flip(store.disk, NameOf(store.newer), kCheckpointHeaderBytes + 40);
  SimStorage storage(store.disk);
  struct Visitor final : SurveyVisitor {
    void OnCheckpoint(const CheckpointSurvey& checkpoint) override { seen.push_back(checkpoint); }
    void OnDamage(const Damage& damage) override { damages.push_back(damage); }
    std::vector<CheckpointSurvey> seen;
    std::vector<Damage> damages;
  } visitor;
  ASSERT_OK_AND_ASSIGN(const SurveyReport report, Survey(storage, visitor, {}));
  EXPECT_EQ(report.verdict, SurveyVerdict::kDamage);
  EXPECT_OK(report.open_status);
  ASSERT_EQ(visitor.seen.size(), 2u);
  EXPECT_EQ(visitor.seen[0].fault, "");
  EXPECT_EQ(visitor.seen[0].through, Lsn(4));
  EXPECT_NE(visitor.seen[1].fault, "");
  ASSERT_EQ(visitor.damages.size(), 1u);
  EXPECT_EQ(visitor.damages[0].file, NameOf(store.newer));
  EXPECT_FALSE(visitor.damages[0].refuses_open);
}

TEST(OpenerCheckpointTest, RepairSetsABadOneAside) {
  TwoCheckpoints store;
  Flip(store.disk, NameOf(store.newer), kCheckpointHeaderBytes + 40);
  SimStorage storage(store.disk);
  SimClock clock;
  clock.JumpWhenAsked(absl::Seconds(1));
  SeededRng rng(3);
  ASSERT_OK_AND_ASSIGN(const RepairPlan plan, ApplyRepair(storage, clock, rng, {}));
  EXPECT_EQ(plan.steps.size(), 1u);
  EXPECT_TRUE(plan.lost.empty());
  EXPECT_TRUE(storage.disk().Exists("checkpoint/quarantine-0000000000000006.ckp"));
  Boot boot{storage.disk(), 4};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.store().report().checkpoint_lsn, 4u);
  EXPECT_EQ(boot.machine.lsns(), UpTo(9));
}

// A repaired journal has its records at other places.
TEST(OpenerCheckpointTest, ARepairedStoreUsesNoOldCheckpoint) {
  TwoCheckpoints store;
  Flip(store.disk, Name(1), kFirstGroupOffset + 80);
  SimStorage storage(store.disk);
  SimClock clock;
  clock.JumpWhenAsked(absl::Seconds(1));
  SeededRng rng(3);
  ASSERT_OK(ApplyRepair(storage, clock, rng, {}));
  EXPECT_TRUE(storage.disk().Exists("checkpoint/quarantine-0000000000000004.ckp"));
  EXPECT_TRUE(storage.disk().Exists("checkpoint/quarantine-0000000000000006.ckp"));
  Boot boot{storage.disk(), 4};
  ASSERT_OK(boot.status);
  EXPECT_EQ(boot.store().report().checkpoint_lsn, 0u);
  EXPECT_TRUE(boot.machine.loaded().empty());
}

}  // namespace
}  // namespace holdfast
