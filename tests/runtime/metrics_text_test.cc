#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "holdfast/dispatcher.h"

namespace holdfast {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

DispatcherStats SomeStats() {
  DispatcherStats stats;
  stats.in_flight = 7;
  stats.acked = 41;
  stats.withheld = 3;
  stats.clients = {{.client = "billing",
                    .channels = 1,
                    .in_flight = 5,
                    .pushed = 9,
                    .redelivered = 2,
                    .acked = 4,
                    .oldest_age = absl::Milliseconds(1'500),
                    .since_last_ack = absl::Seconds(3)},
                   {.client = "quiet",
                    .oldest_age = absl::ZeroDuration(),
                    .since_last_ack = absl::InfiniteDuration()}};
  return stats;
}

TEST(MetricsTextTest, EachLineIsACommentOrASample) {
  const std::regex sample(R"RE(holdfast_dispatcher_[a-z_]+(\{client="[^"]*"\})? -?[0-9.e+-]+)RE");
  const std::regex comment("# (HELP|TYPE) holdfast_dispatcher_[a-z_]+ .+");
  const std::vector<std::string> lines = LinesOf(MetricsText(SomeStats()));
  EXPECT_GT(lines.size(), 40u);
  for (const std::string& line : lines) {
    EXPECT_TRUE(std::regex_match(line, sample) || std::regex_match(line, comment)) << line;
  }
}

TEST(MetricsTextTest, ShowsWhatIsThere) {
  const std::string text = MetricsText(SomeStats());
  for (const char* line : {
           "# TYPE holdfast_dispatcher_in_flight gauge",
           "holdfast_dispatcher_in_flight 7",
           "# TYPE holdfast_dispatcher_acked_total counter",
           "holdfast_dispatcher_acked_total 41",
           "holdfast_dispatcher_withheld_total 3",
           "holdfast_dispatcher_client_in_flight{client=\"billing\"} 5",
           "holdfast_dispatcher_client_redelivered_total{client=\"billing\"} 2",
           "holdfast_dispatcher_client_oldest_age_seconds{client=\"billing\"} 1.5",
           "holdfast_dispatcher_client_last_ack_seconds{client=\"billing\"} 3",
       }) {
    EXPECT_NE(text.find(std::string(line) + "\n"), std::string::npos) << line;
  }
  EXPECT_EQ(text.find("last_ack_seconds{client=\"quiet\"}"), std::string::npos);
}

TEST(MetricsTextTest, NamesOfAnyBytesStayOneLabel) {
  DispatcherStats stats;
  stats.clients = {{.client = "a\"b\\c\nd"}, {.client = "\xff\x01"}, {.client = "наряд"}};
  const std::string text = MetricsText(stats);
  EXPECT_NE(text.find(R"({client="a\"b\\c\nd"})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"({client="\\xff\\x01"})"), std::string::npos) << text;
  EXPECT_NE(text.find("{client=\"наряд\"}"), std::string::npos) << text;
}

}  // namespace
}  // namespace holdfast
