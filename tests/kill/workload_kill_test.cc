// The real thing: a workload is killed with SIGKILL at a moment that its own progress chooses, over
// and over on one store; after each death the store must hold all that the workload was told.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/kill/tool_process.h"
#include "tests/support/seeds.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/tool_run.h"

namespace holdfast {
namespace {

struct Setting {
  const char* name;
  const char* io;
  const char* durability;
  const char* commit_interval_ms;
  const char* threads;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

class WorkloadKillTest : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    WriteWholeFile(acks_, "");
    if (std::string(GetParam().io) != "uring") return;
    const ToolOutput probe =
        RunToolProcess({"workload", directory_.Sub("probe"), "--ops", "1", "--io", "uring"});
    if (probe.end.exit_code != kExitOk) GTEST_SKIP() << "no io_uring here: " << probe.text;
  }

  std::unique_ptr<ToolProcess> StartWorkload(uint64_t seed) {
    return std::make_unique<ToolProcess>(std::vector<std::string>{"workload",
                                                                  store_,
                                                                  "--acks",
                                                                  acks_,
                                                                  "--seed",
                                                                  std::to_string(seed),
                                                                  "--ops",
                                                                  "1000000000",
                                                                  "--threads",
                                                                  GetParam().threads,
                                                                  "--io",
                                                                  GetParam().io,
                                                                  "--durability",
                                                                  GetParam().durability,
                                                                  "--commit-interval",
                                                                  GetParam().commit_interval_ms,
                                                                  "--segment-bytes",
                                                                  "131072",
                                                                  "--event-bytes",
                                                                  "700",
                                                                  "--pending",
                                                                  "150"},
                                         output_);
  }
  // `holdfast check` finds nothing.
  void ExpectAllThere() {
    const ToolOutput check =
        RunToolProcess({"check", store_, "--acks", acks_, "--io", GetParam().io});
    ASSERT_EQ(check.end.exit_code, kExitOk)
        << check.text << "\nworkload said: " << ReadWholeFile(output_);
  }
  // Seen before anything repairs it by opening it.
  void ExpectNoDamage() {
    const ToolOutput verify = RunToolProcess({"verify", store_});
    ASSERT_TRUE(verify.end.exit_code == kExitOk || verify.end.exit_code == kExitTornTail)
        << verify.text;
  }
  // Kills the process once its acks file has grown by a random amount.
  void KillInTheMiddle(ToolProcess& process, SeededRng& rng, uint64_t bytes_max) {
    const uint64_t wanted = FileBytes(acks_) + 1 + rng.Below(bytes_max);
    ASSERT_TRUE(process.AwaitGrowth(acks_, wanted))
        << "it ended by itself: " << ReadWholeFile(output_);
    process.Kill();
  }

