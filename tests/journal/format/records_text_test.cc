#include "journal/format/records_text.h"

#include <gtest/gtest.h>

#include <string>

#include "journal/format/compression.h"
#include "tests/support/random_records.h"

namespace holdfast {
namespace {

RawRecord Raw(const AnyRecord& record, std::string& bytes) {
  EncodeAnyRecord(record, bytes);
  ByteView rest = AsBytes(bytes);
  return *TakeRecord(rest);
}

std::string Text(const AnyRecord& record, RecordTextOptions options = {}) {
  std::string bytes;
  return RecordText(Raw(record, bytes), options);
}

std::string JsonText(const RawRecord& raw, RecordTextOptions options = {}) {
  std::string out;
  JsonWriter writer(out);
  writer.BeginObject();
  RecordJson(raw, writer, options);
  writer.EndObject();
  return out;
}
std::string JsonText(const AnyRecord& record, RecordTextOptions options = {}) {
  std::string bytes;
  return JsonText(Raw(record, bytes), options);
}

TEST(RecordsTextTest, NamesEveryFieldInOrder) {
  EXPECT_EQ(Text(OffsetAdvance{.topic = "orders", .client = "a b", .partition = 1, .next = 300}),
            "offset-advance topic=orders client=\"a b\" partition=1 incarnation=0 next=300");
  EXPECT_EQ(Text(DeliveryRemove{.id = "", .epoch = 2, .client = "-", .answer = "\xff"}),
            "delivery-remove id=\"\" epoch=2 client=\"-\" reason=0 idempotency_key=- "
            "answer=base64:/w==");
}

TEST(RecordsTextTest, JsonHasEveryField) {
  EXPECT_EQ(JsonText(DeliveryRemove{.id = "a\"b", .epoch = 2, .client = "\xff", .answer = ""}),
            R"({"type":"delivery-remove","id":"a\"b","epoch":2,"client":{"base64":"/w=="},)"
            R"("reason":0,"idempotency_key":null,"answer":""})");
  EXPECT_EQ(JsonText(DeliveryReschedule{.id = "x", .epoch = 1, .attempt = 2, .due_ns = -3}),
            R"({"type":"delivery-reschedule","id":"x","epoch":1,"attempt":2,"due_ns":-3})");
}

TEST(RecordsTextTest, AnEventIsShownOnRequestOnly) {
  const std::string event(10'000, 'e');
  std::string scratch;
  DeliveryPut put{.id = "x", .event = PackEvent(event, scratch)};
  ASSERT_TRUE(put.event.compressed);
  EXPECT_EQ(Text(put).find("eee"), std::string::npos);
  EXPECT_NE(Text(put).find(" event=10000 stored="), std::string::npos);
  EXPECT_NE(Text(put, {.event = true}).find(event), std::string::npos);
  EXPECT_EQ(JsonText(put).find("eee"), std::string::npos);
  EXPECT_NE(JsonText(put, {.event = true}).find(event), std::string::npos);
  put.event.raw_bytes += 1;
  EXPECT_TRUE(Text(put, {.event = true}).ends_with(" payload=damaged"));
  EXPECT_NE(JsonText(put, {.event = true}).find("\"damaged\":true"), std::string::npos);
}

TEST(RecordsTextTest, EveryRecordGivesOneLineAndValidJson) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomRecords records(seed);
    for (size_t type = 0; type < RandomRecords::kTypes; ++type) {
      const AnyRecord record = records.OfType(type);
      for (const bool event : {false, true}) {
        EXPECT_EQ(Text(record, {.event = event}).find('\n'), std::string::npos);
        const StatusOr<Json> json = Json::Parse(JsonText(record, {.event = event}));
        ASSERT_TRUE(json.ok()) << json.status();
        ASSERT_NE(json->Find("type"), nullptr);
      }
    }
  }
}

TEST(RecordsTextTest, WhatIsUnknownOrDamagedStillHasAForm) {
  const RawRecord unknown{{.type = 200, .version = 3, .flags = 1, .length = 3}, AsBytes("abc")};
  EXPECT_EQ(RecordText(unknown), "type-200 (unknown) version=3 flags=1 bytes=3");
  EXPECT_EQ(JsonText(unknown),
            R"({"type":"type-200","unknown":true,"version":3,"flags":1,"bytes":3})");
  const RawRecord damaged{{.type = 10, .version = 1, .flags = 0, .length = 3}, AsBytes("abc")};
  EXPECT_EQ(RecordText(damaged), "dead-letter-purge (damaged) version=1 flags=0 bytes=3");
  EXPECT_EQ(JsonText(damaged),
            R"({"type":"dead-letter-purge","damaged":true,"version":1,"flags":0,"bytes":3})");
}

TEST(NameTextTest, TellsEveryNameApart) {
  EXPECT_EQ(NameText("plain/a-1.b"), "plain/a-1.b");
  EXPECT_EQ(NameText(""), "\"\"");
  EXPECT_EQ(NameText("-"), "\"-\"");
  EXPECT_EQ(NameText("a b"), "\"a b\"");
  EXPECT_EQ(NameText("a=b"), "\"a=b\"");
  EXPECT_EQ(NameText(std::string_view("\0", 1)), "\"\\u0000\"");
  EXPECT_EQ(NameText("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(NameText("\xff"), "base64:/w==");
  EXPECT_EQ(NameText("base64:/w=="), "\"base64:/w==\"");
}

}  // namespace
}  // namespace holdfast
