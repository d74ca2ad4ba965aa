#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class CompactTest : public SmallStoreTest {
 protected:
  // Many dead records and a few that live.
  void MakeStore() { Work({{"--ops", "3000"}, {"--pending", "30"}}); }
  ToolRun Compact(const std::vector<std::string>& extra = {}) {
    std::vector<std::string> arguments = {"compact", store_, "--io", "posix"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return RunTool(arguments);
  }
  ToolRun Check() { return RunTool({"check", store_, "--acks", acks_, "--io", "posix"}); }
  // Without the time that is left to an attempt.
  std::set<std::string> State() {
    std::set<std::string> all;
    for (const char* what : {"offsets", "deliveries", "dead-letters"}) {
      for (const std::string& line : RunTool({"list", store_, what, "--json"}).lines()) {
        all.insert(std::regex_replace(line, std::regex("\"next_attempt_ms\":-?[0-9]+"), ""));
      }
    }
    return all;
  }
};

TEST_F(CompactTest, DeadRecordsGoAndTheStateStays) {
  MakeStore();
  const std::set<std::string> before = State();
  const std::string oldest = Segments().front();
  const ToolRun run = Compact();
  ASSERT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_NE(run.out.find(" segments retired"), std::string::npos) << run.out;
  EXPECT_FALSE(std::filesystem::exists(oldest));
  EXPECT_EQ(State(), before);
  EXPECT_EQ(Check().exit_code, kExitOk);
  EXPECT_EQ(RunTool({"verify", store_}).exit_code, kExitOk);
}

// Proves: G7
TEST_F(CompactTest, ADryRunChangesNothing) {
  MakeStore();
  const auto before = Snapshot(store_);
  const ToolRun run = Compact({"--dry-run"});
  ASSERT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_TRUE(run.out.starts_with("would state ")) << run.out;
  EXPECT_NE(run.out.find("nothing was changed"), std::string::npos) << run.out;
  EXPECT_TRUE(Snapshot(store_) == before);
}

TEST_F(CompactTest, ADryRunForeseesWhatIsDone) {
  MakeStore();
  ASSERT_OK_AND_ASSIGN(const Json foreseen, Json::Parse(Compact({"--dry-run", "--json"}).out));
  ASSERT_OK_AND_ASSIGN(const Json done, Json::Parse(Compact({"--json"}).out));
  EXPECT_EQ(*foreseen.Find("dry_run")->boolean(), true);
  EXPECT_EQ(*done.Find("dry_run")->boolean(), false);
  const auto number = [](const Json& json, const char* name) {
    return json.Find(name)->unsigned_integer().value();
  };
  EXPECT_EQ(number(foreseen, "retired_segments"), 0u);
  EXPECT_GT(number(foreseen, "disk_bytes_before"), 0u);
  EXPECT_GT(number(done, "retired_segments"), 0u);
  EXPECT_LE(number(done, "restated_records"), number(foreseen, "restated_records"));
  EXPECT_LE(number(done, "disk_bytes_after"), number(foreseen, "disk_bytes_after") + 8 * 65'536);
}

TEST_F(CompactTest, AgainAndAgainItDoesNotGrow) {
  MakeStore();
  ASSERT_EQ(Compact().exit_code, kExitOk);
  ASSERT_OK_AND_ASSIGN(const Json first, Json::Parse(Compact({"--json"}).out));
  ASSERT_OK_AND_ASSIGN(const Json second, Json::Parse(Compact({"--json"}).out));
  EXPECT_LE(second.Find("disk_bytes_after")->unsigned_integer().value(),
            first.Find("disk_bytes_after")->unsigned_integer().value() + 2 * 65'536);
  EXPECT_EQ(Check().exit_code, kExitOk);
}

// Proves: G9
TEST_F(CompactTest, AStoreInUseIsLockedButMayBeLookedAt) {
  MakeStore();
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  const ToolRun run = Compact({"--lock-wait", "0"});
  EXPECT_EQ(run.exit_code, kExitUsageOrIo);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("lock"), std::string::npos) << run.err;
  EXPECT_EQ(Compact({"--dry-run"}).exit_code, kExitOk);
}

TEST_F(CompactTest, ADamagedStoreIsAFaultAndKeepsItsBytes) {
  MakeStore();
  for (const auto& file : std::filesystem::directory_iterator(store_ + "/checkpoint")) {
    std::filesystem::remove(file.path());
  }
  FlipByte(Segments()[1], kInFirstRecord);
  const auto before = Snapshot(store_);
  for (const ToolRun& run : {Compact(), Compact({"--dry-run"})}) {
    EXPECT_EQ(run.exit_code, kExitFault) << run.err;
    EXPECT_EQ(run.out, "");
  }
  EXPECT_TRUE(Snapshot(store_) == before);
}

}  // namespace
}  // namespace holdfast
