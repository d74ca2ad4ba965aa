#include "tools/value_printer.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

StoredDelivery SomeDelivery() {
  StoredDelivery stored;
  stored.delivery.id = "1-a-7";
  stored.delivery.epoch = 2;
  stored.delivery.topic = "orders";
  stored.delivery.partition = 3;
  stored.delivery.offset = 17;
  stored.delivery.client = "billing";
  stored.delivery.attempt = 4;
  stored.delivery.due = absl::Milliseconds(1500);
  stored.delivery.event = "hello";
  return stored;
}

TEST(ValuePrinterTest, ADeliveryHasItsFieldNames) {
  EXPECT_EQ(
      DeliveryLine(SomeDelivery(), {.json = true, .engine_now = absl::Milliseconds(500)}),
      R"({"id":"1-a-7","epoch":2,"topic":"orders","partition":3,"offset":17,"client":"billing",)"
      R"("attempt":4,"next_attempt_ms":1000,"bytes":5})"
      "\n");
  EXPECT_EQ(DeliveryLine(SomeDelivery(), {.event = true, .engine_now = absl::Seconds(9)}),
            "id=1-a-7 epoch=2 topic=orders partition=3 offset=17 client=billing attempt=4 "
            "next_attempt_ms=0 bytes=5 event=hello\n");
}

TEST(ValuePrinterTest, ADeliveryWithoutOffsetSaysSo) {
  StoredDelivery stored = SomeDelivery();
  stored.delivery.offset.reset();
  EXPECT_NE(DeliveryLine(stored, {.json = true}).find("\"offset\":null"), std::string::npos);
  EXPECT_NE(DeliveryLine(stored, {}).find("offset=-"), std::string::npos);
}

// Proves: O3
TEST(ValuePrinterTest, NamesOfAnyBytesAreTold) {
  StoredOffset offset;
  offset.key = {"\xff", "", 1};
  offset.position = 12;
  EXPECT_EQ(OffsetLine(offset, {.json = true}),
            "{\"topic\":{\"base64\":\"/w==\"},\"client\":\"\",\"partition\":1,\"next\":12}\n");
  const std::string text = OffsetLine(offset, {});
  EXPECT_NE(text.find("base64:/w=="), std::string::npos) << text;
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

TEST(ValuePrinterTest, DeadLettersAndTasksAreOneLineEach) {
  StoredDeadLetter stored;
  stored.dead_letter.delivery_id = "d";
  stored.dead_letter.reason = "two\nlines";
  stored.replays = 2;
  for (const bool json : {false, true}) {
    const std::string line = DeadLetterLine(stored, {.json = json, .event = true});
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  }
  EXPECT_NE(DeadLetterLine(stored, {}).find(" died=1970-01-01T00:00:00+00:00 "), std::string::npos);
  TaskRecord task;
  task.id = "t";
  task.status = TaskStatus::kRunning;
  EXPECT_NE(TaskLine(task, {.json = true}).find("\"status\":\"RUNNING\""), std::string::npos);
}

TEST(ValuePrinterTest, ATextMayHaveALineForEachField) {
  StoredOffset offset;
  offset.key = {"orders", "two words", 1};
  offset.position = 12;
  EXPECT_EQ(
      OffsetLine(offset, {.field_lines = true}),
      "topic         orders\nclient        \"two words\"\npartition     1\nnext          12\n");
  EXPECT_EQ(OffsetLine(offset, {.json = true, .field_lines = true}),
            OffsetLine(offset, {.json = true}));
}

}  // namespace
}  // namespace holdfast