  const TempDir directory_;
  const std::string store_ = directory_.Sub("store");
  const std::string acks_ = directory_.Sub("acks");
  const std::string output_ = directory_.Sub("output");
};

constexpr uint64_t kGrowthMax = 40'000;  // bytes of the acks file: about a thousand operations

// Proves: G1, G2, G7, O1, O5, D2, A1, A8
TEST_P(WorkloadKillTest, NothingToldIsLostAndNothingEndedComesBack) {
  const uint64_t rounds = NumberFromEnvironment("HOLDFAST_KILL_ROUNDS", 12);
  for (const uint64_t seed : Seeds(1)) {
    SCOPED_TRACE(testing::Message() << "HOLDFAST_SEED_FIRST=" << seed);
    SeededRng rng(seed);
    for (uint64_t round = 0; round < rounds; ++round) {
      SCOPED_TRACE(testing::Message() << "round " << round);
      const auto workload = StartWorkload(rng.Next() & 0xffffff);
      ASSERT_NO_FATAL_FAILURE(KillInTheMiddle(*workload, rng, kGrowthMax));
      EXPECT_EQ(workload->Wait().signal, SIGKILL);
      ASSERT_NO_FATAL_FAILURE(ExpectNoDamage());
      if (rng.OneIn(2)) {
        ASSERT_NO_FATAL_FAILURE(ExpectAllThere());
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAllThere());
    if (rounds < 3) continue;
    EXPECT_FALSE(std::filesystem::exists(store_ + "/journal/0000000000000001.seg"))
        << "no segment was ever retired";
    EXPECT_FALSE(std::filesystem::is_empty(store_ + "/checkpoint"));
  }
}

// The successor starts while the predecessor is dying: its requests may still be in flight, and
// land late. The locks on the descriptors make the successor wait for them. Proves: G9, G7
TEST_P(WorkloadKillTest, ASuccessorThatDoesNotWaitForTheDeathIsRight) {
  const uint64_t seed = NumberFromEnvironment("HOLDFAST_SEED_FIRST", 1);
  SCOPED_TRACE(testing::Message() << "HOLDFAST_SEED_FIRST=" << seed);
  SeededRng rng(seed);
  auto running = StartWorkload(1);
  for (uint64_t round = 0; round < 6; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    ASSERT_NO_FATAL_FAILURE(KillInTheMiddle(*running, rng, kGrowthMax));
    auto successor = StartWorkload(round + 2);
    EXPECT_EQ(running->Wait().signal, SIGKILL);
    running = std::move(successor);
  }
  ASSERT_NO_FATAL_FAILURE(KillInTheMiddle(*running, rng, kGrowthMax));
  running->Wait();
  ExpectAllThere();
}

// Recovery is killed again and again, before it has touched a file or after it has touched some.
// Proves: G7
TEST_P(WorkloadKillTest, AKillDuringRecoveryIsRecovered) {
  const uint64_t seed = NumberFromEnvironment("HOLDFAST_SEED_FIRST", 1);
  SCOPED_TRACE(testing::Message() << "HOLDFAST_SEED_FIRST=" << seed);
  SeededRng rng(seed);
  for (uint64_t round = 0; round < 3; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    const auto workload = StartWorkload(round);
    ASSERT_NO_FATAL_FAILURE(KillInTheMiddle(*workload, rng, kGrowthMax));
    workload->Wait();
    for (uint64_t death = 0; death < 5; ++death) {
      FolderWatch watch({store_, store_ + "/journal"});
      ToolProcess recovery({"check", store_, "--acks", acks_, "--io", GetParam().io}, output_);
      recovery.AwaitEvents(watch, rng.Below(60));
      recovery.Kill();
      recovery.Wait();
      ASSERT_NO_FATAL_FAILURE(ExpectNoDamage());
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAllThere());
  }
}

constexpr Setting kSettings[] = {
    {"PosixSynced", "posix", "synced", "0", "2"},
    {"PosixWrittenBatched", "posix", "written", "5", "3"},
    {"UringSynced", "uring", "synced", "0", "4"},
    {"UringSyncedBatched", "uring", "synced", "5", "3"},
    {"UringWritten", "uring", "written", "0", "2"},
};
INSTANTIATE_TEST_SUITE_P(Settings, WorkloadKillTest, testing::ValuesIn(kSettings),
                         [](const auto& info) { return info.param.name; });

// Proves: G9
TEST(TwoWritersTest, TheSecondIsToldThatTheStoreIsLocked) {
  const TempDir directory;
  const std::string store = directory.Sub("store");
  const std::string acks = directory.Sub("acks");
  WriteWholeFile(acks, "");
  ToolProcess first(
      {"workload", store, "--ops", "1000000000", "--acks", acks, "--segment-bytes", "131072"},
      directory.Sub("output"));
  ASSERT_TRUE(first.AwaitGrowth(acks, 100)) << ReadWholeFile(directory.Sub("output"));
  const ToolOutput second = RunToolProcess({"check", store, "--acks", acks, "--lock-wait", "50"});
  EXPECT_EQ(second.end.exit_code, kExitUsageOrIo) << second.text;
  EXPECT_NE(second.text.find("lock"), std::string::npos) << second.text;
  // Readers are welcome beside it, and it goes on.
  EXPECT_EQ(RunToolProcess({"list", store, "offsets"}).end.exit_code, kExitOk);
  EXPECT_NE(RunToolProcess({"verify", store}).end.exit_code, kExitFault);
  EXPECT_TRUE(first.AwaitGrowth(acks, FileBytes(acks) + 1000));
  first.Kill();
  EXPECT_EQ(first.Wait().signal, SIGKILL);
  EXPECT_EQ(RunToolProcess({"check", store, "--acks", acks}).end.exit_code, kExitOk);
}

}  // namespace
}  // namespace holdfast
