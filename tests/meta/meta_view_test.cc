#include "meta/meta_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// What a viewer was told, in order.
class Told final : public MetaViewer {
 public:
  void Changed(const MetaEntry& entry) override {
    MutexLock lock(mu_);
    told_.push_back(entry.key + "=" + entry.value);
  }
  void Gone(std::string_view key) override {
    MutexLock lock(mu_);
    told_.push_back("-" + std::string(key));
  }
  std::vector<std::string> Take() {
    MutexLock lock(mu_);
    return std::exchange(told_, {});
  }

 private:
  Mutex mu_;
  std::vector<std::string> told_ ABSL_GUARDED_BY(mu_);
};

using Lines = std::vector<std::string>;

class MetaViewTest : public testing::Test {
 protected:
  std::unique_ptr<MetaView> Open() {
    auto view =
        MetaView::Open(faulty_, "k", told_, RealClock(),
                       {.retry_min = absl::Milliseconds(1), .retry_max = absl::Milliseconds(1)});
    EXPECT_OK(view);
    return *std::move(view);
  }
  static void AwaitRevision(MetaView& view, uint64_t revision) {
    while (view.revision() < revision) std::this_thread::yield();
  }

  MemoryMeta meta_{RealClock(), 1};
  FaultyMeta faulty_{meta_};
  Told told_;
};

TEST_F(MetaViewTest, AListAnewTellsTheDifferenceOnly) {
  ASSERT_OK(meta_.Put("k1", "a", {}));
  ASSERT_OK(meta_.Put("k2", "a", {}));
  ASSERT_OK(meta_.Put("k3", "a", {}));
  const auto view = Open();
  EXPECT_EQ(told_.Take(), (Lines{"k1=a", "k2=a", "k3=a"}));
  faulty_.SetFaults([](FaultyMeta::Call) { return FaultyMeta::Fault::kUnreachable; });
  faulty_.CutWatches();
  ASSERT_OK(meta_.Delete("k1", {}));
  ASSERT_OK(meta_.Put("k2", "b", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Put("k4", "b", {}));
  faulty_.Heal();
  AwaitRevision(*view, last);
  EXPECT_EQ(told_.Take(), (Lines{"k2=b", "k4=b", "-k1"}));
}

// A Meta that has just started, and does not show everything yet.
// Proves: S4
TEST_F(MetaViewTest, WhatOneListLeavesOutIsNotGone) {
  for (const char* key : {"k1", "k2", "k3"}) ASSERT_OK(meta_.Put(key, "a", {}));
  const auto view = Open();
  told_.Take();
  std::atomic<bool> first = true;
  faulty_.SetLists([&first](MetaList& list) {
    if (first.exchange(false)) list.entries.clear();
  });
  faulty_.CutWatches();
  ASSERT_OK(meta_.Delete("k2", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Put("k4", "b", {}));
  AwaitRevision(*view, last);
  const Lines told = told_.Take();
  EXPECT_TRUE((told == Lines{"k4=b", "-k2"}) || (told == Lines{"-k2", "k4=b"}))
      << testing::PrintToString(told);
}

// Proves: S4
TEST_F(MetaViewTest, WhatTheWatchLeavesOutIsFoundByTheNextList) {
  ASSERT_OK(meta_.Put("k1", "a", {}));
  ASSERT_OK(meta_.Put("k2", "a", {}));
  const auto view = MetaView::Open(faulty_, "k", told_, RealClock(),
                                   {.retry_min = absl::Milliseconds(1),
                                    .retry_max = absl::Milliseconds(1),
                                    .reconcile_every = absl::Milliseconds(2)})
                        .value();
  told_.Take();
  faulty_.MuteWatches();
  ASSERT_OK(meta_.Delete("k1", {}));
  ASSERT_OK(meta_.Put("k2", "b", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Put("k3", "b", {}));
  AwaitRevision(*view, last);
  Lines told = told_.Take();
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, (Lines{"-k1", "k2=b", "k3=b"}));
}

// Lists that are older than what the watch brought change nothing back.
// Proves: S4
TEST_F(MetaViewTest, AListThatTheWatchOvertookBringsNothingBack) {
  const auto view = MetaView::Open(faulty_, "k", told_, RealClock(),
                                   {.retry_min = absl::Milliseconds(1),
                                    .retry_max = absl::Milliseconds(1),
                                    .reconcile_every = absl::Milliseconds(1)})
                        .value();
  // What the Meta had when it was asked first, from then on.
  std::optional<MetaList> old;
  std::atomic<int> lists = 0;
  ASSERT_OK(meta_.Put("k1", "a", {}));
  faulty_.SetLists([&](MetaList& list) {
    if (!old.has_value()) old = list;
    list = *old;
    ++lists;
  });
  while (lists < 1) std::this_thread::yield();
  ASSERT_OK(meta_.Delete("k1", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Put("k2", "b", {}));
  AwaitRevision(*view, last);
  const int before = lists;
  while (lists < before + 3) std::this_thread::yield();
  EXPECT_EQ(view->revision(), last);
  EXPECT_EQ(told_.Take(), (Lines{"k1=a", "-k1", "k2=b"}));
  faulty_.SetLists({});
}

TEST_F(MetaViewTest, ItsOwnWritesAreToldOnce) {
  const auto view = Open();
  ASSERT_OK_AND_ASSIGN(const uint64_t put, meta_.Put("k1", "a", {}));
  view->NotePut({.key = "k1", .value = "a", .revision = put});
  AwaitRevision(*view, put);
  ASSERT_OK_AND_ASSIGN(const uint64_t deleted, meta_.Delete("k1", {}));
  view->NoteDelete("k1", deleted);
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Put("k2", "b", {}));
  AwaitRevision(*view, last);
  EXPECT_EQ(told_.Take(), (Lines{"k1=a", "-k1", "k2=b"}));
}

// A Meta that was restored from an old copy, or set up anew under the same address.
// Proves: S4
TEST_F(MetaViewTest, AMetaThatLostWhatItHadIsNotBelieved) {
  ASSERT_OK(meta_.Put("k1", "a", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t newest, meta_.Put("k1", "b", {}));
  const auto view = Open();
  EXPECT_EQ(told_.Take(), Lines{"k1=b"});
  MemoryMeta other(RealClock(), 2);
  faulty_.SwitchTo(other);
  faulty_.CutWatches();
  // It lists again, more than once, and keeps what it has.
  std::atomic<int> lists = 0;
  faulty_.SetFaults([&](FaultyMeta::Call call) {
    if (call == FaultyMeta::Call::kList) ++lists;
    return FaultyMeta::Fault::kNone;
  });
  while (lists < 3) std::this_thread::yield();
  EXPECT_EQ(view->revision(), newest);
  EXPECT_EQ(told_.Take(), Lines());
  faulty_.SwitchTo(meta_);
  ASSERT_OK_AND_ASSIGN(const uint64_t last, meta_.Put("k1", "c", {}));
  AwaitRevision(*view, last);
  EXPECT_EQ(told_.Take(), Lines{"k1=c"});
}

TEST_F(MetaViewTest, ItGoesWhileItTriesToListAgain) {
  auto view = Open();
  faulty_.SetFaults([](FaultyMeta::Call) { return FaultyMeta::Fault::kUnreachable; });
  faulty_.CutWatches();
  view.reset();
}

}  // namespace
}  // namespace holdfast
