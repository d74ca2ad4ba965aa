#include "meta/request_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace holdfast {
namespace {

// A gate that work waits at.
class Latch {
 public:
  void Open() {
    MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    MutexLock lock(mu_);
    ++arrived_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mu_);
  }
  void AwaitArrived(int count) {
    MutexLock lock(mu_);
    while (arrived_ < count) changed_.Wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
};

TEST(RequestPoolTest, WorkRunsSideBySideAndNotMoreThanMayWaits) {
  Latch latch;
  RequestPool pool({.threads = 2, .waiting_max = 1});
  ASSERT_TRUE(pool.Run([&] { latch.Pass(); }));
  latch.AwaitArrived(1);
  ASSERT_TRUE(pool.Run([&] { latch.Pass(); }));
  latch.AwaitArrived(2);
  EXPECT_TRUE(pool.Run([] {}));
  EXPECT_FALSE(pool.Run([] {}));
  latch.Open();
}

TEST(RequestPoolTest, WhatWaitsIsDoneBeforeItEnds) {
  Latch latch;
  std::atomic<int> done = 0;
  auto pool = std::make_unique<RequestPool>(RequestPool::Limits{.threads = 1});
  ASSERT_TRUE(pool->Run([&] { latch.Pass(); }));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool->Run([&] { ++done; }));
  latch.Open();
  pool.reset();
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace holdfast
