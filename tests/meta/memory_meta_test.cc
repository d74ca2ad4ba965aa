#include "meta/memory_meta.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/meta/conformance.h"
#include "tests/meta/watch_log.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class MemoryMetaFixture final : public MetaFixture {
 public:
  MetaStore& store() override { return meta_; }
  void PassTime(absl::Duration by) override { clock_.Advance(by); }
  absl::Duration lease_min() const override { return absl::Seconds(1); }
  bool ForgetHistory() override {
    EXPECT_OK(meta_.Compact(meta_.published_revision(), {}));
    return true;
  }
  bool Restart() override { return false; }

 private:
  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
};

INSTANTIATE_TEST_SUITE_P(Memory, MetaConformanceTest,
                         testing::Values(MetaBackend{
                             "Memory", [] { return std::make_unique<MemoryMetaFixture>(); }}),
                         BackendName);

// A callback that does not return keeps the changes from nobody's memory but the history's.
// Proves: S1
TEST(MemoryMetaTest, AWatchThatFallsBehindTheHistoryIsToldToListAgain) {
  SimClock clock;
  MemoryMeta meta(clock, 1, {.history = {.revisions_max = 10}});
  Mutex mu;
  CondVar changed;
  bool entered = false, released = false, resynced = false;
  size_t events = 0;
  ASSERT_OK_AND_ASSIGN(auto watch, meta.Watch("k", 1,
                                              [&](const MetaNotice& notice) {
                                                MutexLock lock(mu);
                                                entered = true;
                                                changed.NotifyAll();
                                                while (!released) changed.Wait(mu);
                                                events += notice.events.size();
                                                resynced = notice.kind == MetaNotice::Kind::kResync;
                                                changed.NotifyAll();
                                              },
                                              {}));
  ASSERT_OK(meta.Put("k", "0", {}));
  {
    MutexLock lock(mu);
    while (!entered) changed.Wait(mu);
  }
  for (int i = 1; i < 50; ++i) ASSERT_OK(meta.Put("k", std::to_string(i), {}));
  clock.Advance(absl::Seconds(7));
  EXPECT_EQ(watch->Staleness(), absl::Seconds(7));
  MutexLock lock(mu);
  released = true;
  changed.NotifyAll();
  while (!resynced) changed.Wait(mu);
  EXPECT_EQ(events, 1u);
}

TEST(MemoryMetaTest, AWatchThatShowedEverythingIsNotStale) {
  SimClock clock;
  MemoryMeta meta(clock, 1);
  WatchLog log(meta, "k", 1);
  clock.Advance(absl::Hours(1));
  // As soon as the thread that calls back has looked.
  while (log.watch().Staleness() > absl::ZeroDuration()) std::this_thread::yield();
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(log.watch().Staleness(), absl::ZeroDuration());
}

TEST(MemoryMetaTest, HistoryOlderThanItsAgeIsForgotten) {
  SimClock clock;
  MemoryMeta meta(clock, 1, {.history = {.age_max = absl::Minutes(5)}});
  ASSERT_OK_AND_ASSIGN(const uint64_t old, meta.Put("k", "1", {}));
  clock.Advance(absl::Minutes(4));
  ASSERT_OK_AND_ASSIGN(const uint64_t young, meta.Put("k", "2", {}));
  EXPECT_EQ(meta.List("k", {.revision = old})->entries.at(0).value, "1");
  clock.Advance(absl::Minutes(1));
  ASSERT_OK(meta.Get("k", {}));
  EXPECT_FAILS(meta.List("k", {.revision = old}), kAborted, kConflict);
  EXPECT_EQ(meta.List("k", {.revision = young})->entries.at(0).value, "2");
  WatchLog log(meta, "k", young);
  EXPECT_EQ(log.AwaitEvents(1).at(0).entry.value, "2");
}

TEST(MemoryMetaTest, WhoReadsTheChangesHimselfIsToldWhenThereAreSome) {
  SimClock clock;
  MemoryMeta meta(clock, 1);
  std::atomic<int> told{0};
  const uint64_t listener = meta.AddListener([&] { ++told; });
  ASSERT_OK_AND_ASSIGN(const uint64_t first, meta.Put("a/1", "x", {}));
  ASSERT_OK(meta.Put("b", "y", {}));
  ASSERT_OK(meta.Put("a/2", "z", {}));
  EXPECT_EQ(told, 3);
  const KeyRange range = KeyRange::Prefix("a/");
  ASSERT_OK_AND_ASSIGN(const MvccState::Changes part, meta.ChangesOf(range, first, 1));
  ASSERT_EQ(part.events.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const MvccState::Changes rest, meta.ChangesOf(range, part.next, 10));
  ASSERT_EQ(rest.events.size(), 1u);
  EXPECT_EQ(rest.events[0].now->key, "a/2");
  EXPECT_EQ(rest.next, meta.published_revision() + 1);
  meta.RemoveListener(listener);
  ASSERT_OK(meta.Put("a/3", "", {}));
  EXPECT_EQ(told, 3);
}

}  // namespace
}  // namespace holdfast
