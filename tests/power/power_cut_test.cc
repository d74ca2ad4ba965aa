// Power cuts at every operation of a workload: open, calls over several segments, a clean close,
// reopen.
#include <gtest/gtest.h>

#include "tests/power/cut_everywhere.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

void CutAndCheck(const CrashRunOptions& options, size_t choices_max, Tally& tally) {
  CrashRun run(options);
  ASSERT_TRUE(run.Run()) << "seed " << options.seed;
  EXPECT_GE(run.segments_max(), 2u);
  CutEverywhere(run, choices_max, tally, [&](const CrashMoment& moment, const SimDisk& after) {
    RecoveryCheckOptions check{.seed = options.seed + tally.states};
    check.cut_again = tally.states % 8 == 0;
    check.go_on = tally.states % 16 == 0;
    return CheckRecovery(run.witness(), moment.expect, RequiredAfterPowerCut(run, moment.expect),
                         after, check)
        .complaint;
  });
}

void RunSeeds(CrashRunOptions options, uint64_t seeds, size_t choices_max) {
  Tally tally;
  for (const uint64_t seed : Seeds(seeds)) {
    options.seed = seed;
    CutAndCheck(options, choices_max, tally);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(tally.seasoned, 400u);
  testing::Test::RecordProperty("states", static_cast<int>(tally.states));
  testing::Test::RecordProperty("seasoned", static_cast<int>(tally.seasoned));
}

// Every state that a power cut can leave opens without help and holds a prefix with all that was
// confirmed; ids and numbers are never given twice.
// Proves: G1, G2, G3, G7, D2, D3, A1, A8, O1
TEST(PowerCutTest, AtEveryOperationWriteThrough) { RunSeeds({}, 8, 24); }

// The same where commits gather and one flush confirms many.
// Proves: G1, G2, G3, D2, D3, A1, A8
TEST(PowerCutTest, AtEveryOperationWithACommitInterval) {
  RunSeeds({.commit_interval = absl::Milliseconds(20), .steps = 200}, 1, 24);
}

// At level written a power cut may take what was confirmed, but never out of the middle, and never
// what the engine counts as synced. Proves: G2
TEST(PowerCutTest, AtEveryOperationAtLevelWritten) {
  RunSeeds({.durability = Durability::kWritten}, 1, 16);
}

// Sectors of 4 KiB, as most devices have today: fewer states, the same promises.
// Proves: G1, G2
TEST(PowerCutTest, AtEveryOperationWithLargeSectors) { RunSeeds({.sector_bytes = 4096}, 2, 32); }

// A device that lies about its syncs may lose anything, and then the store may refuse to open. What
// it shows when it opens is still a state that was once true. Proves: G4
TEST(PowerCutTest, ALyingDeviceNeverMakesWrongData) {
  Tally tally;
  size_t opened = 0;
  for (const uint64_t seed : Seeds(1)) {
    CrashRun run({.seed = seed, .lying_syncs = true});
    ASSERT_TRUE(run.Run()) << "seed " << seed;
    // Ids and numbers may come again where the disk lost all trace of them.
    const bool fine =
        CutEverywhere(run, 8, tally, [&](const CrashMoment& moment, const SimDisk& after) {
          const RecoveryOutcome outcome = CheckRecovery(
              run.witness(), {.begun = moment.expect.begun}, 0, after, {.cut_again = false});
          opened += outcome.opened.ok();
          // Told at the open, or where a checkpoint spared the journal before it, by the read.
          // Two names of one file, which only such a device leaves, look locked.
          const bool told = outcome.opened.code() == absl::StatusCode::kDataLoss ||
                            DetailOf(outcome.opened) == Detail::kLocked ||
                            outcome.complaint.starts_with("read: DATA_LOSS");
          return told ? "" : outcome.complaint;
        });
    if (!fine) return;
  }
  EXPECT_GT(opened, 0u);
}

}  // namespace
}  // namespace holdfast
