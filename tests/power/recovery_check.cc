#include "tests/power/recovery_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

// One boot on a disk. The world stops when it is destroyed: the engine's own close changes nothing.
class Boot {
 public:
  Boot(const CrashWitness& run, const SimDisk& disk, uint64_t seed,
       SimStorageOptions storage_options)
      : rng_(seed), storage_(disk, storage_options), run_(run) {
    clock_.JumpWhenAsked(absl::Milliseconds(100));
  }
  ~Boot() { storage_.PowerOff(); }

  Status Open() {
    ASSIGN_OR_RETURN(engine_, OpenEngineOn(storage_, EngineOptionsFor(run_.options, clock_, rng_),
                                           /*threads=*/false));
    return absl::OkStatus();
  }
  TickingEngine& engine() { return *engine_; }
  SimStorage& storage() { return storage_; }
  SimClock& clock() { return clock_; }

 private:
  SimClock clock_;
  SeededRng rng_;
  SimStorage storage_;
  const CrashWitness run_;
  std::unique_ptr<TickingEngine> engine_;
};

std::string CheckIds(const CrashWitness& run, const CrashExpectation& expect,
                     TickingEngine& engine) {
  const auto end = run.ids.begin() + static_cast<std::ptrdiff_t>(expect.ids);
  for (int i = 0; i < 3; ++i) {
    const std::string id = engine.NewDeliveryId();
    if (std::find(run.ids.begin(), end, id) != end) return "id " + id + " was issued before";
  }
  return "";
}

// A few calls, a clean close, and everything is there.
std::string GoOn(const CrashWitness& run, const CrashExpectation& expect, Boot& boot, Model model) {
  uint64_t lsn_last = expect.lsn_max;
  const std::string id = boot.engine().NewDeliveryId();
  const Delivery delivery{.id = id,
                          .topic = "after",
                          .client = "c",
                          .due = boot.engine().EngineNow(),
                          .created = boot.clock().WallNow(),
                          .event = std::string(300, 'e')};
  std::vector<std::vector<Change>> calls{{PutChange{delivery}},
                                         {OffsetChange{{"after", "c", 0}, OffsetPosition(7)}}};
  if (!model.deliveries.empty()) calls.push_back({RemoveChange{model.deliveries.begin()->first}});
  for (const std::vector<Change>& changes : calls) {
    model.Apply(changes);
    const Commit commit = Perform(boot.engine(), changes);
    if (const Status waited = commit.Wait(); !waited.ok()) {
      return fmt::format("after recovery: {}: {}", Describe(changes), Message(waited));
    }
    if (commit.lsn() <= lsn_last) {
      return fmt::format("LSN {} after {} were handed out", commit.lsn(), lsn_last);
    }
    lsn_last = commit.lsn();
  }
  if (const Status closed = boot.engine().Close(); !closed.ok()) {
    return fmt::format("close after recovery: {}", Message(closed));
  }
  const SimDisk disk = boot.storage().disk();
  Boot next(run, disk.PowerCut(std::vector<bool>(disk.Loose().size(), false)), 77, {});
  if (const Status opened = next.Open(); !opened.ok()) {
    return fmt::format("open after a clean close: {}", Message(opened));
  }
  if (!next.engine().recovery().clean) return "a clean close was not seen as clean";
  const auto found = ReadModel(next.engine(), run.history.names());
  if (!found.ok()) return fmt::format("read after a clean close: {}", Message(found.status()));
  if (const std::string difference = model.DifferenceTo(*found); !difference.empty()) {
    return "after going on, a clean close and a power cut:" + difference;
  }
  return "";
}

}  // namespace

RecoveryOutcome CheckRecovery(const CrashWitness& run, const CrashExpectation& expect,
                              size_t required, const SimDisk& disk,
                              const RecoveryCheckOptions& options) {
  RecoveryOutcome outcome;
  Boot boot(run, disk, options.seed, options.storage);
  boot.storage().SetObserver(options.observer);
  const Status opened = boot.Open();
  boot.storage().SetObserver(nullptr);
  outcome.operations = boot.storage().operations();
  outcome.opened = opened;
  if (!opened.ok()) {
    outcome.complaint = fmt::format("open: {}", opened.ToString());
    return outcome;
  }
  const auto found = ReadModel(boot.engine(), run.history.names());
  if (!found.ok()) {
    outcome.complaint = fmt::format("read: {}", found.status().ToString());
    return outcome;
  }
  const RecoveryReport report = boot.engine().recovery();
  const History::Verdict verdict =
      run.history.Judge(*found, report.last_lsn, required, expect.begun);
  outcome.count = verdict.count;
  outcome.complaint = verdict.complaint;
  if (outcome.complaint.empty() && boot.engine().boot_epoch() <= expect.epoch) {
    outcome.complaint =
        fmt::format("boot epoch {} after {}", boot.engine().boot_epoch(), expect.epoch);
  }
  if (outcome.complaint.empty()) outcome.complaint = CheckIds(run, expect, boot.engine());
  if (outcome.complaint.empty() && options.cut_again) {
    // What recovery reports is durable, whatever the disk held before (F16).
    const SimDisk now = boot.storage().disk();
    Boot next(run, now.PowerCut(std::vector<bool>(now.Loose().size(), false)), options.seed + 1,
              {});
    if (const Status again = next.Open(); !again.ok()) {
      outcome.complaint = fmt::format("open after a cut after recovery: {}", again.ToString());
    } else if (const auto model = ReadModel(next.engine(), run.history.names()); !model.ok()) {
      outcome.complaint =
          fmt::format("read after a cut after recovery: {}", model.status().ToString());
    } else if (const std::string difference = found->DifferenceTo(*model); !difference.empty()) {
      outcome.complaint = "a power cut after recovery changed the state:" + difference;
    } else if (next.engine().recovery().last_lsn != report.last_lsn) {
      outcome.complaint =
          fmt::format("a power cut after recovery changed the last LSN from {} to {}",
                      report.last_lsn, next.engine().recovery().last_lsn);
    }
  }
  if (outcome.complaint.empty() && options.go_on) {
    outcome.complaint = GoOn(run, expect, boot, *found);
  }
  return outcome;
}

}  // namespace holdfast
