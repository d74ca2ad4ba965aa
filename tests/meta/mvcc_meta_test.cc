#include "meta/mvcc_meta.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/meta/watch_log.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

struct GateMutex {
  Mutex own_mutex;  // Guards the state of the Meta above it.
};

// What is appended becomes durable when the test says so, or never.
class GateMeta final : private GateMutex, public MvccMeta {
 public:
  explicit GateMeta(Clock& clock) : MvccMeta(own_mutex, clock, 1, {}) {
    MutexLock lock(mu_);
    Serve({.threads = false});
  }
  ~GateMeta() override { Stop(); }

  void MakeDurable(Status outcome = absl::OkStatus()) {
    std::vector<std::function<void(Status)>> ready;
    {
      MutexLock lock(mu_);
      durable_ = appended_;
      outcome_ = outcome;
      ready.swap(waiting_);
    }
    for (const auto& callback : ready) callback(outcome);
  }
  void RefuseNext(Status status) {
    MutexLock lock(mu_);
    refuse_ = std::move(status);
  }

 private:
  Status Reserve(const std::vector<MvccChange>&) override {
    mu_.AssertHeld();
    return std::exchange(refuse_, absl::OkStatus());
  }
  uint64_t Append(const std::vector<MvccChange>& changes) override {
    mu_.AssertHeld();
    for (const MvccChange& change : changes) state_.Apply(change, clock_.Now());
    return ++appended_;
  }
  void Kick() override {}
  void WhenDurable(uint64_t position, std::function<void(Status)> callback) override {
    {
      MutexLock lock(mu_);
      if (position > durable_) {
        waiting_.push_back(std::move(callback));
        return;
      }
    }
    callback(outcome_);
  }
  Status WaitDurable(uint64_t position, absl::Duration) override {
    MutexLock lock(mu_);
    if (position <= durable_) return outcome_;
    return MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone, "not by the deadline");
  }

  uint64_t appended_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t durable_ ABSL_GUARDED_BY(mu_) = 0;
  Status outcome_;
  Status refuse_ ABSL_GUARDED_BY(mu_);
  std::vector<std::function<void(Status)>> waiting_ ABSL_GUARDED_BY(mu_);
};

class MvccMetaTest : public testing::Test {
 protected:
  SimClock clock_;
  GateMeta meta_{clock_};
};

// Proves: S2, S3
TEST_F(MvccMetaTest, WhatIsNotDurableByTheDeadlineIsUnknownAndCanBeReadBack) {
  const auto put = meta_.Put("k", "v", {.request_id = "mine"});
  EXPECT_FAILS(put, kUnavailable, kUnknownOutcome);
  EXPECT_EQ(MetaResultOf(put.status()), MetaResult::kUnknown);
  // Nobody sees it before it is durable; nor does anybody get an answer that rests on it.
  EXPECT_EQ(MetaResultOf(meta_.Get("k", {}).status()), MetaResult::kUnavailable);
  EXPECT_EQ(MetaResultOf(meta_.List("", {}).status()), MetaResult::kUnavailable);
  EXPECT_EQ(MetaResultOf(meta_.PutIfAbsent("k", "w", {}).status()), MetaResult::kUnavailable);
  meta_.MakeDurable();
  EXPECT_EQ(meta_.Get("k", {})->request_id, "mine");
  EXPECT_FAILS(meta_.PutIfAbsent("k", "w", {}), kAborted, kConflict);
}

TEST_F(MvccMetaTest, AWatchShowsWhatIsDurableAndNothingElse) {
  WatchLog log(meta_, "k", 1);
  EXPECT_FALSE(meta_.Put("k", "1", {}).ok());
  meta_.Tick();
  EXPECT_TRUE(log.events().empty());
  EXPECT_EQ(meta_.published_revision(), 1u);
  meta_.MakeDurable();
  meta_.Tick();
  ASSERT_EQ(log.events().size(), 1u);
  EXPECT_EQ(log.events()[0].entry.value, "1");
  EXPECT_EQ(meta_.published_revision(), 2u);
}

// Proves: S2
TEST_F(MvccMetaTest, WhatNeverBecomesDurableEndsTheWatchesAndIsUnknown) {
  WatchLog log(meta_, "k", 1);
  EXPECT_FALSE(meta_.Put("k", "1", {}).ok());
  meta_.MakeDurable(Unavailable(Detail::kPoisoned, "the sync failed"));
  meta_.Tick();
  EXPECT_TRUE(log.resynced());
  EXPECT_TRUE(log.events().empty());
  EXPECT_FAILS(meta_.Get("k", {}), kUnavailable, kPoisoned);
  EXPECT_FAILS(meta_.ChangesOf(KeyRange::All(), 1, 1), kUnavailable, kPoisoned);
}

// Proves: S2
TEST_F(MvccMetaTest, WhatFoundNoRoomDidNotHappen) {
  meta_.RefuseNext(Exhausted(Detail::kDiskFull, "the disk is full"));
  const auto put = meta_.Put("k", "1", {});
  EXPECT_FAILS(put, kResourceExhausted, kDiskFull);
  EXPECT_EQ(MetaResultOf(put.status()), MetaResult::kUnavailable);
  EXPECT_FAILS(meta_.Get("k", {}), kNotFound, kNone);
}

TEST_F(MvccMetaTest, WithoutThreadsATickEndsLeases) {
  const auto lease = [&] {
    auto granted = meta_.GrantLeaseAs(7, absl::Seconds(10), {});
    meta_.MakeDurable();
    return granted;
  }();
  EXPECT_FAILS(lease, kUnavailable, kUnknownOutcome);
  EXPECT_FALSE(meta_.Put("k", "", {.lease = 7}).ok());
  meta_.MakeDurable();
  WatchLog log(meta_, "k", 3);
  clock_.Advance(absl::Seconds(10));
  meta_.Tick();
  meta_.MakeDurable();
  meta_.Tick();
  ASSERT_EQ(log.events().size(), 1u);
  EXPECT_EQ(log.events()[0].kind, MetaEvent::Kind::kDelete);
  EXPECT_TRUE(meta_.Leases({})->empty());
}

TEST_F(MvccMetaTest, LeasesAreChosenOrGivenAndCanBeLookedAt) {
  EXPECT_FALSE(meta_.GrantLeaseAs(7, absl::Seconds(10), {}).ok());
  meta_.MakeDurable();
  EXPECT_FAILS(meta_.GrantLeaseAs(7, absl::Seconds(10), {}), kAlreadyExists, kNone);
  EXPECT_FALSE(meta_.GrantLeaseAs(0, absl::Seconds(10), {}).ok());
  EXPECT_FALSE(meta_.Put("k", "", {.lease = 7}).ok());
  meta_.MakeDurable();
  EXPECT_EQ(meta_.Leases({})->size(), 2u);
  clock_.Advance(absl::Seconds(4));
  ASSERT_OK_AND_ASSIGN(const MvccLeaseInfo info, meta_.LeaseInfo(7, {}));
  EXPECT_EQ(info.left, absl::Seconds(6));
  EXPECT_EQ(info.keys, std::vector<std::string>{"k"});
  EXPECT_EQ(RefusalOf(meta_.LeaseInfo(8, {}).status()), MvccRefusal::kLeaseNotFound);
}

}  // namespace
}  // namespace holdfast
