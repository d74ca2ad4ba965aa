#include "recovery/checkpoint.h"

#include <gtest/gtest.h>

#include "tests/recovery/captured.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

TEST(CheckpointTest, ItHasTheStateAndItsTwoLsns) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({2, 1});
  ASSERT_OK_AND_ASSIGN(const KeptCheckpoint kept, TakeCheckpoint(boot));
  EXPECT_EQ(kept.from, Lsn(3));
  EXPECT_EQ(kept.through, Lsn(3));
  Boot again{boot.PowerCut(), 2};
  ASSERT_OK(again.status);
  EXPECT_EQ(again.store().report().checkpoint_lsn, 3u);
  EXPECT_EQ(again.machine.lsns(), UpTo(3));
  EXPECT_EQ(again.machine.loaded().size(), 3u);
}

TEST(CheckpointTest, AppendsGoOnMeanwhile) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({2});
  BootCapture capture(boot);
  ASSERT_OK(capture.Begin());
  boot.store().AppendSynced({2});
  capture.Look();
  ASSERT_OK_AND_ASSIGN(const KeptCheckpoint kept, capture.Finish());
  EXPECT_EQ(kept.from, Lsn(2));
  EXPECT_EQ(kept.through, Lsn(4));
  Boot again{boot.PowerCut(), 2};
  ASSERT_OK(again.status);
  EXPECT_EQ(again.store().report().records, 2u);  // and two of them were in the file already
  EXPECT_EQ(again.machine.loaded().size(), 4u);
  EXPECT_EQ(again.machine.lsns(), UpTo(4));
}

// Proves: G1
TEST(CheckpointTest, ItHasNoNameBeforeSReachesIt) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({2});
  BootCapture capture(boot);
  ASSERT_OK(capture.Begin());
  boot.store().Append({1});
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK_AND_ASSIGN(const bool more, capture.Step());
    ASSERT_TRUE(more);
    ASSERT_TRUE(CheckpointNames(boot.storage->disk()) ==
                std::vector<std::string>{"tmp-0000000000000002"});
  }
  boot.store().Sync();
  ASSERT_OK_AND_ASSIGN(const KeptCheckpoint kept, capture.Finish());
  EXPECT_EQ(kept.through, Lsn(3));
  EXPECT_TRUE(boot.storage->disk().Exists(CheckpointFileName(Lsn(2))));
}

TEST(CheckpointTest, APoisonedJournalLeavesTheFileAsItIs) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({2});
  BootCapture capture(boot);
  ASSERT_OK(capture.Begin());
  boot.store().Append({1});
  capture.Poison();
  EXPECT_FAILS(capture.Finish(), kUnavailable, kPoisoned);
  const uint64_t changes = boot.storage->changes();
  capture.Drop();
  EXPECT_EQ(boot.storage->changes(), changes);
}

TEST(CheckpointTest, AnEmptyStoreHasNone) {
  Boot boot{SimDisk()};
  BootCapture capture(boot);
  EXPECT_FAILS(capture.Begin(), kFailedPrecondition, kNotReady);
}

TEST(CheckpointTest, ItStopsWhenItIsToldTo) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({2});
  RecordingMachine machine;
  ReadAll(*boot.storage, machine);
  Mutex sequencer;
  const CaptureParts parts{.storage = *boot.storage,
                           .sequencer = sequencer,
                           .machines = machine.machines(),
                           .appended = [] { return Lsn(2); },
                           .wait_synced = [](Lsn) { return absl::OkStatus(); }};
  const CheckpointIdentity identity{.epoch = Epoch(1)};
  EXPECT_FAILS(CaptureCheckpoint(parts, identity, [](uint64_t) { return false; }),
               kFailedPrecondition, kClosed);
  EXPECT_TRUE(CheckpointNames(boot.storage->disk()).empty());
  EXPECT_OK(CaptureCheckpoint(parts, identity, [](uint64_t) { return true; }));
}

