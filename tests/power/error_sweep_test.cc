// One operation of the disk fails, each in turn, once or from then on: nothing crashes, everybody
// gets a true answer, a failed write or sync poisons, and reopening recovers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/power/crash_run.h"
#include "tests/power/recovery_check.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

using Effect = SimFault::Effect;

// What an engine must not do once it is poisoned.
bool Writes(SimCall call) {
  switch (call) {
    case SimCall::kWriteAt:
    case SimCall::kSubmit:
    case SimCall::kSyncData:
    case SimCall::kSyncFolder:
    case SimCall::kWriteZeros:
    case SimCall::kTruncate:
    case SimCall::kRename:
    case SimCall::kRemove:
    case SimCall::kMakeFolder:
      return true;
    default:
      return false;
  }
}

std::vector<Effect> EffectsOf(SimCall call) {
  switch (call) {
    case SimCall::kWriteAt:
    case SimCall::kWriteZeros:
      return {Effect::kNothing, Effect::kTorn};
    case SimCall::kSyncData:
      return {Effect::kNothing, Effect::kUnsynced};
    case SimCall::kWaitOne:
      return {Effect::kTorn, Effect::kUnsynced, Effect::kQueueLost};
    default:
      return {Effect::kNothing};
  }
}

// A workload with a fault in it: two boots, the second after a clean close.
class FaultRun {
 public:
  FaultRun(const CrashRunOptions& options, std::optional<SimFault> fault)
      : options_(options),
        choices_(options.seed),
        workload_(options.seed + 1, options.event_bytes_max, history_, clock_),
        engine_rng_(options.seed ^ 0x5eed),
        storage_(SimDisk(), {.seed = options.seed, .depth_max = options.depth_max}),
        fault_(fault) {
    clock_.JumpWhenAsked(absl::Milliseconds(100));
    storage_.SetFault(std::move(fault));
    storage_.SetObserver([this](const SimOperation& operation, const SimDisk&) {
      calls_.push_back(operation.call);
      if (poisoned_ && Writes(operation.call)) {
        Complain(
            fmt::format("poisoned, but then: {} {}", SimCallName(operation.call), operation.name));
      }
      const bool fails = fault_ && (operation.number == fault_->at ||
                                    (fault_->for_ever && operation.number > fault_->at));
      // A batch that fails poisons at once.
      if (fails && operation.call == SimCall::kWaitOne) poisoned_ = true;
    });
  }

  // Empty: all is as it must be.
  std::string Run() {
    for (const size_t steps : {options_.steps, options_.steps_reopened}) {
      if (!Boot(steps)) break;
    }
    storage_.SetFault(std::nullopt);
    if (!complaint_.empty()) return complaint_;
    return AfterReopening();
  }

  const std::vector<SimCall>& calls() const { return calls_; }
  bool met() const { return met_; }

 private:
  void Complain(const std::string& complaint) {
    if (complaint_.empty()) complaint_ = complaint;
  }

  bool Boot(size_t steps);
  bool Step(TickingEngine& engine);
  void CheckReads(TickingEngine& engine);
  std::string AfterReopening();

  const CrashRunOptions options_;
  SimClock clock_;
  SeededRng choices_;
  History history_;
  Workload workload_;
  SeededRng engine_rng_;
  SimStorage storage_;
  const std::optional<SimFault> fault_;
  std::vector<SimCall> calls_;
  std::string complaint_;
  CrashExpectation expect_;
  size_t accepted_ = 0;  // calls that the engine took
  bool poisoned_ = false;
  bool met_ = false;
};

bool FaultRun::Boot(size_t steps) {
  const uint64_t print = storage_.disk().Fingerprint();
  const size_t first_call = calls_.size();
  auto opened = OpenEngineOn(storage_, EngineOptionsFor(options_, clock_, engine_rng_), false);
  if (!opened.ok()) {
    met_ = storage_.fault_was_met();
    if (!met_) Complain("open: " + opened.status().ToString());
    if (opened.status().code() == StatusCode::kDataLoss) {
      Complain("open calls a failed operation damage: " + opened.status().ToString());
    }
    bool wrote = false;
    for (size_t i = first_call; i + 1 < calls_.size(); ++i) wrote |= Writes(calls_[i]);
    if (!wrote && first_call > 0 && storage_.disk().Fingerprint() != print) {
      Complain("the open failed while it only read, and changed a byte");
    }
    return false;
  }
  TickingEngine& engine = **opened;
  expect_.epoch = engine.boot_epoch();
  bool going = true;
  for (size_t i = 0; i < steps && going; ++i) going = Step(engine);
  CheckReads(engine);
  const Status closed = engine.Close();
  met_ = storage_.fault_was_met();
  history_.Poll();
  if (closed.ok()) {
    if (!history_.AllConfirmed()) Complain("Close is OK, and not all is confirmed");
  } else if (!met_) {
    Complain("close: " + closed.ToString());
  }
  expect_.lsn_max = history_.lsn_max();
  expect_.ids = workload_.ids().size();
  history_.CloseCommits();
  return closed.ok() && complaint_.empty();
}

