#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class VerifyTest : public SmallStoreTest {};

TEST_F(VerifyTest, ACleanStoreIsClean) {
  Work();
  const auto before = Snapshot(store_);
  const ToolRun run = RunTool({"verify", store_});
  EXPECT_EQ(run.exit_code, kExitOk) << run.out << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.lines().back(), "clean");
  const ToolRun json = RunTool({"verify", store_, "--json"});
  ASSERT_EQ(json.lines().size(), 1U) << json.out;
  ASSERT_OK_AND_ASSIGN(const Json verdict, Json::Parse(json.lines()[0]));
  EXPECT_EQ(*verdict.Find("verdict")->string(), "clean");
  EXPECT_GT(verdict.Find("records")->unsigned_integer(), 100U);
  EXPECT_EQ(Snapshot(store_), before);
}

// Proves: G5
TEST_F(VerifyTest, DamageIsNamedByFileAndByte) {
  Work();
  const std::vector<std::string> segments = Segments();
  ASSERT_GE(segments.size(), 2U);
  FlipByte(segments[0], kInFirstRecord);
  const auto before = Snapshot(store_);
  const ToolRun run = RunTool({"verify", store_});
  EXPECT_EQ(run.exit_code, kExitFault) << run.out;
  EXPECT_NE(run.out.find("damage: journal/"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("from byte"), std::string::npos) << run.out;
  const ToolRun json = RunTool({"verify", store_, "--json"});
  EXPECT_EQ(json.exit_code, kExitFault);
  for (const std::string& line : json.lines()) ASSERT_OK(Json::Parse(line)) << line;
  ASSERT_OK_AND_ASSIGN(const Json damage, Json::Parse(json.lines().front()));
  EXPECT_NE(damage.Find("damage"), nullptr) << json.out;
  EXPECT_EQ(Snapshot(store_), before);
}

TEST_F(VerifyTest, EveryOtherCommandToldOfDamageSaysSoToo) {
  Work();
  // From a checkpoint of the clean stop they would not read what is damaged.
  std::filesystem::remove_all(store_ + "/checkpoint");
  FlipByte(Segments()[0], kInFirstRecord);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"dump", store_},
                                             {"inspect", store_},
                                             {"list", store_, "deliveries"},
                                             {"get", store_, "offset", "orders", "billing", "0"},
                                             {"check", store_, "--acks", acks_, "--io", "posix"},
                                             {"workload", store_, "--io", "posix"}}) {
    const ToolRun run = RunTool(arguments);
    EXPECT_EQ(run.exit_code, kExitFault) << arguments[0] << run.out << run.err;
    EXPECT_NE(run.err, "") << arguments[0];
  }
}

TEST_F(VerifyTest, ATruncatedSegmentIsDamage) {
  Work();
  std::filesystem::resize_file(Segments()[0], 12288);
  const ToolRun run = RunTool({"verify", store_});
  EXPECT_EQ(run.exit_code, kExitFault) << run.out;
}

TEST_F(VerifyTest, AMissingSegmentIsDamage) {
  Work({{"--ops", "800"}});
  const std::vector<std::string> segments = Segments();
  ASSERT_GE(segments.size(), 3U);
  std::filesystem::remove(segments[1]);
  EXPECT_EQ(RunTool({"verify", store_}).exit_code, kExitFault);
}

}  // namespace
}  // namespace holdfast
