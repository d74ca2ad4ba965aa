#include "tools/demo_report.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(DemoReportTest, ReportsRoundTrip) {
  for (const DemoStep step :
       {DemoStep::kPut, DemoStep::kAgain, DemoStep::kOver, DemoStep::kPush, DemoStep::kTry,
        DemoStep::kAck, DemoStep::kRefuse, DemoStep::kTold, DemoStep::kStuck}) {
    const bool has_id =
        step != DemoStep::kOver && step != DemoStep::kTold && step != DemoStep::kStuck;
    const DemoReport report{.step = step,
                            .id = has_id ? "1-ab-7" : "",
                            .client = 2,
                            .offset = 300,
                            .attempt = 4,
                            .checksum = ~uint64_t{0}};
    std::string line = FormatDemoReport(report);
    ASSERT_EQ(line.back(), '\n');
    line.pop_back();
    ASSERT_OK_AND_ASSIGN(const DemoReport read, ParseDemoReport(line));
    EXPECT_EQ(read.step, step) << line;
    EXPECT_EQ(read.id, report.id);
    EXPECT_EQ(read.client, 2U);
    EXPECT_EQ(read.offset, 300U);
    EXPECT_EQ(read.attempt, 4U);
    EXPECT_EQ(read.checksum, report.checksum);
  }
}

TEST(DemoReportTest, OtherLinesAreRefused) {
  for (const char* line : {"", "put", "put 1 2 3 4", "put 1 2 3 4 ", "put 1 2 x 4 id",
                           "eat 1 2 3 4 id", "over 1 2 3 4 id", "push 1 2 9999999999 4 id"}) {
    EXPECT_FALSE(ParseDemoReport(line).ok()) << line;
  }
}

}  // namespace
}  // namespace holdfast
