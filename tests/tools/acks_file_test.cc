#include "tools/acks_file.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/tool_run.h"

namespace holdfast {
namespace {

AckLine Ack(std::string id, std::string topic, std::string client) {
  return {.kind = AckKind::kAck,
          .id = std::move(id),
          .topic = std::move(topic),
          .client = std::move(client),
          .partition = 3,
          .next = 4711};
}

// Proves: O3
TEST(AcksFileTest, LinesKeepNamesOfAnyBytes) {
  const std::string any("a b\n%/#|\0\xff", 10);
  for (const AckLine& line : {Ack(any, any, any), Ack("id", "", ""), Ack("%", "%41", "A")}) {
    std::string text = FormatAckLine(line);
    ASSERT_EQ(text.back(), '\n');
    text.pop_back();
    EXPECT_EQ(text.find('\n'), std::string::npos);
    ASSERT_OK_AND_ASSIGN(const AckLine read, ParseAckLine(text));
    EXPECT_EQ(read.id, line.id);
    EXPECT_EQ(read.topic, line.topic);
    EXPECT_EQ(read.client, line.client);
    EXPECT_EQ(read.partition, 3U);
    EXPECT_EQ(read.next, 4711U);
  }
}

TEST(AcksFileTest, WhatIsNotALineIsRefused) {
  for (const char* text :
       {"", "put", "put ", "put a b", "put %4", "put %zz", "gone a", "ack a t c 1",
        "ack a t c 1 2 3", "ack a t c 1 -2", "ack a t c x 2", "put a cut", "try é"}) {
    EXPECT_FALSE(ParseAckLine(text).ok()) << text;
  }
}

TEST(AcksFileTest, LaterRunsAppend) {
  const TempDir directory;
  const std::string path = directory.Sub("acks");
  for (const char* id : {"1", "2"}) {
    ASSERT_OK_AND_ASSIGN(const auto file, AcksFile::Open(path));
    EXPECT_OK(file->Append({.kind = AckKind::kPut, .id = id}));
  }
  EXPECT_EQ(ReadWholeFile(path), "put 1\nput 2\n");
}

// The half line must not be read as another, shorter id.
TEST(AcksFileTest, ALineCutByAKillSaysNothing) {
  const TempDir directory;
  const std::string path = directory.Sub("acks");
  WriteWholeFile(path, "put 1\nput 12");
  std::vector<std::string> ids;
  const auto collect = [&ids](const AckLine& line) { ids.push_back(line.id); };
  ASSERT_OK_AND_ASSIGN(const AcksRead before, ReadAcksFile(path, collect));
  EXPECT_EQ(before.cut, 1U);
  EXPECT_EQ(ids, std::vector<std::string>{"1"});
  {
    ASSERT_OK_AND_ASSIGN(const auto file, AcksFile::Open(path));
    EXPECT_OK(file->Append({.kind = AckKind::kDead, .id = "3"}));
  }
  ids.clear();
  ASSERT_OK_AND_ASSIGN(const AcksRead after, ReadAcksFile(path, collect));
  EXPECT_EQ(after.lines, 3U);
  EXPECT_EQ(after.cut, 1U);
  EXPECT_EQ(ids, (std::vector<std::string>{"1", "3"}));
}

TEST(AcksFileTest, ABadLineIsNamedByItsNumber) {
  const TempDir directory;
  WriteWholeFile(directory.Sub("acks"), "put 1\nhello\n");
  const auto read = ReadAcksFile(directory.Sub("acks"), [](const AckLine&) {});
  EXPECT_FAILS(read, kInvalidArgument, kNone);
  EXPECT_NE(Message(read.status()).find("line 2"), std::string::npos) << read.status();
  EXPECT_FAILS(ReadAcksFile(directory.Sub("none"), [](const AckLine&) {}), kUnavailable, kIo);
}

TEST(AcksFileTest, LinesOfManyThreadsStayWhole) {
  const TempDir directory;
  ASSERT_OK_AND_ASSIGN(const auto file, AcksFile::Open(directory.Sub("acks")));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&file, t] {
      for (int i = 0; i < 500; ++i) {
        EXPECT_OK(
            file->Append(Ack(std::to_string(t) + "-" + std::to_string(i), "topic", "client")));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK_AND_ASSIGN(const AcksRead read,
                       ReadAcksFile(directory.Sub("acks"), [](const AckLine&) {}));
  EXPECT_EQ(read.lines, 2000U);
  EXPECT_EQ(read.cut, 0U);
}

TEST(WorkloadEventTest, IsAFunctionOfTheIdAlone) {
  const std::string id = WorkloadId("7-abc-1", 300);
  ASSERT_OK_AND_ASSIGN(const std::string event, WorkloadEvent(id));
  ASSERT_OK_AND_ASSIGN(const std::string again, WorkloadEvent(id));
  ASSERT_OK_AND_ASSIGN(const std::string other, WorkloadEvent(WorkloadId("7-abc-2", 300)));
  ASSERT_OK_AND_ASSIGN(const std::string shorter, WorkloadEvent(WorkloadId("7-abc-1", 299)));
  EXPECT_EQ(event.size(), 300U);
  EXPECT_EQ(event, again);
  EXPECT_NE(event, other);
  EXPECT_NE(event.substr(0, 299), shorter);
}

TEST(WorkloadEventTest, ForeignIdsAreRefused) {
  for (const char* id : {"", "1", "1.", "1.x", "1.-1", "1.99999999999999999999", "1.9999999999"}) {
    EXPECT_FALSE(WorkloadEvent(id).ok()) << id;
  }
  ASSERT_OK_AND_ASSIGN(const std::string empty, WorkloadEvent("1.0"));
  EXPECT_TRUE(empty.empty());
}

}  // namespace
}  // namespace holdfast
