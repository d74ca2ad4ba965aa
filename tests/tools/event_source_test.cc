#include "tools/event_source.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "journal/base/check.h"
#include "journal/format/compression.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/tool_run.h"

namespace holdfast {
namespace {

constexpr char kEvent[] =
    R"({"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":[1,2]}})";

// One zstd frame.
std::string Packed(const std::string& text) {
  std::string scratch;
  const StoredEvent packed = PackEvent(text, scratch);
  CHECK(packed.compressed);
  return std::string(packed.bytes);
}

class EventSourceTest : public testing::Test {
 protected:
  StatusOr<std::vector<std::string>> Read(const std::string& bytes) {
    WriteWholeFile(directory_.Sub("events"), bytes);
    return ReadCloudEvents(directory_.Sub("events"));
  }
  TempDir directory_;
};

TEST_F(EventSourceTest, LinesAreKeptByteForByte) {
  const std::string spaced = R"(  {"specversion":"1.0", "id":"ä", "source":"s", "type":"t"} )";
  for (const std::string& text :
       {std::string(kEvent) + "\n\n" + spaced + "\n", std::string(kEvent) + "\r\n" + spaced}) {
    ASSERT_OK_AND_ASSIGN(const auto events, Read(text));
    EXPECT_EQ(events, (std::vector<std::string>{kEvent, spaced}));
  }
}

TEST_F(EventSourceTest, CompressedFilesAreUnpackedAsTheyCome) {
  std::string text;
  const std::vector<std::string> made = MakeCloudEvents(3, 3000);
  for (const std::string& event : made) text += event + "\n";
  ASSERT_GT(text.size(), size_t{500'000}) << "more than one block of the decompressor";
  ASSERT_OK_AND_ASSIGN(const auto events, Read(Packed(text)));
  EXPECT_EQ(events, made);
  ASSERT_OK_AND_ASSIGN(const auto twice, Read(Packed(text) + Packed(text)));
  EXPECT_EQ(twice.size(), 2 * made.size());
}

TEST_F(EventSourceTest, ACutOrDamagedStreamIsRefused) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::string(kEvent) + "\n";
  const std::string packed = Packed(text);
  EXPECT_FAILS(Read(packed.substr(0, packed.size() - 5)), kInvalidArgument, kNone);
  std::string flipped = packed;
  flipped[5] = static_cast<char>(flipped[5] ^ 0x55);
  EXPECT_FAILS(Read(flipped), kInvalidArgument, kNone);
}

TEST_F(EventSourceTest, WhatIsWrongIsNamedWithItsLine) {
  struct Case {
    const char* line;
    const char* said;
  };
  for (
      const Case& c : {
          Case{"{", "JSON"},
          Case{"[1]", "not a JSON object"},
          Case{R"({"id":"1","source":"s","type":"t"})", "\"specversion\" is missing"},
          Case{R"({"specversion":"0.3","id":"1","source":"s","type":"t"})", "specversion"},
          Case{R"({"specversion":"1.0","source":"s","type":"t"})", "\"id\" is missing"},
          Case{R"({"specversion":"1.0","id":"","source":"s","type":"t"})", "\"id\" is empty"},
          Case{R"({"specversion":"1.0","id":7,"source":"s","type":"t"})", "\"id\" is not a string"},
          Case{R"({"specversion":"1.0","id":"1","type":"t"})", "\"source\" is missing"},
          Case{R"({"specversion":"1.0","id":"1","source":"s"})", "\"type\" is missing"},
          Case{R"({"specversion":"1.0","id":"1","source":"s","type":"t","Shout":"x"})", "Shout"},
          Case{
              R"({"specversion":"1.0","id":"1","source":"s","type":"t","data":1,"data_base64":""})",
              "both"},
      }) {
    const auto events = Read(std::string(kEvent) + "\n" + c.line + "\n");
    EXPECT_FAILS(events, kInvalidArgument, kNone) << c.line;
    const std::string_view message = Message(events.status());
    if (std::string_view(c.said) != "JSON") {
      EXPECT_NE(message.find(c.said), std::string_view::npos) << message;
    }
    EXPECT_NE(message.find("line 2"), std::string_view::npos) << message;
  }
}

TEST_F(EventSourceTest, NoEventsAndNoFileAreErrors) {
  EXPECT_FAILS(Read(""), kInvalidArgument, kNone);
  EXPECT_FAILS(Read("\n\n"), kInvalidArgument, kNone);
  EXPECT_FAILS(ReadCloudEvents(directory_.Sub("none")), kUnavailable, kIo);
  EXPECT_FAILS(ReadCloudEvents(directory_.path()), kUnavailable, kIo);
}

TEST_F(EventSourceTest, ALineHasALimit) {
  WriteWholeFile(directory_.Sub("events"), Packed(std::string(kEventLineBytesMax + 1, 'x')));
  const Status read = ReadLines(directory_.Sub("events"), [](uint64_t, std::string_view) {
    ADD_FAILURE() << "no line ends";
    return absl::OkStatus();
  });
  EXPECT_FAILS(read, kInvalidArgument, kNone);
}

TEST(MakeCloudEventsTest, AreValidAndTheSameForOneSeed) {
  const std::vector<std::string> events = MakeCloudEvents(1, 200);
  EXPECT_EQ(events, MakeCloudEvents(1, 200));
  EXPECT_NE(events, MakeCloudEvents(2, 200));
  for (const std::string& event : events) EXPECT_OK(ValidateCloudEvent(event));
  EXPECT_EQ(std::set<std::string>(events.begin(), events.end()).size(), events.size());
}

}  // namespace
}  // namespace holdfast
