#include <gtest/gtest.h>

#include <string>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"
#include "tools/acks_file.h"

namespace holdfast {
namespace {

class WorkloadTest : public SmallStoreTest {};

// The choices of one thread depend on the seed alone, and so do the ids.
TEST_F(WorkloadTest, OneSeedMakesOneWorkload) {
  Work({{"--seed", "7"}});
  const std::string first = ReadWholeFile(acks_);
  const TempDir other;
  const ToolRun run = RunTool({"workload", other.Sub("store"), "--acks", other.Sub("acks"), "--io",
                               "posix", "--segment-bytes", kSegmentBytes, "--ops", "300",
                               "--pending", "50", "--event-bytes", "200", "--seed", "7"});
  ASSERT_EQ(run.exit_code, kExitOk) << run.err;
  std::map<std::string, int> lines;  // Those of `try` come from another thread than the others.
  std::istringstream ours(first), theirs(ReadWholeFile(other.Sub("acks")));
  for (std::string line; std::getline(ours, line);) ++lines[line];
  for (std::string line; std::getline(theirs, line);) --lines[line];
  for (const auto& [line, count] : lines) EXPECT_EQ(count, 0) << line;
}

TEST_F(WorkloadTest, MixesAllKindsOfOperations) {
  Work({{"--ops", "2000"}, {"--threads", "3"}});
  std::map<AckKind, uint64_t> kinds;
  ASSERT_OK(ReadAcksFile(acks_, [&](const AckLine& line) { ++kinds[line.kind]; }));
  for (const AckKind kind : {AckKind::kTry, AckKind::kPut, AckKind::kAck, AckKind::kDead}) {
    EXPECT_GT(kinds[kind], 20U) << static_cast<int>(kind);
  }
  EXPECT_EQ(kinds[AckKind::kTry], kinds[AckKind::kAck] + kinds[AckKind::kDead]);
}

// Proves: O5, A1
TEST_F(WorkloadTest, ALaterRunGoesOnWhereTheFirstEnded) {
  Work({{"--seed", "1"}});
  Work({{"--seed", "1"}, {"--threads", "4"}});
  Work({{"--seed", "1"}, {"--threads", "2"}, {"--pending", "0"}});
  const ToolRun check = RunTool({"check", store_, "--acks", acks_});
  EXPECT_EQ(check.exit_code, kExitOk) << check.out << check.err;
}

TEST_F(WorkloadTest, TellsWhatItDidAsJson) {
  const ToolRun run = RunTool({"workload", store_, "--ops", "50", "--io", "posix", "--json"});
  ASSERT_EQ(run.exit_code, kExitOk) << run.err;
  ASSERT_EQ(run.lines().size(), 1U);
  ASSERT_OK_AND_ASSIGN(const Json json, Json::Parse(run.lines()[0]));
  EXPECT_EQ(json.Find("ops")->unsigned_integer(), 50U);
  EXPECT_EQ(*json.Find("io")->string(), "posix");
  EXPECT_EQ(*json.Find("durability")->string(), "synced");
}

// Proves: W2
TEST_F(WorkloadTest, DurabilityAndIntervalTakeEffect) {
  const ToolRun run = RunTool({"workload", store_, "--ops", "200", "--io", "posix", "--durability",
                               "written", "--commit-interval", "1", "--json"});
  ASSERT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_NE(run.out.find("\"durability\":\"written\""), std::string::npos) << run.out;
}

TEST_F(WorkloadTest, AnEventOverTheLimitIsRefused) {
  const ToolRun run =
      RunTool({"workload", store_, "--ops", "50", "--io", "posix", "--segment-bytes", kSegmentBytes,
               "--event-bytes", "1000000", "--acks", acks_});
  EXPECT_EQ(run.exit_code, kExitUsageOrIo);
  EXPECT_NE(run.err.find("holdfast workload: "), std::string::npos) << run.err;
  EXPECT_EQ(RunTool({"check", store_, "--acks", acks_}).exit_code, kExitOk);
}

TEST_F(WorkloadTest, OptionsOutOfRangeAreRefused) {
  for (const char* bytes : {"1", "65537", "0"}) {
    const ToolRun run = RunTool({"workload", store_, "--segment-bytes", bytes});
    EXPECT_EQ(run.exit_code, kExitUsageOrIo) << bytes;
    EXPECT_NE(run.err, "");
  }
  EXPECT_FALSE(std::filesystem::exists(store_ + "/MARK"));
}

// Proves: G9
TEST_F(WorkloadTest, ASecondWriterIsToldThatTheStoreIsLocked) {
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  ASSERT_OK(engine->offsets().Write({"t", "c", 0}, 1).Wait());
  const ToolRun run =
      RunTool({"workload", store_, "--io", "posix", "--acks", acks_, "--lock-wait", "0"});
  EXPECT_EQ(run.exit_code, kExitUsageOrIo);
  EXPECT_NE(run.err.find("lock"), std::string::npos) << run.err;
  EXPECT_EQ(run.out, "");
}

TEST_F(WorkloadTest, AStoreOfSomebodyElseIsLeftAlone) {
  {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
    Delivery delivery;
    delivery.id = "theirs";
    ASSERT_OK(engine->deliveries().Put(delivery).Wait());
  }
  const ToolRun run = RunTool({"workload", store_, "--io", "posix"});
  EXPECT_EQ(run.exit_code, kExitUsageOrIo);
  EXPECT_NE(run.err.find("theirs"), std::string::npos) << run.err;
}

TEST_F(WorkloadTest, AnAcksFileThatCannotBeWrittenStopsBeforeTheStoreIsMade) {
  const ToolRun run = RunTool({"workload", store_, "--acks", directory_.Sub("none/acks")});
  EXPECT_EQ(run.exit_code, kExitUsageOrIo);
  EXPECT_FALSE(std::filesystem::exists(store_));
}

}  // namespace
}  // namespace holdfast