// False: the engine takes no more changes.
bool FaultRun::Step(TickingEngine& engine) {
  const std::vector<Change> changes = workload_.Next(engine);
  const size_t index = history_.Begin(changes);
  accepted_ = history_.begun();
  const Commit commit = Perform(engine, changes);
  poisoned_ |= engine.stats().poisoned;
  met_ = storage_.fault_was_met();
  const StatusCode refused = commit.refused().code();
  if (met_ && (refused == StatusCode::kUnavailable || refused == StatusCode::kResourceExhausted)) {
    // A read that failed, or no room: for certain nothing was written. Poisoned: so far as anyone
    // knows.
    accepted_ = index;
    history_.EndRefused(index, poisoned_);
    return !poisoned_;
  }
  if (const std::string complaint = history_.End(index, commit); !complaint.empty()) {
    Complain(complaint);
    return false;
  }
  history_.Poll();
  if (choices_.OneIn(3)) return true;
  const Status waited = commit.Wait();
  poisoned_ |= engine.stats().poisoned;
  if (waited.ok()) {
    history_.Confirm(index);
  } else if (commit.refused().ok()) {
    met_ = storage_.fault_was_met();
    if (!met_) Complain(Describe(changes) + ": " + waited.ToString());
    if (waited.code() != StatusCode::kUnavailable) {
      Complain(Describe(changes) + ": an outcome that is unknown is told as " + waited.ToString());
    }
    if (!poisoned_) Complain(Describe(changes) + " failed, and the engine is not poisoned");
  }
  history_.Poll();
  if (choices_.OneIn(4)) {
    clock_.Advance(absl::Milliseconds(400));
    engine.Tick();
  }
  return true;
}

// What can be read is right; the rest says that it cannot be read.
void FaultRun::CheckReads(TickingEngine& engine) {
  const Model& want = history_.After(accepted_);
  for (const std::string& id : workload_.ids()) {
    const auto stored = engine.deliveries().Get(id);
    const auto it = want.deliveries.find(id);
    if (stored.ok()) {
      if (it == want.deliveries.end()) {
        Complain("Get finds " + id + ", which is not live");
      } else if (!(stored->delivery == it->second)) {
        Complain("Get gives other bytes of " + id);
      }
    } else if (stored.status().code() == StatusCode::kNotFound) {
      if (it != want.deliveries.end()) Complain("Get does not find " + id);
    } else if (stored.status().code() != StatusCode::kUnavailable || !storage_.fault_was_met()) {
      Complain("Get " + id + ": " + stored.status().ToString());
    }
  }
}

std::string FaultRun::AfterReopening() {
  expect_.required = history_.required();
  expect_.begun = history_.begun();
  const CrashWitness witness{options_, history_, workload_.ids()};
  // The process ended and another one starts; then the same after a power cut that keeps nothing.
  const SimDisk disk = storage_.disk();
  RecoveryCheckOptions check{.seed = options_.seed + 9, .cut_again = true, .go_on = true};
  const RecoveryOutcome killed =
      CheckRecovery(witness, expect_, expect_.required, disk.Kill(options_.seed, false), check);
  if (!killed.complaint.empty()) return "after the process ended: " + killed.complaint;
  const SimDisk cut = disk.PowerCut(std::vector<bool>(disk.Loose().size(), false));
  // At level written a power cut may take what was confirmed.
  const bool synced = options_.durability == Durability::kSynced;
  const RecoveryOutcome after =
      CheckRecovery(witness, expect_, synced ? expect_.required : 0, cut, check);
  return after.complaint.empty() ? "" : "after a power cut: " + after.complaint;
}

struct SweepOptions {
  CrashRunOptions run;
  Status status = Unavailable(Detail::kIo, "simulated: EIO");
  size_t stride = 1;
};

void Sweep(const SweepOptions& sweep) {
  FaultRun healthy(sweep.run, std::nullopt);
  ASSERT_EQ(healthy.Run(), "") << "without any fault, seed " << sweep.run.seed;
  size_t runs = 0, met = 0;
  const std::vector<SimCall> calls = healthy.calls();
  for (size_t i = sweep.run.seed % sweep.stride; i < calls.size(); i += sweep.stride) {
    for (const Effect effect : EffectsOf(calls[i])) {
      for (const bool for_ever : {false, true}) {
        FaultRun run(
            sweep.run,
            SimFault{.at = i + 1, .for_ever = for_ever, .effect = effect, .status = sweep.status});
        ASSERT_EQ(run.Run(), "") << "seed " << sweep.run.seed << ", operation " << i + 1 << " "
                                 << SimCallName(calls[i]) << " fails "
                                 << (for_ever ? "for ever" : "once") << ", effect "
                                 << static_cast<int>(effect) << ", " << sweep.status;
        ++runs;
        met += run.met();
      }
    }
  }
  EXPECT_GT(met, runs / 2) << "most faults must be met";
  testing::Test::RecordProperty("runs", static_cast<int>(runs));
}

// Proves: G1, G3, G4, D3
TEST(ErrorSweepTest, EveryOperationFailsWriteThrough) {
  for (const uint64_t seed : Seeds(1)) Sweep({.run = {.seed = seed, .steps = 40}});
}

// Proves: G1, G3, G4, D3
TEST(ErrorSweepTest, EveryOperationFailsWithACommitInterval) {
  for (const uint64_t seed : Seeds(1)) {
    Sweep({.run = {.seed = seed, .commit_interval = absl::Milliseconds(20), .steps = 100},
           .stride = 5});
  }
}

// Proves: G1, G3
TEST(ErrorSweepTest, EveryOperationFailsAtLevelWritten) {
  for (const uint64_t seed : Seeds(1)) {
    Sweep({.run = {.seed = seed, .durability = Durability::kWritten, .steps = 40}, .stride = 2});
  }
}

// Proves: G8, G3, D3
TEST(ErrorSweepTest, EveryOperationFindsTheDiskFull) {
  for (const uint64_t seed : Seeds(1)) {
    Sweep({.run = {.seed = seed, .steps = 40},
           .status = Exhausted(Detail::kDiskFull, "simulated: ENOSPC")});
  }
}

}  // namespace
}  // namespace holdfast
