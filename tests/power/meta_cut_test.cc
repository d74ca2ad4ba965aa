// Power cuts and kills at every operation of a workload on the Meta in the journal, with
// checkpoints and compactions under way: what comes back is what was answered, and no revision
// comes twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "meta/mvcc_meta.h"
#include "stores/engine_on_storage.h"
#include "tests/power/cut_everywhere.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// What a Meta shows, but for its revision.
struct Shown {
  std::vector<MetaEntry> entries;
  std::vector<uint64_t> leases;
  bool operator==(const Shown&) const = default;
};

StatusOr<Shown> Show(MetaStore& meta) {
  Shown shown;
  ASSIGN_OR_RETURN(MetaList list, meta.List("", {}));
  shown.entries = std::move(list.entries);
  ASSIGN_OR_RETURN(shown.leases, dynamic_cast<MvccMeta&>(meta).Leases({}));
  return shown;
}

EngineOptions OptionsOf(Durability durability, Clock& clock, Rng& rng) {
  return {.durability = durability,
          .segment_bytes = uint64_t{64} << 10,
          .checkpoint_every_bytes = uint64_t{32} << 10,
          .clock = &clock,
          .rng = &rng};
}

class MetaRun {
 public:
  struct Moment {
    SimOperation operation;
    SimDisk disk;
    size_t answered = 0;          // calls whose answer is out: all of them must be there
    size_t begun = 0;             // calls that may be there
    uint64_t revision_shown = 0;  // the highest that anybody saw
  };

  MetaRun(uint64_t seed, Durability durability)
      : durability_(durability),
        choices_(seed),
        rng_(seed + 1),
        storage_(SimDisk(), {.seed = seed}) {
    clock_.JumpWhenAsked(absl::Milliseconds(100));
    storage_.SetObserver([this](const SimOperation& operation, const SimDisk& disk) {
      if (!Changes(operation.call)) return;
      moments_.push_back({operation, disk, states_.size() - 1, begun_, revision_shown_});
    });
  }

  void Run(size_t steps) {
    for (int boot = 0; boot < 2; ++boot) {
      auto engine = OpenEngineOn(storage_, OptionsOf(durability_, clock_, rng_), false);
      ASSERT_OK(engine);
      for (size_t i = 0; i < steps; ++i) {
        ++begun_;
        Step((*engine)->meta());
        if (testing::Test::HasFatalFailure()) return;
        const uint64_t what = choices_.Below(20);
        const Status kept = what == 0   ? (*engine)->Checkpoint()
                            : what == 1 ? (*engine)->Compact().status()
                                        : absl::OkStatus();
        ASSERT_OK(kept);
        if (what < 6) (*engine)->Tick();
        // Reading changes nothing, but ends what is over and shows the newest revision.
        auto shown = Show((*engine)->meta());
        ASSERT_OK(shown);
        states_.push_back(*std::move(shown));
        ASSERT_OK_AND_ASSIGN(const MetaList list, (*engine)->meta().List("", {}));
        EXPECT_GE(list.revision, revision_shown_);
        revision_shown_ = list.revision;
      }
      ASSERT_OK((*engine)->Close());
    }
  }

  const std::vector<Moment>& moments() const { return moments_; }
  Durability durability() const { return durability_; }
  // Whether this is what some call from the `first` on, up to the `last`, left.
  bool Was(const Shown& shown, size_t first, size_t last) const {
    for (size_t i = first; i <= last && i < states_.size(); ++i) {
      if (states_[i] == shown) return true;
    }
    return false;
  }

