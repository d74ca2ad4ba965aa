#include "journal/format/records.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "journal/base/checksum.h"
#include "journal/format/codec.h"
#include "tests/support/random_records.h"

namespace holdfast {
namespace {

std::string Encoded(const AnyRecord& record) {
  std::string bytes;
  EncodeAnyRecord(record, bytes);
  return bytes;
}

StatusOr<AnyRecord> Decoded(std::string_view bytes) {
  ByteView rest = AsBytes(bytes);
  StatusOr<RawRecord> raw = TakeRecord(rest);
  if (!raw.ok()) return raw.status();
  EXPECT_TRUE(rest.empty());
  return DecodeRecord(*raw);
}

// A record with a header of the caller's making around `fields`.
std::string Framed(uint8_t type, uint8_t version, uint16_t flags, std::string_view fields) {
  std::string bytes;
  Encoder out(bytes);
  out.Fixed(type);
  out.Fixed(version);
  out.Fixed(flags);
  out.Fixed(static_cast<uint32_t>(fields.size()));
  bytes.append(fields);
  return bytes;
}

DeliveryPut FullPut(std::string_view event) {
  return {.id = "id",
          .epoch = 1,
          .topic = "topic",
          .incarnation = 2,
          .partition = 3,
          .offset = 4,
          .client = "client",
          .attempt = 5,
          .due_ns = -6,
          .created_ns = 7,
          .redriven_from = "old",
          .event = {event.size(), false, event}};
}

// Proves: D1
TEST(RecordsTest, EveryFieldOfEveryRecordRoundTrips) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomRecords records(seed);
    for (size_t type = 0; type < RandomRecords::kTypes; ++type) {
      const AnyRecord record = records.OfType(type);
      const std::string bytes = Encoded(record);
      const StatusOr<AnyRecord> read = Decoded(bytes);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(Same(*read, record));
      EXPECT_EQ(Encoded(*read), bytes);
    }
  }
}

// Proves: D1
TEST(RecordsTest, EmptyAndAbsentStayDistinct) {
  DeliveryRemove remove{.id = "", .client = std::string_view("\0", 1), .answer = ""};
  StatusOr<AnyRecord> read = Decoded(Encoded(remove));
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(std::get<DeliveryRemove>(*read).idempotency_key.has_value());
  EXPECT_EQ(std::get<DeliveryRemove>(*read).client.size(), 1u);
  remove.idempotency_key = "";
  const std::string bytes = Encoded(remove);
  read = Decoded(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<DeliveryRemove>(*read).idempotency_key, "");
}

// Proves: D1
TEST(RecordsTest, EventsOfEverySizeRoundTrip) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{65'535},
                            size_t{65'536}, size_t{1} << 20, (size_t{16} << 20) + 1}) {
    std::string event(size, '\0');
    for (size_t i = 0; i < size; i += 97) event[i] = static_cast<char>(i);
    const std::string bytes = Encoded(FullPut(event));
    const StatusOr<AnyRecord> read = Decoded(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(std::get<DeliveryPut>(*read).event.bytes == event) << size;
  }
}

TEST(RecordsTest, RecordsFollowOneAnother) {
  RandomRecords records(7);
  std::string bytes;
  std::vector<AnyRecord> made;
  for (int i = 0; i < 100; ++i) {
    made.push_back(records.Next());
    EncodeAnyRecord(made.back(), bytes);
  }
  ByteView rest = AsBytes(bytes);
  for (const AnyRecord& record : made) {
    const StatusOr<RawRecord> raw = TakeRecord(rest);
    ASSERT_TRUE(raw.ok());
    const StatusOr<AnyRecord> read = DecodeRecord(*raw);
    ASSERT_TRUE(read.ok());
    EXPECT_TRUE(Same(*read, record));
  }
  EXPECT_TRUE(rest.empty());
}

TEST(RecordsTest, ACutRecordIsRefusedAtEachLength) {
  for (size_t type = 0; type < RandomRecords::kTypes; ++type) {
    RandomRecords records(type + 1);
    const std::string bytes = Encoded(records.OfType(type));
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(Decoded(std::string_view(bytes).substr(0, size)).status().code(),
                StatusCode::kDataLoss);
      if (size < kRecordHeaderBytes) continue;
      const std::string_view fields =
          std::string_view(bytes).substr(kRecordHeaderBytes, size - kRecordHeaderBytes);
      EXPECT_EQ(Decoded(Framed(static_cast<uint8_t>(bytes[0]), 1, 0, fields)).status().code(),
                StatusCode::kDataLoss);
    }
  }
}

TEST(RecordsTest, BytesBehindTheLastFieldAreRefused) {
  RandomRecords records(3);
  for (size_t type = 0; type < RandomRecords::kTypes; ++type) {
    const std::string bytes = Encoded(records.OfType(type));
    const std::string fields = bytes.substr(kRecordHeaderBytes) + '\0';
    EXPECT_EQ(Decoded(Framed(static_cast<uint8_t>(bytes[0]), 1, 0, fields)).status().code(),
              StatusCode::kDataLoss);
  }
}

TEST(RecordsTest, ZerosAreNoRecord) {
  const std::string zeros(64, '\0');
  EXPECT_EQ(Decoded(zeros).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Decoded(Framed(10, 0, 0, std::string_view("\1x", 2))).status().code(),
            StatusCode::kDataLoss);
}

