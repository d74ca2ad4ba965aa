#include <gtest/gtest.h>

#include "journal/base/json.h"
#include "tests/tools/small_store.h"

namespace holdfast {
namespace {

const std::string& OddName() {
  static const auto& name = *new std::string("a/b#\0\xff", 6);
  return name;
}

class GetTest : public SmallStoreTest {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto engine, OpenForWriting());
    Delivery delivery;
    delivery.id = "one";
    delivery.topic = OddName();
    delivery.offset = 7;
    delivery.event = std::string("binary\0event\n", 13);
    ASSERT_OK(engine->deliveries().Put(delivery).Wait());
    ASSERT_OK(engine->offsets().Write({"orders", "billing", 3}, 4711).Wait());
    ASSERT_OK(engine->offsets().Write({OddName(), "", 0}, 1).Wait());
    DeadLetter dead_letter;
    dead_letter.delivery_id = "dead";
    dead_letter.reason = "no reason";
    dead_letter.event = "buried";
    ASSERT_OK(engine->dead_letters().Record(dead_letter).Wait());
    ASSERT_OK(engine->Close());
  }
};

TEST_F(GetTest, FindsEachKindOfValue) {
  EXPECT_EQ(RunTool({"get", store_, "offset", "orders", "billing", "3"}).out,
            "topic=orders client=billing partition=3 next=4711\n");
  EXPECT_EQ(RunTool({"get", store_, "offset", "orders", "billing", "3", "--json"}).out,
            "{\"topic\":\"orders\",\"client\":\"billing\",\"partition\":3,\"next\":4711}\n");
  const ToolRun delivery = RunTool({"get", store_, "delivery", "one", "--json"});
  ASSERT_OK_AND_ASSIGN(const Json json, Json::Parse(delivery.out));
  EXPECT_EQ(json.Find("bytes")->unsigned_integer(), 13U);
  EXPECT_EQ(json.Find("offset")->unsigned_integer(), 7U);
  EXPECT_NE(RunTool({"get", store_, "dead-letter", "dead"}).out.find("no reason"),
            std::string::npos);
}

// Proves: O3
TEST_F(GetTest, NamesOfAnyBytesAreFound) {
  const ToolRun run =
      RunTool({"get", store_, "offset", "base64:" + Base64(OddName()), "", "0", "--json"});
  EXPECT_EQ(run.exit_code, kExitOk) << run.err;
  EXPECT_NE(run.out.find("\"base64\""), std::string::npos) << run.out;
}

// Proves: D1
TEST_F(GetTest, TheEventComesByteForByte) {
  EXPECT_EQ(RunTool({"get", store_, "delivery", "one", "--payload"}).out,
            std::string("binary\0event\n", 13));
  EXPECT_EQ(RunTool({"get", store_, "dead-letter", "dead", "--payload"}).out, "buried");
  EXPECT_NE(RunTool({"get", store_, "dead-letter", "dead", "--payload", "--json"})
                .out.find("\"event\":\"buried\""),
            std::string::npos);
}

// Proves: O2
TEST_F(GetTest, WhatIsNotThereIsNotFound) {
  for (const std::vector<std::string>& what : std::vector<std::vector<std::string>>{
           {"offset", "orders", "billing", "4"}, {"delivery", "dead"}, {"dead-letter", "one"}}) {
    std::vector<std::string> arguments = {"get", store_};
    arguments.insert(arguments.end(), what.begin(), what.end());
    const ToolRun run = RunTool(arguments);
    EXPECT_EQ(run.exit_code, kExitNotFound) << run.out << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err, "");
  }
}

}  // namespace
}  // namespace holdfast
