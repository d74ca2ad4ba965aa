// Crashes while recovering from a crash: recovery can be interrupted at any step, and again.
#include <gtest/gtest.h>

#include "tests/power/cut_everywhere.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Recovers `disk`, cuts the power before every `stride`-th of its changing operations, and does the
// same to what that leaves, `depth` deep. Each recovery that ends must end with the same calls.
std::string CrashWhileRecovering(const CrashRun& run, const CrashMoment& moment,
                                 const SimDisk& disk, size_t stride, int depth, uint64_t seed,
                                 size_t& states) {
  std::vector<CrashMoment> inner;
  RecoveryCheckOptions check{.seed = seed, .cut_again = false};
  uint64_t changes = 0;
  check.observer = [&](const SimOperation& operation, const SimDisk& now) {
    if (Changes(operation.call) && (++changes + seed) % stride == 0) {
      inner.push_back({operation, now, moment.expect});
    }
  };
  const size_t required = RequiredAfterPowerCut(run, moment.expect);
  const RecoveryOutcome first = CheckRecovery(run.witness(), moment.expect, required, disk, check);
  if (!first.complaint.empty()) return first.complaint;
  ++states;
  for (const CrashMoment& cut : inner) {
    const std::vector<LooseWrite> loose = cut.disk.Loose();
    for (const std::vector<bool>& kept : CutChoices(loose.size(), 4, seed + cut.operation.number)) {
      const SimDisk after = cut.disk.PowerCut(kept);
      std::string complaint;
      if (depth > 1) {
        complaint =
            CrashWhileRecovering(run, moment, after, stride * 3, depth - 1, seed + 1, states);
      }
      if (complaint.empty()) {
        const RecoveryOutcome again = CheckRecovery(
            run.witness(), moment.expect, required, after,
            {.seed = seed + 2, .cut_again = states % 8 == 0, .go_on = states % 16 == 0});
        ++states;
        complaint = again.complaint;
        if (complaint.empty() && again.count != first.count) {
          complaint = "the first recovery took " + std::to_string(first.count) +
                      " calls, the one after a second cut " + std::to_string(again.count);
        }
      }
      if (!complaint.empty()) {
        return complaint + "\n  depth " + std::to_string(depth) + ", cut of the recovery " +
               Describe(cut) + "; " + Describe(loose, kept);
      }
    }
  }
  return "";
}

void RunSeeds(CrashRunOptions options, uint64_t seeds, int depth, size_t stride,
              uint64_t moments_one_in) {
  size_t states = 0;
  for (const uint64_t seed : Seeds(seeds)) {
    options.seed = seed;
    CrashRun run(options);
    ASSERT_TRUE(run.Run()) << "seed " << seed;
    SeededRng rng(seed);
    for (const CrashMoment& moment : run.moments()) {
      if (!rng.OneIn(moments_one_in)) continue;
      const std::vector<LooseWrite> loose = moment.disk.Loose();
      for (const std::vector<bool>& kept : CutChoices(loose.size(), 2, rng.Next())) {
        ASSERT_EQ(CrashWhileRecovering(run, moment, moment.disk.PowerCut(kept), stride, depth,
                                       rng.Next() % 1000, states),
                  "")
            << "seed " << seed << ", power cut " << Describe(moment) << "; "
            << Describe(loose, kept);
      }
    }
  }
  testing::Test::RecordProperty("states", static_cast<int>(states));
}

// Proves: G7, G1, G2
TEST(NestedCrashTest, ASecondCutAtEveryStepOfRecovery) { RunSeeds({}, 1, 1, 1, 6); }

// Proves: G7, G1, G2
TEST(NestedCrashTest, AThirdCutWhileRecoveringFromTheSecond) {
  RunSeeds({.commit_interval = absl::Milliseconds(20), .steps = 150}, 1, 2, 4, 40);
}

}  // namespace
}  // namespace holdfast
