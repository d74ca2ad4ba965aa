#include "tools/demo_work.h"

#include <gtest/gtest.h>

#include <map>

#include "journal/base/mutex.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(DemoWorkTest, FinishesEveryEventForEveryClient) {
  const DemoWork work{.events = {"a", "b", "c"}, .repeat = 50, .clients = 4};
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  Mutex mu;
  std::map<DemoStep, uint64_t> steps;  // Guarded by mu.
  ASSERT_OK(RunDemoWork(work, *engine, RealClock(), [&](const DemoReport& report) {
    MutexLock lock(mu);
    ++steps[report.step];
    return absl::OkStatus();
  }));
  EXPECT_EQ(engine->deliveries().Count(), 0U);
  for (uint64_t client = 0; client < work.clients; ++client) {
    ASSERT_OK_AND_ASSIGN(
        const StoredOffset offset,
        engine->offsets().Read({DemoWork::kTopic, DemoWork::ClientName(client), 0}));
    EXPECT_EQ(offset.position.next, work.event_count());
  }
  for (const DemoStep step : {DemoStep::kPut, DemoStep::kTry, DemoStep::kAck}) {
    EXPECT_EQ(steps[step], work.delivery_count());
  }
}

TEST(DemoWorkTest, StopsWhenNobodyListens) {
  const DemoWork work{.events = {"a"}, .repeat = 50, .clients = 1};
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  const Status deaf = Unavailable(Detail::kIo, "nobody listens");
  EXPECT_FAILS(RunDemoWork(work, *engine, RealClock(), [&](const DemoReport&) { return deaf; }),
               kUnavailable, kIo);
}

TEST(DemoWorkTest, ReportsRoundTrip) {
  for (const DemoStep step : {DemoStep::kPut, DemoStep::kTry, DemoStep::kAck}) {
    const DemoReport report{.step = step, .id = "1-ab-7", .client = 2, .offset = 300, .next = 299};
    std::string line = FormatDemoReport(report);
    ASSERT_EQ(line.back(), '\n');
    line.pop_back();
    ASSERT_OK_AND_ASSIGN(const DemoReport read, ParseDemoReport(line));
    EXPECT_EQ(read.step, step);
    EXPECT_EQ(read.id, report.id);
    EXPECT_EQ(read.client, 2U);
    EXPECT_EQ(read.offset, 300U);
    EXPECT_EQ(read.next, 299U);
  }
  for (const char* line : {"", "put", "put 1 2 3", "put 1 2 x id", "eat 1 2 3 id"}) {
    EXPECT_FALSE(ParseDemoReport(line).ok()) << line;
  }
}

}  // namespace
}  // namespace holdfast
