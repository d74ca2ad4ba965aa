#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "journal/io/open_storage.h"
#include "journal/mark.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class InspectTest : public SmallStoreTest {};

TEST_F(InspectTest, SaysHowTheStoreWasLeft) {
  Work();
  const auto before = Snapshot(store_);
  const ToolRun run = RunTool({"inspect", store_});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_EQ(run.err, "");
  for (const char* word :
       {"last stop     clean", "epoch", "last LSN", "durable LSN", "durability    synced",
        "I/O backend", "MARK", "segment", "live", "client", "unacknowledged"}) {
    EXPECT_NE(run.out.find(word), std::string::npos) << word << "\n" << run.out;
  }
  EXPECT_EQ(Snapshot(store_), before) << "asking which backend a writer would get makes nothing";
}

TEST_F(InspectTest, JsonHasOneObjectPerLine) {
  Work();
  const ToolRun run = RunTool({"inspect", store_, "--json"});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  std::map<std::string, uint64_t> kinds;
  uint64_t unacknowledged = 0, deliveries = 0;
  for (const std::string& line : run.lines()) {
    ASSERT_OK_AND_ASSIGN(const Json json, Json::Parse(line));
    const std::string& kind = *json.Find("kind")->string();
    ++kinds[kind];
    if (kind == "store") deliveries = *json.Find("deliveries")->unsigned_integer();
    if (kind == "client") unacknowledged += *json.Find("unacknowledged")->unsigned_integer();
  }
  EXPECT_EQ(kinds["store"], 1U);
  EXPECT_EQ(kinds["mark"], 1U);
  EXPECT_GE(kinds["segment"], 2U);
  EXPECT_EQ(unacknowledged, deliveries);
}

TEST_F(InspectTest, TheSaltIsNeverShown) {
  Work();
  ASSERT_OK_AND_ASSIGN(const auto storage,
                       OpenStorage(store_, {.create = false, .read_only = true}));
  ASSERT_OK_AND_ASSIGN(const MarkView mark, ReadMark(*storage));
  const uint64_t salt = mark.mark->salt;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"inspect", store_},
                                             {"inspect", store_, "--json"},
                                             {"verify", store_},
                                             {"dump", store_}}) {
    const std::string out = RunTool(arguments).out;
    EXPECT_EQ(out.find(fmt::format("{}", salt)), std::string::npos);
    EXPECT_EQ(out.find(fmt::format("{:x}", salt)), std::string::npos);
  }
}

// Proves: G5
TEST_F(InspectTest, ADamagedStoreIsStillDescribed) {
  Work();
  FlipByte(Segments()[0], kInFirstRecord);
  const ToolRun run = RunTool({"inspect", store_});
  EXPECT_EQ(run.exit_code, kExitFault);
  EXPECT_NE(run.out.find("verdict       damage"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("segment"), std::string::npos) << run.out;
  EXPECT_NE(run.err, "");
}

TEST_F(InspectTest, ALiveStoreIsNotCalledClean) {
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  ASSERT_OK(engine->offsets().Write({"t", "c", 0}, 5).Wait());
  const ToolRun run = RunTool({"inspect", store_});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_NE(run.out.find("unclean"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("1 offsets"), std::string::npos) << run.out;
}

TEST_F(InspectTest, WhatIsSharedIsCounted) {
  {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
    ASSERT_OK(engine->subscriptions().Put("topic", "c", {.instance = "i"}));
    ASSERT_OK(engine->sessions().RegisterAgent({.id = "a"}));
    ASSERT_OK(engine->sessions().OpenSession({.id = "s"}));
    ASSERT_OK(engine->tasks().Create({.id = "t1"}));
    ASSERT_OK(engine->tasks().Create({.id = "t2"}));
    ASSERT_OK(engine->meta().Put("somebody's", "v", {}));
    ASSERT_OK(engine->Close());
  }
  const ToolRun run = RunTool({"inspect", store_});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_NE(run.out.find("1 subscriptions, 1 agents, 1 sessions, 2 tasks; "), std::string::npos)
      << run.out;
  const ToolRun json = RunTool({"inspect", store_, "--json"});
  EXPECT_NE(json.out.find("\"tasks\":2"), std::string::npos) << json.out;
}

}  // namespace
}  // namespace holdfast
