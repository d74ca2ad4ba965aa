// Power cuts and process kills at every operation of checkpoints, rotations, compactions,
// retirements and recycling, and in the recovery after them.
#include <gtest/gtest.h>

#include "tests/power/cut_everywhere.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

constexpr CrashRunOptions kBusy{
    .steps = 90, .steps_reopened = 30, .event_bytes_max = 5'000, .housekeeping = true};

bool IsCheckpoint(const std::string& name) { return name.starts_with("checkpoint/"); }

SimDisk WithoutCheckpoints(SimDisk disk) {
  for (const std::string& name : disk.Names()) {
    if (IsCheckpoint(name)) disk.Erase(name);
  }
  return disk;
}

// One byte in the middle of each is wrong.
SimDisk WithBadCheckpoints(SimDisk disk) {
  for (const std::string& name : disk.Names()) {
    if (!IsCheckpoint(name)) continue;
    const std::string contents = disk.Contents(name);
    if (contents.empty()) continue;
    const size_t place = contents.size() / 2;
    const std::byte wrong = std::byte{static_cast<uint8_t>(~contents[place])};
    disk.Damage(name, place, {&wrong, 1});
  }
  return disk;
}

// Opens what is left, and again from a full scan: the states must be the same.
std::string CheckBothWays(const CrashRun& run, const CrashMoment& moment, size_t required,
                          const SimDisk& after, const RecoveryCheckOptions& check, bool bad) {
  const RecoveryOutcome outcome =
      CheckRecovery(run.witness(), moment.expect, required, after, check);
  if (!outcome.complaint.empty()) return outcome.complaint;
  if (check.seed % 4 != 0) return "";
  const RecoveryOutcome scanned =
      CheckRecovery(run.witness(), moment.expect, required,
                    bad ? WithBadCheckpoints(after) : WithoutCheckpoints(after),
                    {.seed = check.seed, .cut_again = false});
  if (!scanned.complaint.empty()) return "from a full scan: " + scanned.complaint;
  return scanned.count == outcome.count ? "" : "a full scan brings back another state";
}

class HousekeepingCutTest : public testing::Test {
 protected:
  // A run that did all that it is for.
  static bool Prepare(CrashRun& run) {
    if (!run.Run()) return false;
    EXPECT_GE(run.housekept().checkpoints, 3u);
    EXPECT_GE(run.housekept().restated_records, 20u);
    EXPECT_GE(run.housekept().retired_segments, 2u);
    return !HasFailure();
  }

  void CutAndCheck(const CrashRunOptions& options) {
    const size_t choices_max = OneIn() == 1 ? 8 : 1;  // a thinned sweep still takes every operation
    CrashRun run(options);
    ASSERT_TRUE(Prepare(run)) << "seed " << options.seed;
    CutEverywhere(run, choices_max, tally_, [&](const CrashMoment& moment, const SimDisk& after) {
      RecoveryCheckOptions check{.seed = options.seed + tally_.states};
      check.cut_again = tally_.states % 8 == 0;
      check.go_on = tally_.states % 16 == 0;
      return CheckBothWays(run, moment, RequiredAfterPowerCut(run, moment.expect), after, check,
                           tally_.states % 3 == 0);
    });
  }

  ~HousekeepingCutTest() override {
    RecordProperty("states", static_cast<int>(tally_.states));
    RecordProperty("seasoned", static_cast<int>(tally_.seasoned));
  }
  Tally tally_;
};

// No loss, no resurrection, the same state from a checkpoint and from a full scan.
// Proves: G1, G3, G7, D2, D6
TEST_F(HousekeepingCutTest, AtEveryOperation) {
  CrashRunOptions options = kBusy;
  for (const uint64_t seed : Seeds(4)) {
    options.seed = seed;
    CutAndCheck(options);
    if (HasFailure()) return;
  }
  EXPECT_GT(tally_.seasoned, OneIn() == 1 ? 400u : 100u);
}

// With an interval, removals are durable long after they were made: no segment may go before.
// Proves: G3, D2
TEST_F(HousekeepingCutTest, AtEveryOperationWithACommitInterval) {
  CrashRunOptions options = kBusy;
  options.commit_interval = absl::Milliseconds(20);
  for (const uint64_t seed : Seeds(2)) {
    options.seed = seed;
    CutAndCheck(options);
    if (HasFailure()) return;
  }
}

// Proves: G2
TEST_F(HousekeepingCutTest, AtEveryOperationAtLevelWritten) {
  CrashRunOptions options = kBusy;
  options.durability = Durability::kWritten;
  for (const uint64_t seed : Seeds(1)) {
    options.seed = seed;
    CutAndCheck(options);
    if (HasFailure()) return;
  }
}

// A crash loop: a power cut at every operation of the recovery from a power cut.
// Proves: G5, G7
TEST_F(HousekeepingCutTest, AtEveryOperationOfARecovery) {
  CrashRunOptions options = kBusy;
  for (const uint64_t seed : Seeds(1)) {
    options.seed = seed;
    CrashRun run(options);
    ASSERT_TRUE(Prepare(run)) << "seed " << seed;
    size_t index = FirstOf(seed);
    for (; index < run.moments().size(); index += 9 * OneIn()) {
      const CrashMoment& moment = run.moments()[index];
      const size_t required = RequiredAfterPowerCut(run, moment.expect);
      const SimDisk first =
          moment.disk.PowerCut(std::vector<bool>(moment.disk.Loose().size(), index % 2 == 0));
      std::vector<SimDisk> second;
      RecoveryCheckOptions check{.seed = seed + index};
      check.observer = [&](const SimOperation& operation, const SimDisk& disk) {
        if (Changes(operation.call)) second.push_back(disk);
      };
      EXPECT_EQ(CheckRecovery(run.witness(), moment.expect, required, first, check).complaint, "")
          << "seed " << seed << ", " << Describe(moment);
      for (const SimDisk& disk : second) {
        const size_t loose = disk.Loose().size();
        for (const bool kept : {false, true}) {
          Count(moment, tally_);
          EXPECT_EQ(CheckRecovery(run.witness(), moment.expect, required,
                                  disk.PowerCut(std::vector<bool>(loose, kept)),
                                  {.seed = seed + index + 1, .cut_again = false})
                        .complaint,
                    "")
              << "seed " << seed << ", " << Describe(moment) << ", cut again in the recovery";
        }
        if (HasFailure()) return;
      }
    }
  }
}

// SIGKILL leaves the page cache: what was written is there, what was in flight may be, or land
// late.
// Proves: G6, D2
TEST_F(HousekeepingCutTest, AProcessKillAtEveryOperation) {
  CrashRunOptions options = kBusy;
  for (const uint64_t seed : Seeds(3)) {
    options.seed = seed;
    CrashRun run(options);
    ASSERT_TRUE(Prepare(run)) << "seed " << seed;
    for (const CrashMoment& moment : run.moments()) {
      Count(moment, tally_);
      EXPECT_EQ(CheckRecovery(run.witness(), moment.expect, moment.expect.required,
                              moment.disk.Kill(seed + moment.operation.number, false),
                              {.seed = seed + tally_.states, .cut_again = false})
                    .complaint,
                "")
          << "seed " << seed << ", killed " << Describe(moment);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace holdfast
