#include "journal/commit_callbacks.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class CommitCallbacksTest : public testing::Test {
 protected:
  CommitCallbacks::Callback Note(int name) {
    return [this, name](const Status& status) {
      calls_.push_back(name);
      statuses_.push_back(status);
    };
  }

  std::atomic<uint64_t> reached_ = 0;
  std::atomic<bool> failed_ = false;
  CommitCallbacks callbacks_{[this](Lsn lsn) -> std::optional<Status> {
    if (lsn.value() <= reached_) return absl::OkStatus();
    if (failed_) return Unavailable(Detail::kPoisoned, "poisoned");
    return std::nullopt;
  }};
  std::vector<int> calls_;
  std::vector<Status> statuses_;
};

TEST_F(CommitCallbacksTest, TheyRunByNumberWhateverTheOrderOfTheirComing) {
  EXPECT_TRUE(callbacks_.Add(Lsn(3), Note(3)));
  EXPECT_TRUE(callbacks_.Add(Lsn(1), Note(1)));
  EXPECT_TRUE(callbacks_.Add(Lsn(2), Note(2)));
  reached_ = 2;
  callbacks_.RunReady();
  EXPECT_EQ(calls_, (std::vector<int>{1, 2}));
  EXPECT_FALSE(callbacks_.empty());
  reached_ = 3;
  callbacks_.RunReady();
  EXPECT_EQ(calls_, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(callbacks_.empty());
}

TEST_F(CommitCallbacksTest, WhatIsKnownRunsAtOnce) {
  reached_ = 5;
  EXPECT_FALSE(callbacks_.Add(Lsn(5), Note(1)));
  EXPECT_EQ(calls_, (std::vector<int>{1}));
}

// Proves: G3
TEST_F(CommitCallbacksTest, AfterAFailureEachGetsItsOwnResult) {
  callbacks_.Add(Lsn(1), Note(1));
  callbacks_.Add(Lsn(2), Note(2));
  reached_ = 1;
  failed_ = true;
  callbacks_.RunReady();
  ASSERT_EQ(statuses_.size(), 2u);
  EXPECT_OK(statuses_[0]);
  EXPECT_FAILS(statuses_[1], kUnavailable, kPoisoned);
}

TEST_F(CommitCallbacksTest, ACallbackMayAddOthersAndDoesNotRunInsideAnother) {
  callbacks_.Add(Lsn(1), [&](const Status&) {
    EXPECT_TRUE(callbacks_.InCallback());
    EXPECT_TRUE(callbacks_.Add(Lsn(2), Note(2)));
    reached_ = 2;
    callbacks_.RunReady();  // nothing: one is running
    calls_.push_back(1);
  });
  reached_ = 1;
  callbacks_.RunReady();
  EXPECT_EQ(calls_, (std::vector<int>{1, 2}));
  EXPECT_FALSE(callbacks_.InCallback());
}

TEST_F(CommitCallbacksTest, AThreadRunsThemUntilItIsStopped) {
  std::thread runner([&] { callbacks_.Run(); });
  std::atomic<int> called = 0;
  for (uint64_t lsn = 1; lsn <= 1000; ++lsn) {
    callbacks_.Add(Lsn(lsn), [&](const Status&) { called.fetch_add(1); });
    reached_ = lsn;
    callbacks_.Signal();
  }
  callbacks_.Stop();
  runner.join();
  EXPECT_EQ(called, 1000);
}

}  // namespace
}  // namespace holdfast
