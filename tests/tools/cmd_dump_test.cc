#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

class DumpTest : public SmallStoreTest {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
    Delivery delivery;
    delivery.id = "one";
    delivery.topic = "orders";
    delivery.client = "\xff";
    delivery.event = "the event itself";
    ASSERT_OK(engine->deliveries().Put(delivery).Wait());
    ASSERT_OK(engine->offsets().Write({"orders", "billing", 3}, 4711).Wait());
    ASSERT_OK(engine->deliveries()
                  .Remove({.id = "one", .client = {}, .idempotency_key = {}, .answer = {}})
                  .Wait());
    ASSERT_OK(engine->Close());
  }
  std::vector<Json> Dump(std::vector<std::string> options) {
    options.insert(options.begin(), {"dump", store_, "--json"});
    const ToolRun run = RunTool(options);
    EXPECT_EQ(run.exit_code, kExitOk) << run.err;
    std::vector<Json> records;
    for (const std::string& line : run.lines()) {
      auto record = Json::Parse(line);
      EXPECT_OK(record) << line;
      if (record.ok()) records.push_back(std::move(*record));
    }
    return records;
  }
};

TEST_F(DumpTest, EveryRecordStandsInOrder) {
  const std::vector<Json> records = Dump({});
  ASSERT_EQ(records.size(), 3U);
  const char* const types[] = {"delivery-put", "offset-advance", "delivery-remove"};
  uint64_t last = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(*records[i].Find("type")->string(), types[i]);
    EXPECT_GT(records[i].Find("lsn")->unsigned_integer(), last);
    last = *records[i].Find("lsn")->unsigned_integer();
    EXPECT_NE(records[i].Find("at")->Find("segment"), nullptr);
  }
  EXPECT_EQ(*records[0].Find("client")->Find("base64")->string(), "/w==");
  const ToolRun text = RunTool({"dump", store_});
  EXPECT_EQ(text.lines().size(), 3U);
  EXPECT_EQ(text.err, "");
}

TEST_F(DumpTest, FiltersChoose) {
  const uint64_t first = *Dump({})[0].Find("lsn")->unsigned_integer();
  EXPECT_EQ(Dump({"--from", std::to_string(first + 1)}).size(), 2U);
  EXPECT_EQ(Dump({"--to", std::to_string(first + 1)}).size(), 2U);
  EXPECT_EQ(Dump({"--from", std::to_string(first + 1), "--to", std::to_string(first + 1)}).size(),
            1U);
  EXPECT_EQ(Dump({"--type", "delivery-put"}).size(), 1U);
  EXPECT_EQ(Dump({"--key", "one"}).size(), 2U);
  EXPECT_EQ(Dump({"--key", "orders"}).size(), 2U);
  EXPECT_EQ(Dump({"--key", "billing"}).size(), 1U);
  EXPECT_EQ(Dump({"--key", "base64:/w=="}).size(), 1U);
  EXPECT_EQ(Dump({"--key", "two"}).size(), 0U);
  EXPECT_EQ(Dump({"--type", "offset-advance", "--key", "one"}).size(), 0U);
}

TEST_F(DumpTest, EventsAreShownOnlyWhenAskedFor) {
  EXPECT_EQ(RunTool({"dump", store_}).out.find("the event itself"), std::string::npos);
  EXPECT_NE(RunTool({"dump", store_, "--payload"}).out.find("the event itself"), std::string::npos);
  EXPECT_NE(RunTool({"dump", store_, "--payload", "--json"}).out.find("the event itself"),
            std::string::npos);
}

// Each look at the store appends one record, so the follower has something new to find.
TEST_F(DumpTest, FollowTellsWhatALiveWriterAppends) {
  ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
  std::ostringstream out, err;
  uint64_t looks = 0;
  Console console{.out = out, .err = err, .clock = RealClock(), .stop_requested = [&] {
                    EXPECT_OK(engine->offsets().Write({"new", "follower", 0}, ++looks).Wait());
                    return looks == 4;
                  }};
  EXPECT_EQ(RunHoldfast({"dump", store_, "--follow"}, console), kExitOk) << err.str();
  const std::string text = out.str();
  EXPECT_EQ(std::ranges::count(text, '\n'), 3 + 3) << text;
  EXPECT_NE(text.find("next=3"), std::string::npos) << text;
}

}  // namespace
}  // namespace holdfast
