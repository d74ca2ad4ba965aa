// What the demo refuses; its runs with real kills are in tests/kill.
#include <gtest/gtest.h>

#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class DemoTest : public SmallStoreTest {};

TEST_F(DemoTest, BadEventsAreNamedBeforeAnythingIsMade) {
  const std::string events = directory_.Sub("events.jsonl");
  const ToolRun none = RunTool({"demo", "--events", events, "--dir", store_});
  EXPECT_EQ(none.exit_code, kExitUsageOrIo);
  WriteWholeFile(events, "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"s\"}\n");
  const ToolRun bad = RunTool({"demo", "--events", events, "--dir", store_});
  EXPECT_EQ(bad.exit_code, kExitUsageOrIo);
  EXPECT_NE(bad.err.find("line 1"), std::string::npos) << bad.err;
  EXPECT_NE(bad.err.find("\"type\" is missing"), std::string::npos) << bad.err;
  EXPECT_FALSE(std::filesystem::exists(store_));
}

TEST_F(DemoTest, ADirectoryWithSomethingInItIsLeftAlone) {
  Work();
  const auto before = Snapshot(store_);
  const ToolRun run = RunTool({"demo", "--dir", store_});
  EXPECT_EQ(run.exit_code, kExitUsageOrIo);
  EXPECT_NE(run.err.find("not empty"), std::string::npos) << run.err;
  EXPECT_EQ(Snapshot(store_), before);
}

}  // namespace
}  // namespace holdfast