// Every disk that a crash may leave during a capture that appends go beside, and its naming.
// Proves: G1 G7
TEST(CheckpointTest, ACrashAnywhereLosesNothing) {
  size_t states = 0, with_newer = 0;
  const std::vector<uint64_t> seeds = Seeds(3);
  for (const uint64_t seed : seeds) {
    Boot boot{SimDisk(), seed};
    boot.store().AppendSynced({1, 2});
    ASSERT_OK(TakeCheckpoint(boot));
    boot.store().AppendSynced({2});
    ASSERT_OK(TakeCheckpoint(boot));
    if (seed % 2 == 0) boot.store().Rotate(*boot.storage);
    boot.store().AppendSynced({1});

    struct Moment {
      SimDisk disk;
      uint64_t synced;
    };
    std::vector<Moment> moments;
    boot.storage->SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
      if (Changes(operation.call)) moments.push_back({disk, boot.store().synced().value()});
    });
    BootCapture capture(boot);
    ASSERT_OK(capture.Begin());
    boot.store().Append({2});
    capture.Look();
    ASSERT_OK(capture.Step());
    boot.store().AppendSynced({1});
    ASSERT_OK(capture.Finish());
    boot.store().Append({1});
    boot.storage->SetObserver(nullptr);
    moments.push_back({boot.storage->disk(), boot.store().synced().value()});

    for (const Moment& moment : moments) {
      for (const auto& kept : CutChoices(moment.disk.Loose().size(), 40, seed)) {
        ++states;
        const SimDisk disk = moment.disk.PowerCut(kept);
        SimStorage storage(disk);
        RecordingMachine scanned;
        ReadAll(storage, scanned);
        Boot again{disk, seed + 100};
        ASSERT_OK(again.status);
        ASSERT_GE(again.machine.places().size(), moment.synced);
        ASSERT_EQ(again.machine.lsns(), scanned.lsns());
        const RecoveryReport& report = again.store().report();
        ASSERT_EQ(report.bad_checkpoints, 0u);
        ASSERT_GE(report.checkpoint_lsn, 5u);
        with_newer += report.checkpoint_lsn > 5;
        // And once more, from what that open left.
        Boot third{again.PowerCut(), seed + 200};
        ASSERT_OK(third.status);
        ASSERT_EQ(third.machine.places(), again.machine.places());
      }
    }
  }
  EXPECT_GT(states, seeds.size() < 3 ? 60u : 300u);
  EXPECT_GT(with_newer, 5u);
}

// Proves: G7
TEST(CheckpointTest, EveryFailingOperationIsAnErrorAndHurtsNothing) {
  for (const bool full : {false, true}) {
    for (uint64_t at = 1;; ++at) {
      Boot boot{SimDisk()};
      boot.store().AppendSynced({2});
      ASSERT_OK(TakeCheckpoint(boot));
      boot.store().AppendSynced({2});
      SimFault fault{.at = boot.storage->operations() + at};
      if (full) fault.status = Exhausted(Detail::kDiskFull, "simulated: ENOSPC");
      BootCapture capture(boot);
      fault.at = boot.storage->operations() + at;
      boot.storage->SetFault(fault);
      Status status = capture.Begin();
      if (status.ok()) status = capture.Finish().status();
      capture.Drop();
      const bool met = boot.storage->fault_was_met();
      boot.storage->SetFault(std::nullopt);
      if (!met) {
        ASSERT_OK(status);
        ASSERT_GT(at, 8u);
        break;
      }
      SCOPED_TRACE(testing::Message() << "operation " << at << ": " << status);
      const SimDisk disk = boot.storage->disk();
      if (!status.ok()) {
        ASSERT_EQ(status.code(), full ? StatusCode::kResourceExhausted : StatusCode::kUnavailable);
      }
      Boot again{disk.PowerCut(std::vector<bool>(disk.Loose().size(), true)), 2};
      ASSERT_OK(again.status);
      ASSERT_EQ(again.machine.lsns(), UpTo(4));
      ASSERT_EQ(again.store().report().bad_checkpoints, 0u);
      // Once the trouble is over it works.
      ASSERT_OK(TakeCheckpoint(boot));
    }
  }
}

}  // namespace
}  // namespace holdfast
