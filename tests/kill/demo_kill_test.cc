// The demo as a user runs it: real kills, an audit after each, and its exit code.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/kill/tool_process.h"
#include "tests/support/environment.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/tool_run.h"
#include "tools/event_source.h"

namespace holdfast {
namespace {

size_t Occurrences(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// The count in the row of `client` and the column that `number` counts from 0; -1: there is none.
int64_t InTable(const std::string& text, const std::string& client, int number) {
  size_t at = text.find("| " + client + " ");
  for (int column = 0; column <= number && at != std::string::npos; ++column) {
    at = text.find('|', at + 1);
  }
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + 1));
}

// Proves: D2, O4, A7, G1, G2, G10, W1
TEST(DemoKillTest, GeneratedEventsAllEndOnce) {
  const TempDir directory;
  const std::string store = directory.Sub("store");
  const ToolOutput demo = RunToolProcess(
      {"demo", "--dir", store, "--kills", "4", "--repeat", "2", "--segment-bytes", "262144"});
  ASSERT_EQ(demo.end.exit_code, kExitOk) << demo.text;
  EXPECT_GE(Occurrences(demo.text, "kill "), 3U) << demo.text;
  EXPECT_EQ(Occurrences(demo.text, "audit OK"), Occurrences(demo.text, "recovered in"))
      << demo.text;
  EXPECT_NE(demo.text.find("all events finished"), std::string::npos);
  EXPECT_NE(demo.text.find("| in-memory stores"), std::string::npos) << demo.text;
  EXPECT_NE(demo.text.find("nothing lost"), std::string::npos);
  constexpr int kAcked = 0, kDeadLetters = 1, kPushes = 2, kDuplicates = 3;
  for (const char* client : {"fast-1", "slow-2", "nacking-3", "dying-4", "poison-5"}) {
    EXPECT_EQ(InTable(demo.text, client, kAcked) + InTable(demo.text, client, kDeadLetters), 1000)
        << demo.text;
    EXPECT_GE(InTable(demo.text, client, kPushes), 1000) << demo.text;
  }
  EXPECT_GT(InTable(demo.text, "nacking-3", kDuplicates), 0) << demo.text;
  EXPECT_GT(InTable(demo.text, "dying-4", kDuplicates), 0) << demo.text;
  EXPECT_GT(InTable(demo.text, "poison-5", kDeadLetters), 0) << demo.text;
  EXPECT_EQ(RunToolProcess({"verify", store}).end.exit_code, kExitOk);
  EXPECT_EQ(RunToolProcess({"list", store, "deliveries"}).text, "");
  EXPECT_FALSE(std::filesystem::exists(store + ".unkilled"));
}

// Proves: D2, G1
TEST(DemoKillTest, EventsOfAFileAllEndOnce) {
  const TempDir directory;
  std::string events = directory.Sub("events.jsonl");
  std::string lines;
  for (const std::string& event : MakeCloudEvents(5, 120)) lines += event + "\n";
  WriteWholeFile(events, lines);
  const std::string given = TextFromEnvironment("HOLDFAST_EVENTS");
  if (!given.empty()) events = given;
  const ToolOutput demo =
      RunToolProcess({"demo", "--events", events, "--clients", "2", "--kills", "3", "--repeat", "1",
                      "--io", "posix", "--durability", "written"});
  EXPECT_EQ(demo.end.exit_code, kExitOk) << demo.text;
  EXPECT_GE(Occurrences(demo.text, "audit OK"), 2U) << demo.text;
}

}  // namespace
}  // namespace holdfast
