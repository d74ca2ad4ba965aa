// Recovery from a crash, with one operation of the disk failing: it fails or it succeeds, and the
// next one finds the same calls.
#include <gtest/gtest.h>

#include "tests/power/cut_everywhere.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Opens `disk` with `fault` in the way, then again without.
std::string FailAndRetry(const CrashRun& run, const CrashMoment& moment, const SimDisk& disk,
                         const SimFault& fault, size_t count, bool only_reads) {
  const uint64_t print = disk.Fingerprint();
  SimDisk left = disk;
  {
    SimClock clock;
    clock.JumpWhenAsked(absl::Milliseconds(100));
    SeededRng rng(fault.at);
    SimStorage storage(disk);
    storage.SetFault(fault);
    const auto engine =
        OpenEngineOn(storage, EngineOptionsFor(run.options(), clock, rng), /*threads=*/false);
    if (!engine.ok() && engine.status().code() == absl::StatusCode::kDataLoss) {
      return "a failed operation is called damage: " + engine.status().ToString();
    }
    if (!engine.ok() && only_reads && storage.disk().Fingerprint() != print) {
      return "the open failed while it only read, and changed a byte";
    }
    if (storage.disk().flights().empty()) left = storage.disk();
    storage.PowerOff();
  }
  const size_t required = RequiredAfterPowerCut(run, moment.expect);
  for (const SimDisk& next :
       {left.Kill(1, false), left.PowerCut(std::vector<bool>(left.Loose().size(), false))}) {
    const RecoveryOutcome again =
        CheckRecovery(run.witness(), moment.expect, required, next,
                      {.seed = fault.at, .cut_again = false, .go_on = fault.at % 8 == 0});
    if (!again.complaint.empty()) return "the next open: " + again.complaint;
    if (again.count != count) return "the next open finds other calls";
  }
  return "";
}

// Proves: G6, G7
TEST(RecoveryErrorTest, EveryOperationOfARecoveryFails) {
  size_t runs = 0;
  for (const uint64_t seed : Seeds(2)) {
    CrashRun run({.seed = seed});
    ASSERT_TRUE(run.Run()) << "seed " << seed;
    SeededRng rng(seed);
    for (const CrashMoment& moment : run.moments()) {
      if (!rng.OneIn(12)) continue;
      const size_t loose = moment.disk.Loose().size();
      const SimDisk disk = moment.disk.PowerCut(CutChoices(loose, 3, rng.Next()).back());
      std::vector<SimCall> calls;
      RecoveryCheckOptions check{.seed = seed, .cut_again = false};
      check.observer = [&](const SimOperation& operation, const SimDisk&) {
        calls.push_back(operation.call);
      };
      const RecoveryOutcome healthy = CheckRecovery(
          run.witness(), moment.expect, RequiredAfterPowerCut(run, moment.expect), disk, check);
      ASSERT_EQ(healthy.complaint, "") << "seed " << seed << " " << Describe(moment);
      bool only_reads = true;
      for (size_t i = 0; i < calls.size(); ++i) {
        for (const bool for_ever : {false, true}) {
          const SimFault fault{.at = i + 1, .for_ever = for_ever};
          ASSERT_EQ(FailAndRetry(run, moment, disk, fault, healthy.count, only_reads), "")
              << "seed " << seed << ", " << Describe(moment) << "; operation " << i + 1
              << " of the recovery, " << SimCallName(calls[i]) << ", fails "
              << (for_ever ? "for ever" : "once");
          ++runs;
        }
        only_reads &= !Changes(calls[i]) || calls[i] == SimCall::kOpenFile;
      }
    }
  }
  RecordProperty("runs", static_cast<int>(runs));
}

}  // namespace
}  // namespace holdfast