TEST(RecordsTest, ValuesOutOfRangeAreRefused) {
  // An optional that is neither there nor not, and a plain event whose size is not what it says.
  std::string fields;
  Encoder out(fields);
  out.Bytes("id");
  out.Varint(1);
  out.Bytes("client");
  out.Varint(0);
  out.Fixed(uint8_t{2});
  out.Bytes("answer");
  EXPECT_EQ(Decoded(Framed(7, 1, 0, fields)).status().code(), StatusCode::kDataLoss);

  DeliveryPut put = FullPut("event");
  put.event.raw_bytes = 6;
  EXPECT_EQ(Decoded(Encoded(put)).status().code(), StatusCode::kDataLoss);
  put.event.compressed = true;
  EXPECT_TRUE(Decoded(Encoded(put)).ok());
}

// Proves: G13
TEST(RecordsTest, UnknownTypesVersionsAndFlagsAreToldFromDamage) {
  const std::string known = Encoded(DeadLetterPurge{.id = "x"});
  const std::string_view fields = std::string_view(known).substr(kRecordHeaderBytes);
  for (const std::string& bytes :
       {Framed(13, 1, 0, fields), Framed(31, 1, 1, fields), Framed(255, 1, 0, ""),
        Framed(10, 2, 0, fields), Framed(10, 255, 0, fields), Framed(10, 1, 2, fields)}) {
    EXPECT_EQ(Decoded(bytes).status().code(), StatusCode::kUnimplemented);
  }
  ByteView rest = AsBytes(known);
  EXPECT_FALSE(TakeRecord(rest)->header.may_skip());
  const std::string skippable = Framed(200, 9, kRecordMaySkip, "abc");
  rest = AsBytes(skippable);
  const StatusOr<RawRecord> raw = TakeRecord(rest);
  ASSERT_TRUE(raw.ok());
  EXPECT_TRUE(raw->header.may_skip());
  EXPECT_EQ(raw->header.version, 9);
  EXPECT_EQ(AsText(raw->fields), "abc");
}

TEST(RecordsTest, RandomFieldsNeverDecodeToAnotherForm) {
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::string fields(rng.Below(64), '\0');
    for (char& byte : fields) byte = static_cast<char>(rng.OneIn(3) ? rng.Next() : rng.Below(8));
    const std::string bytes = Framed(static_cast<uint8_t>(1 + rng.Below(20)), 1, 0, fields);
    const StatusOr<AnyRecord> read = Decoded(bytes);
    if (read.ok()) {
      EXPECT_EQ(Encoded(*read), bytes);
    } else {
      const uint8_t type = static_cast<uint8_t>(bytes[0]);
      EXPECT_EQ(read.status().code(),
                type > 12 && type < 16 ? StatusCode::kUnimplemented : StatusCode::kDataLoss);
    }
  }
}

TEST(RecordsTest, NumbersAndNamesAreDistinct) {
  std::set<uint8_t> numbers;
  std::set<std::string> names;
  RandomRecords records(1);
  for (size_t type = 0; type < RandomRecords::kTypes; ++type) {
    const auto number = static_cast<uint8_t>(Encoded(records.OfType(type))[0]);
    EXPECT_NE(number, 0);
    EXPECT_LT(number, static_cast<uint8_t>(RecordType::kFirstHostType));
    numbers.insert(number);
    names.insert(RecordTypeName(number));
  }
  EXPECT_EQ(numbers.size(), RandomRecords::kTypes);
  EXPECT_EQ(names.size(), RandomRecords::kTypes);
  EXPECT_EQ(RecordTypeName(5), "delivery-put");
  EXPECT_EQ(RecordTypeName(200), "type-200");
  EXPECT_EQ(RecordTypeName(0), "type-0");
}

// The bytes of version 1: a change here is a new version of the record.
TEST(RecordsTest, TheFormatIsFrozen) {
  EXPECT_EQ(Encoded(OffsetAdvance{.topic = "t", .client = "c", .partition = 1, .next = 300}),
            std::string("\x01\x01\x00\x00\x08\x00\x00\x00\x01t\x01"
                        "c\x01\x00\xac\x02",
                        16));
  EXPECT_EQ(Encoded(FullPut("event")), std::string("\x05\x01\x00\x00\x24\x00\x00\x00"
                                                   "\x02id\x01\x05topic\x02\x03\x01\x04\x06"
                                                   "client\x05\x0b\x0e\x01\x03old\x0a\x05"
                                                   "event",
                                                   44));
  std::string all;
  RandomRecords records(42);
  size_t type = 0;
  const auto encode_up_to = [&](size_t end) {
    for (; type < end; ++type) EncodeAnyRecord(records.OfType(type), all);
    return Checksum(AsBytes(all), 0);
  };
  EXPECT_EQ(encode_up_to(10), 4245741765540802435u);
  EXPECT_EQ(encode_up_to(15), 2716103240256497669u);  // with those of the Meta
  EXPECT_EQ(type + 2, RandomRecords::kTypes);  // and those below
  EXPECT_EQ(Encoded(OffsetStart{.topic = "t", .client = "c", .partition = 1, .start = 300}),
            std::string("\x0b\x01\x00\x00\x08\x00\x00\x00\x01t\x01"
                        "c\x01\x00\xac\x02",
                        16));
  AnswersWriter answers;
  answers.Add(Lsn(5), 0x0807060504030201);
  answers.Add(Lsn(305), 2);
  EXPECT_EQ(Encoded(Answers{.answers = answers.stored()}),
            std::string("\x0c\x01\x00\x00\x14\x00\x00\x00\x02"
                        "\x05\x01\x02\x03\x04\x05\x06\x07\x08"
                        "\xac\x02\x02\x00\x00\x00\x00\x00\x00\x00",
                        28));
}

}  // namespace
}  // namespace holdfast
