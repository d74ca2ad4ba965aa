#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class CheckpointTest : public SmallStoreTest {
 protected:
  ToolRun Checkpoint(const std::vector<std::string>& extra = {}) {
    std::vector<std::string> arguments = {"checkpoint", store_, "--io", "posix"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return RunTool(arguments);
  }
  size_t Files() const {
    const std::filesystem::path folder = store_ + "/checkpoint";
    if (!std::filesystem::exists(folder)) return 0;
    const std::filesystem::directory_iterator files(folder);
    return static_cast<size_t>(std::count_if(begin(files), end(files), [](const auto& file) {
      return file.path().extension() == ".ckp";
    }));
  }
};

// A workload so small leaves none by itself.
TEST_F(CheckpointTest, TheNextStartReadsItInsteadOfTheJournal) {
  Work({{"--ops", "40"}, {"--pending", "20"}, {"--segment-bytes", "1048576"}});
  ASSERT_EQ(Files(), 0u);
  const ToolRun run = Checkpoint();
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(run.out.starts_with("checkpoint of LSN ")) << run.out;
  EXPECT_EQ(run.lines().size(), 1u) << run.out;
  EXPECT_EQ(Files(), 1u);

  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  EXPECT_GT(engine->recovery().checkpoint_lsn, 0u);
  EXPECT_GT(engine->recovery().checkpoint_entries, 0u);
  EXPECT_EQ(engine->recovery().records, 0u);
}

TEST_F(CheckpointTest, NoMoreThanTwoAreKeptAndVerifyFindsThemGood) {
  for (int round = 0; round < 4; ++round) {
    Work({{"--seed", std::to_string(round)}});
    EXPECT_EQ(Checkpoint().exit_code, kExitOk);
  }
  EXPECT_EQ(Files(), 2u);
  EXPECT_EQ(RunTool({"verify", store_}).exit_code, kExitOk);
  EXPECT_NE(RunTool({"inspect", store_}).out.find("\ncheckpoint    "), std::string::npos);
}

TEST_F(CheckpointTest, TheAnswerIsAJsonObject) {
  Work();
  const ToolRun run = Checkpoint({"--json"});
  ASSERT_EQ(run.exit_code, kExitOk) << run.err;
  ASSERT_EQ(run.lines().size(), 1u) << run.out;
  ASSERT_OK_AND_ASSIGN(const Json answer, Json::Parse(run.out));
  const auto number = [&](const char* name) { return answer.Find(name)->unsigned_integer(); };
  EXPECT_GT(number("lsn"), 0u);
  EXPECT_GT(number("bytes"), 0u);
  EXPECT_GT(number("live_records"), 0u);
}

// Proves: G9
TEST_F(CheckpointTest, AStoreInUseIsLocked) {
  Work();
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  const ToolRun run = Checkpoint({"--lock-wait", "0"});
  EXPECT_EQ(run.exit_code, kExitUsageOrIo);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("lock"), std::string::npos) << run.err;
}

TEST_F(CheckpointTest, ADamagedStoreIsAFaultAndKeepsItsBytes) {
  Work({{"--ops", "800"}});
  for (const auto& file : std::filesystem::directory_iterator(store_ + "/checkpoint")) {
    std::filesystem::remove(file.path());
  }
  FlipByte(Segments()[1], kInFirstRecord);
  const auto before = Snapshot(store_);
  const ToolRun run = Checkpoint();
  EXPECT_EQ(run.exit_code, kExitFault) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(Snapshot(store_) == before);
}

TEST_F(CheckpointTest, WrongUseIsRefused) {
  EXPECT_EQ(RunTool({"checkpoint"}).exit_code, kExitUsageOrIo);
  EXPECT_EQ(RunTool({"checkpoint", store_, "--dry-run"}).exit_code, kExitUsageOrIo);
  EXPECT_FALSE(std::filesystem::exists(store_));
}

}  // namespace
}  // namespace holdfast
