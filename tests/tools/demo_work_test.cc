// The demo's work on the in-memory stores, without a kill.
#include "tools/demo_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "journal/base/mutex.h"
#include "tests/support/status_matchers.h"
#include "tools/demo_audit.h"

namespace holdfast {
namespace {

// What a run told, judged by the audit.
struct Judged {
  explicit Judged(const DemoWork& work) : audit(work) {}
  TellDemo Listen() {
    return [this](const DemoReport& report) {
      MutexLock lock(mu);
      audit.Take(report);
      ++steps[report.step];
      if (report.step == DemoStep::kPut) handed_in.insert(report.offset);
      return absl::OkStatus();
    };
  }
  Mutex mu;
  DemoAudit audit ABSL_GUARDED_BY(mu);
  std::map<DemoStep, uint64_t> steps ABSL_GUARDED_BY(mu);
  std::set<uint64_t> handed_in ABSL_GUARDED_BY(mu);
};

TEST(DemoWorkTest, FinishesEveryEventForEveryClient) {
  const DemoWork work{.events = {"a", "b", "c"}, .repeat = 80, .clients = 6};
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  Judged judged(work);
  ASSERT_OK(RunDemoWork(work, *engine, RealClock(), {}, judged.Listen()));
  EXPECT_EQ(engine->deliveries().Count(), 0U);
  MutexLock lock(judged.mu);
  ASSERT_OK_AND_ASSIGN(const DemoAudit::Round round, judged.audit.Compare(*engine));
  judged.audit.CheckFinished(round);
  EXPECT_EQ(judged.audit.findings().total(), 0U)
      << testing::PrintToString(judged.audit.findings().shown());
  EXPECT_EQ(round.untold_acks, 0U);
  EXPECT_EQ(judged.steps[DemoStep::kPut], work.delivery_count());
  EXPECT_GE(judged.steps[DemoStep::kTold], work.event_count());
  const std::vector<DemoTally>& tallies = judged.audit.tallies();
  EXPECT_GT(tallies[2].duplicates, 0U);    // nacking
  EXPECT_GT(tallies[3].duplicates, 0U);    // dying
  EXPECT_GT(tallies[4].dead_letters, 0U);  // poison
}

TEST(DemoWorkTest, WhatTheSourceWasToldIsNotHandedInAgain) {
  const DemoWork work{.events = {"a"}, .repeat = 20, .clients = 1};
  ASSERT_OK_AND_ASSIGN(const ToldOffsets told, ToldOffsets::Parse("18:3,7"));
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  Judged judged(work);
  ASSERT_OK(RunDemoWork(work, *engine, RealClock(), told, judged.Listen()));
  MutexLock lock(judged.mu);
  EXPECT_EQ(judged.handed_in, (std::set<uint64_t>{3, 7, 18, 19}));
}

// The source forgot; the store did not.
TEST(DemoWorkTest, WhatIsFinishedIsOnlyToldAgain) {
  const DemoWork work{.events = {"a"}, .repeat = 20, .clients = 1};
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  Judged first(work), second(work);
  ASSERT_OK(RunDemoWork(work, *engine, RealClock(), {}, first.Listen()));
  ASSERT_OK(RunDemoWork(work, *engine, RealClock(), {}, second.Listen()));
  MutexLock lock(second.mu);
  EXPECT_EQ(second.steps,
            (std::map<DemoStep, uint64_t>{{DemoStep::kOver, 20}, {DemoStep::kTold, 20}}));
}

TEST(DemoWorkTest, StopsWhenNobodyListens) {
  const DemoWork work{.events = {"a"}, .repeat = 50, .clients = 1};
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  const Status deaf = Unavailable(Detail::kIo, "nobody listens");
  EXPECT_FAILS(RunDemoWork(work, *engine, RealClock(), {}, [&](const DemoReport&) { return deaf; }),
               kUnavailable, kIo);
}

// Each look at it is ten seconds later.
class HastyClock final : public Clock {
 public:
  absl::Duration Now() override { return absl::Seconds(10 * ++looks_); }
  absl::Time WallNow() override { return RealClock().WallNow(); }
  absl::Duration Until(absl::Duration) override { return absl::Milliseconds(1); }

 private:
  std::atomic<int64_t> looks_ = 0;
};

TEST(DemoWorkTest, GivesUpWhenNothingIsFinishedAnyMore) {
  const DemoWork work{.events = {"a"}, .repeat = 500, .clients = 5};
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  HastyClock clock;
  Judged judged(work);
  EXPECT_FAILS(RunDemoWork(work, *engine, clock, {}, judged.Listen()), kDeadlineExceeded, kNone);
  MutexLock lock(judged.mu);
  EXPECT_EQ(judged.steps[DemoStep::kStuck], 1U);
  EXPECT_EQ(judged.audit.findings().total(), 1U);
}

TEST(DemoWorkTest, AClientIsNamedByItsTemper) {
  EXPECT_EQ(DemoWork::ClientName(0), "fast-1");
  EXPECT_EQ(DemoWork::ClientName(9), "poison-10");
}

}  // namespace
}  // namespace holdfast
