#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class ListTest : public SmallStoreTest {};

TEST_F(ListTest, ListsWhatTheEngineHolds) {
  Work({{"--ops", "600"}});
  uint64_t deliveries = 0, offsets = 0, dead_letters = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
    deliveries = engine->deliveries().Count();
    offsets = engine->offsets().ReadAll().size();
    dead_letters = engine->dead_letters().Count();
  }
  ASSERT_GT(deliveries, 0U);
  ASSERT_GT(offsets, 0U);
  ASSERT_GT(dead_letters, 0U);
  const auto before = Snapshot(store_);
  const std::pair<const char*, uint64_t> kinds[] = {{"deliveries", deliveries},
                                                    {"offsets", offsets},
                                                    {"dead-letters", dead_letters},
                                                    {"tasks", 0}};
  for (const auto& [kind, count] : kinds) {
    const ToolRun text = RunTool({"list", store_, kind});
    EXPECT_EQ(text.exit_code, kExitOk) << text.err;
    EXPECT_EQ(text.err, "");
    EXPECT_EQ(text.lines().size(), count) << kind;
    const ToolRun json = RunTool({"list", store_, kind, "--json"});
    EXPECT_EQ(json.lines().size(), count) << kind;
    for (const std::string& line : json.lines()) EXPECT_OK(Json::Parse(line)) << line;
  }
  EXPECT_EQ(Snapshot(store_), before);
}

TEST_F(ListTest, WorksBesideALiveWriter) {
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  ASSERT_OK(engine->offsets().Write({"t", "c", 0}, 5).Wait());
  const ToolRun run = RunTool({"list", store_, "offsets"});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(run.out, "topic=t client=c partition=0 next=5\n");
}

}  // namespace
}  // namespace holdfast
