// Repair keeps every healthy record, names what is lost, deletes nothing, and may be killed.
#include "recovery/repair.h"

#include <gtest/gtest.h>

#include <functional>

#include "recovery/survey.h"
#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

struct Wound {
  const char* what;
  std::function<void(SimDisk&)> apply;
  std::vector<uint64_t> kept;
  std::vector<std::pair<uint64_t, uint64_t>> lost;
};

std::vector<uint64_t> Without(std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  std::vector<uint64_t> kept;
  for (uint64_t lsn = 1; lsn <= 12; ++lsn) {
    bool lost = false;
    for (const auto& [first, last] : ranges) lost = lost || (first <= lsn && lsn <= last);
    if (!lost) kept.push_back(lsn);
  }
  return kept;
}

Wound Loses(const char* what, std::vector<std::pair<uint64_t, uint64_t>> ranges,
            std::function<void(SimDisk&)> apply) {
  return {.what = what, .apply = std::move(apply), .kept = Without(ranges), .lost = ranges};
}

const std::vector<Wound>& Wounds() {
  static const std::vector<Wound> kWounds = {
      Loses("MARK is missing", {}, [](SimDisk& d) { d.Erase("MARK"); }),
      Loses("both slots of MARK", {},
            [](SimDisk& d) {
              Flip(d, "MARK", 20);
              Flip(d, "MARK", kBlockBytes + 20);
            }),
      Loses("a batch", {{8, 9}}, [](SimDisk& d) { Flip(d, Name(2), kFirstGroupOffset + 100); }),
      Loses("a group", {{4, 6}},
            [](SimDisk& d) {
              d.Damage(Name(1), kFirstGroupOffset + kBlockBytes,
                       std::vector<std::byte>(kBlockBytes));
            }),
      Loses("two batches and MARK", {{1, 1}, {8, 9}},
            [](SimDisk& d) {
              Flip(d, Name(1), kFirstGroupOffset + 100);
              Flip(d, Name(2), kFirstGroupOffset + 100);
              d.Erase("MARK");
            }),
      Loses("a Link", {}, [](SimDisk& d) { Flip(d, Name(1), kSegmentHeaderBytes + 100); }),
      Loses("the newest Link", {}, [](SimDisk& d) { Flip(d, Name(2), kSegmentHeaderBytes + 100); }),
      Loses("both Links", {},
            [](SimDisk& d) {
              Flip(d, Name(1), kSegmentHeaderBytes + 100);
              Flip(d, Name(2), kSegmentHeaderBytes + 100);
            }),
      Loses("header and Link", {},
            [](SimDisk& d) {
              Flip(d, Name(1), 40);
              Flip(d, Name(1), kSegmentHeaderBytes + 100);
            }),
      Loses("a segment is missing", {{1, 7}}, [](SimDisk& d) { d.Erase(Name(1)); }),
      Loses("the newest is missing", {{8, 12}}, [](SimDisk& d) { d.Erase(Name(2)); }),
      Loses("the newest is empty", {{8, 12}}, [](SimDisk& d) { d.SetSize(Name(2), 0); }),
      Loses("the end of the newest", {{11, 12}},
            [](SimDisk& d) { d.SetSize(Name(2), kFirstGroupOffset + kBlockBytes); }),
      Loses("a stranger", {}, [](SimDisk& d) { d.SetContents(Name(9), AsBytes("hello")); }),
      Loses("padding", {},
            [](SimDisk& d) { Flip(d, Name(1), kFirstGroupOffset + kBlockBytes - 1); })};
  return kWounds;
}

SimDisk Wounded(const Wound& wound) {
  SimDisk disk = TwoSegments(/*clean=*/true);
  wound.apply(disk);
  return disk;
}

StatusOr<RepairPlan> Apply(Storage& storage, uint64_t seed = 8) {
  SimClock clock;
  clock.JumpWhenAsked(absl::Seconds(1));
  SeededRng rng(seed);
  return ApplyRepair(storage, clock, rng, {});
}

std::vector<std::pair<uint64_t, uint64_t>> Pairs(const RepairPlan& plan) {
  std::vector<std::pair<uint64_t, uint64_t>> pairs;
  for (const LsnRange& range : plan.lost)
    pairs.emplace_back(range.first.value(), range.last.value());
  return pairs;
}

