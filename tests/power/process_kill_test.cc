// The process is killed at every operation: the cache lives on, and requests in flight may still
// land.
#include <gtest/gtest.h>

#include "tests/power/cut_everywhere.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

void KillEverywhere(CrashRunOptions options, uint64_t seeds, size_t kills, bool late) {
  Tally tally;
  size_t late_count = 0;
  for (const uint64_t seed : Seeds(seeds)) {
    options.seed = seed;
    CrashRun run(options);
    ASSERT_TRUE(run.Run()) << "seed " << seed;
    for (const CrashMoment& moment : run.moments()) {
      for (uint64_t kill = 0; kill < kills; ++kill) {
        const uint64_t fate = seed * 1000 + moment.operation.number * 10 + kill;
        const SimDisk after = moment.disk.Kill(fate, late);
        late_count += after.late_count();
        Count(moment, tally);
        // A power cut right after the recovery takes nothing of what that reported.
        RecoveryCheckOptions check{
            .seed = fate, .cut_again = true, .go_on = tally.states % 16 == 0};
        check.storage.late_after_tries = 1 + fate % 4;
        const RecoveryOutcome outcome =
            CheckRecovery(run.witness(), moment.expect, moment.expect.required, after, check);
        ASSERT_EQ(outcome.complaint, "")
            << "seed " << seed << ", kill " << fate << " " << Describe(moment);
      }
    }
  }
  EXPECT_EQ(late_count > 0, late);
  testing::Test::RecordProperty("states", static_cast<int>(tally.states));
}

// Proves: G1, G2, A8
TEST(ProcessKillTest, AtEveryOperationAtLevelSynced) { KillEverywhere({}, 3, 2, false); }

// What was confirmed at level written survives a kill.
// Proves: G1, G2, A8
TEST(ProcessKillTest, AtEveryOperationAtLevelWritten) {
  KillEverywhere({.durability = Durability::kWritten, .steps = 120}, 4, 2, false);
}

// Proves: G1, G2
TEST(ProcessKillTest, AtEveryOperationWithACommitInterval) {
  KillEverywhere({.commit_interval = absl::Milliseconds(20), .steps = 150}, 3, 2, false);
}

// Requests of the killed process land after its successor has begun to open: their locks make it
// wait. Proves: G2, G9
TEST(ProcessKillTest, RequestsInFlightThatLandLate) {
  KillEverywhere({}, 3, 2, true);
  KillEverywhere({.durability = Durability::kWritten}, 3, 2, true);
}

}  // namespace
}  // namespace holdfast
