#include "recovery/replayer.h"

#include <gtest/gtest.h>

#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

struct Replayed {
  Replayed(const SimDisk& disk, ReplayScope scope) : storage(disk) {
    StatusOr<StoreView> read = ReadView(storage);
    CHECK_OK(read.status());
    view = *std::move(read);
    StatusOr<ReplayOutcome> result =
        Replay(storage, view.layout, *view.evidence, machine.machines(), {.scope = scope});
    CHECK_OK(result.status());
    outcome = *result;
  }
  SimStorage storage;
  RecordingMachine machine;
  StoreView view;
  ReplayOutcome outcome;
};

SimDisk WithDoubt() {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1, 2});
  boot.store().Append({2});
  boot.store().Rotate(*boot.storage);
  boot.store().Append({1});
  return boot.Killed();
}

TEST(ReplayerTest, TheScopeSaysWhatIsAppliedNotWhatIsJudged) {
  const std::pair<ReplayScope, std::vector<uint64_t>> kScopes[] = {
      {ReplayScope::kNothing, {}}, {ReplayScope::kProved, UpTo(3)}, {ReplayScope::kAll, UpTo(6)}};
  for (const auto& [scope, applied] : kScopes) {
    const Replayed replayed(WithDoubt(), scope);
    EXPECT_EQ(replayed.machine.lsns(), applied);
    EXPECT_EQ(replayed.outcome.records, 6u);
    EXPECT_EQ(replayed.outcome.last, Lsn(6));
    EXPECT_EQ(replayed.outcome.proved, Lsn(3));
    EXPECT_EQ(replayed.outcome.doubt_first, Lsn(4));
    EXPECT_EQ(replayed.outcome.doubt_records, 3u);
    EXPECT_FALSE(replayed.outcome.clean);
  }
}

TEST(ReplayerTest, TheWindowInDoubtIsReadAgainAlone) {
  Replayed replayed(WithDoubt(), ReplayScope::kProved);
  std::vector<uint64_t> lsns;
  ASSERT_OK(ReadDoubt(replayed.storage, *replayed.view.evidence, replayed.outcome,
                      [&](const BatchView& batch) {
                        lsns.push_back(batch.header.first_lsn.value());
                        return absl::OkStatus();
                      }));
  EXPECT_EQ(lsns, (std::vector<uint64_t>{4, 6}));
}

// unproven_tail: an unclean stop, and something stands behind what is proved.
TEST(ReplayerTest, ATailIsUnprovenIfAnythingStandsBehindTheProof) {
  EXPECT_FALSE(Replayed(TwoSegments(true), ReplayScope::kNothing).outcome.unproven_tail);
  EXPECT_TRUE(Replayed(TwoSegments(false), ReplayScope::kNothing).outcome.unproven_tail);
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1});
  boot.store().WriteMark(/*clean=*/false);  // idle for a moment, then killed
  EXPECT_FALSE(Replayed(boot.Killed(), ReplayScope::kNothing).outcome.unproven_tail);
  SimDisk shortened = boot.Killed();
  shortened.SetSize(Name(1), kFirstGroupOffset + kBlockBytes);
  EXPECT_TRUE(Replayed(shortened, ReplayScope::kNothing).outcome.unproven_tail);
}

}  // namespace
}  // namespace holdfast