TEST(RepairTest, AHealthyStoreNeedsNothing) {
  for (const bool clean : {false, true}) {
    SimStorage storage(TwoSegments(clean));
    const uint64_t before = storage.disk().Fingerprint();
    ASSERT_OK_AND_ASSIGN(const RepairPlan plan, PlanRepair(storage));
    EXPECT_TRUE(plan.empty());
    ASSERT_OK_AND_ASSIGN(const RepairPlan applied, Apply(storage));
    EXPECT_TRUE(applied.empty());
    EXPECT_EQ(storage.disk().Fingerprint(), before);
  }
}

// Proves: G5 G6
TEST(RepairTest, HealthyRecordsAreKeptTheRestIsNamedAndNothingIsDeleted) {
  for (const Wound& wound : Wounds()) {
    SCOPED_TRACE(wound.what);
    const SimDisk disk = Wounded(wound);
    SimStorage storage(disk);
    ASSERT_OK_AND_ASSIGN(const RepairPlan plan, PlanRepair(storage));
    EXPECT_EQ(storage.disk().Fingerprint(), disk.Fingerprint());
    EXPECT_FALSE(plan.empty());
    EXPECT_EQ(Pairs(plan), wound.lost);
    if (!plan.lost.empty()) {
      EXPECT_FALSE(plan.consequences.empty());
    }

    ASSERT_OK_AND_ASSIGN(const RepairPlan applied, Apply(storage));
    EXPECT_EQ(applied.steps, plan.steps);
    const SimDisk after = storage.disk();
    for (const std::string& name : disk.Names()) {
      if (name == "LOCK" || name == "MARK") continue;
      bool kept = false;
      for (const std::string& now : after.Names()) {
        kept = kept || after.Contents(now) == disk.Contents(name);
      }
      EXPECT_TRUE(kept) << name;
    }
    ASSERT_OK_AND_ASSIGN(const RepairPlan again, PlanRepair(storage));
    EXPECT_TRUE(again.empty());

    Boot boot{after.PowerCut(std::vector<bool>(after.Loose().size(), false)), 9};
    ASSERT_OK(boot.status);
    EXPECT_EQ(boot.machine.lsns(), wound.kept);
    boot.store().AppendSynced({1});
    EXPECT_GT(boot.store().last(), Lsn(12));
    Boot next{boot.Killed(), 10};
    ASSERT_OK(next.status);
    EXPECT_EQ(next.machine.places().size(), wound.kept.size() + 1);
  }
}

// Whatever a crash leaves, an open either refuses or has every healthy record, and a second repair
// finishes.
// Proves: G6 G7
TEST(RepairTest, ACrashAnywhereLosesNothing) {
  for (const Wound& wound : Wounds()) {
    SCOPED_TRACE(wound.what);
    std::vector<SimDisk> moments;
    SimStorage storage(Wounded(wound));
    storage.SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
      if (Changes(operation.call)) moments.push_back(disk);
    });
    ASSERT_OK(Apply(storage));
    storage.SetObserver(nullptr);
    for (size_t i = 0; i < moments.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "before change " << i);
      for (const std::vector<bool>& kept : CutChoices(moments[i].Loose().size(), 6, i + 1)) {
        const SimDisk disk = moments[i].PowerCut(kept);
        Boot boot{disk, 20};
        if (boot.status.ok()) {
          ASSERT_EQ(boot.machine.lsns(), wound.kept);
          continue;
        }
        ASSERT_EQ(boot.status.code(), StatusCode::kDataLoss) << boot.status.ToString();
        SimStorage second(disk);
        ASSERT_OK(Apply(second, 21));
        Boot repaired{second.disk().Kill(1, false), 22};
        ASSERT_OK(repaired.status);
        ASSERT_EQ(repaired.machine.lsns(), wound.kept);
      }
    }
  }
}

// Proves: G9
TEST(RepairTest, AStoreInUseIsNotRepaired) {
  Boot boot{SimDisk()};
  EXPECT_FAILS(Apply(*boot.storage).status(), kFailedPrecondition, kLocked);
}

TEST(RepairTest, WithoutAnySaltNothingCanBeRead) {
  SimDisk disk = TwoSegments(true);
  disk.Erase("MARK");
  for (const uint64_t id : {1, 2}) Flip(disk, Name(id), 40);
  SimStorage storage(disk);
  EXPECT_FAILS(PlanRepair(storage).status(), kDataLoss, kDamage);
  EXPECT_FAILS(Apply(storage).status(), kDataLoss, kDamage);
  EXPECT_EQ(storage.disk().Fingerprint(), disk.Fingerprint());
}

}  // namespace
}  // namespace holdfast
