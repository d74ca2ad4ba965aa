#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class RepairTest : public SmallStoreTest {};

TEST_F(RepairTest, AHealthyStoreNeedsNothing) {
  Work();
  const auto before = Snapshot(store_);
  const ToolRun run = RunTool({"repair", store_});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(run.out, "nothing to repair\n");
  EXPECT_EQ(Snapshot(store_), before);
}

// Proves: G6
TEST_F(RepairTest, ThePlanChangesNothingAndApplyingItDeletesNothing) {
  Work({{"--ops", "800"}});
  FlipByte(Segments()[1], kInFirstRecord);
  const auto damaged = Snapshot(store_);
  const ToolRun plan = RunTool({"repair", store_});
  EXPECT_EQ(plan.exit_code, kExitOk) << plan.err;
  EXPECT_NE(plan.out.find("would do:"), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find("--apply"), std::string::npos) << plan.out;
  EXPECT_EQ(Snapshot(store_), damaged);

  const ToolRun json = RunTool({"repair", store_, "--json"});
  ASSERT_OK_AND_ASSIGN(const Json planned, Json::Parse(json.out));
  EXPECT_EQ(*planned.Find("applied")->boolean(), false);
  EXPECT_FALSE(planned.Find("steps")->array()->empty());

  const std::string bytes_of_damaged = damaged.at(Segments()[1]);
  const ToolRun applied = RunTool({"repair", store_, "--apply"});
  EXPECT_EQ(applied.exit_code, kExitOk) << applied.err;
  EXPECT_NE(applied.out.find("done:"), std::string::npos) << applied.out;
  bool kept = false;
  for (const auto& [path, bytes] : Snapshot(store_)) kept = kept || bytes == bytes_of_damaged;
  EXPECT_TRUE(kept) << "the damaged file was set aside with all its bytes";

  EXPECT_EQ(RunTool({"repair", store_}).out, "nothing to repair\n");
  EXPECT_NE(RunTool({"verify", store_}).exit_code, kExitFault);
  EXPECT_OK(OpenForWriting());
}

TEST_F(RepairTest, AStoreInUseIsLocked) {
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  ASSERT_OK(engine->offsets().Write({"t", "c", 0}, 1).Wait());
  EXPECT_EQ(RunTool({"repair", store_}).exit_code, kExitOk) << "looking is always allowed";
  const ToolRun apply = RunTool({"repair", store_, "--apply", "--lock-wait", "0"});
  EXPECT_EQ(apply.exit_code, kExitUsageOrIo);
  EXPECT_NE(apply.err.find("lock"), std::string::npos) << apply.err;
}

}  // namespace
}  // namespace holdfast