 private:
  void Step(MetaStore& meta) {
    const std::string key = "k" + std::to_string(choices_.Below(9));
    const std::string value(choices_.OneIn(6) ? choices_.Below(7'000) : choices_.Below(90), 'v');
    const std::string request = std::to_string(begun_);
    switch (choices_.Below(8)) {
      case 0: {
        const auto erased = meta.Delete(key, {});
        ASSERT_TRUE(erased.ok() || erased.status().code() == StatusCode::kNotFound)
            << erased.status();
        return;
      }
      case 1: {
        const auto lease = meta.GrantLease(absl::Hours(1), {});
        ASSERT_OK(lease);
        leases_.push_back(lease->id);
        return;
      }
      case 2: {
        if (leases_.empty()) return;
        const size_t index = choices_.Below(leases_.size());
        ASSERT_OK(meta.RevokeLease(leases_[index], {}));
        leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(index));
        return;
      }
      case 3: {
        MetaTransaction both;
        both.changes.push_back({.key = "txn/a", .value = value});
        both.changes.push_back({.key = "txn/b", .value = value});
        both.changes.push_back({.kind = MetaChange::Kind::kDelete, .key = key});
        ASSERT_OK(meta.Transact(both, {.request_id = request}));
        return;
      }
      default: {
        const uint64_t lease =
            leases_.empty() || choices_.OneIn(2) ? 0 : leases_[choices_.Below(leases_.size())];
        ASSERT_OK(meta.Put(key, value, {.request_id = request, .lease = lease}));
      }
    }
  }

  const Durability durability_;
  SimClock clock_;
  SeededRng choices_, rng_;
  SimStorage storage_;
  std::vector<uint64_t> leases_;
  std::vector<Shown> states_{1};  // after each call
  size_t begun_ = 0;
  uint64_t revision_shown_ = 0;
  std::vector<Moment> moments_;
};

// What is wrong with what comes back from `left`; empty: nothing.
std::string Complaint(const MetaRun& run, const MetaRun::Moment& moment, const SimDisk& left,
                      size_t answered) {
  SimClock clock;
  clock.JumpWhenAsked(absl::Milliseconds(100));
  SeededRng rng(moment.operation.number);
  SimStorage storage(left);
  const auto engine = OpenEngineOn(storage, OptionsOf(run.durability(), clock, rng), false);
  if (!engine.ok()) return engine.status().ToString();
  MetaStore& meta = (*engine)->meta();
  const auto shown = Show(meta);
  if (!shown.ok()) return shown.status().ToString();
  std::string complaint;
  if (!run.Was(*shown, answered, moment.begun)) complaint = "a state that never was, or is too old";
  const auto put = meta.Put("after", "", {});
  if (!put.ok()) {
    complaint = put.status().ToString();
  } else if (*put <= moment.revision_shown) {
    complaint = fmt::format("revision {} again, {} was shown", *put, moment.revision_shown);
  }
  // What was shown last stays, whatever is left of the journal later.
  storage.PowerOff();
  return complaint;
}

void CutAndCheck(uint64_t seed, Durability durability, size_t choices_max) {
  MetaRun run(seed, durability);
  run.Run(70);
  if (testing::Test::HasFatalFailure()) return;
  size_t states = 0;
  for (const MetaRun::Moment& moment : run.moments()) {
    const std::vector<LooseWrite> loose = moment.disk.Loose();
    for (const std::vector<bool>& kept :
         CutChoices(loose.size(), choices_max, seed + moment.operation.number)) {
      // At level written a power cut may take what was answered, never the order.
      const size_t answered = durability == Durability::kSynced ? moment.answered : 0;
      ASSERT_EQ(Complaint(run, moment, moment.disk.PowerCut(kept), answered), "")
          << "seed " << seed << ", power cut before operation " << moment.operation.number << ", "
          << SimCallName(moment.operation.call) << " " << moment.operation.name << "; "
          << Describe(loose, kept);
      ++states;
    }
    ASSERT_EQ(Complaint(run, moment, moment.disk.Kill(seed, /*late=*/false), moment.answered), "")
        << "seed " << seed << ", kill before operation " << moment.operation.number;
  }
  EXPECT_GT(states, 300u);
}

// Proves: G1, G2, G11, S1
TEST(MetaCutTest, AtEveryOperationWhatWasAnsweredIsThereAndNoRevisionComesTwice) {
  for (const uint64_t seed : Seeds(4)) CutAndCheck(seed, Durability::kSynced, 8);
}

// Proves: G11
TEST(MetaCutTest, AtLevelWrittenNoRevisionThatWasShownIsUsedAgain) {
  for (const uint64_t seed : Seeds(2)) CutAndCheck(seed, Durability::kWritten, 8);
}

}  // namespace
}  // namespace holdfast
