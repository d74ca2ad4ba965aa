#include "journal/commit_waiters.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "journal/base/mutex.h"

namespace holdfast {
namespace {

TEST(CommitWaitersTest, ReleaseCountsTheCallersOfItsGroupsOnly) {
  CommitWaiters waiters;
  (void)waiters.Enter(1);  // nobody sleeps on the ticket
  (void)waiters.Enter(1);  // nobody sleeps on the ticket
  (void)waiters.Enter(2);  // nobody sleeps on the ticket
  EXPECT_EQ(waiters.waiting(), 3u);
  EXPECT_EQ(waiters.Release(1, 2), 2u);
  EXPECT_EQ(waiters.waiting(), 1u);
  EXPECT_TRUE(waiters.TakeWakes().any());
  EXPECT_FALSE(waiters.TakeWakes().any());
}

TEST(CommitWaitersTest, WhoWokeUpInVainIsCountedOnce) {
  CommitWaiters waiters;
  const CommitWaiters::Ticket ticket = waiters.Enter(1);
  EXPECT_TRUE(waiters.Offer(1, 5));
  EXPECT_EQ(waiters.waiting(), 1u);
  waiters.Leave(ticket);
  EXPECT_EQ(waiters.waiting(), 0u);
  const CommitWaiters::Ticket again = waiters.Enter(1);
  EXPECT_EQ(waiters.Release(1, 2), 1u);
  waiters.Leave(again);  // was cleared with the others
  EXPECT_EQ(waiters.waiting(), 0u);
}

TEST(CommitWaitersTest, AnOfferGoesToTheOldestGroupThatHasACaller) {
  CommitWaiters waiters;
  EXPECT_FALSE(waiters.Offer(1, 100));
  (void)waiters.Enter(7);  // likewise
  (void)waiters.Enter(9);  // likewise
  EXPECT_TRUE(waiters.Offer(1, 100));
  EXPECT_EQ(waiters.TakeWakes().one, uint64_t{1} << 7);
}

// A thread that was released before it got to sleep does not sleep.
TEST(CommitWaitersTest, AReleaseBeforeTheSleepIsNotLost) {
  CommitWaiters waiters;
  const CommitWaiters::Ticket ticket = waiters.Enter(1);
  waiters.Release(1, 2);
  waiters.Wake(waiters.TakeWakes());
  waiters.Sleep(ticket);  // returns
}

TEST(CommitWaitersTest, EveryCallerWakesUp) {
  CommitWaiters waiters;
  Mutex mu;
  for (GroupNumber group = 1; group < 200; ++group) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        mu.Lock();
        const CommitWaiters::Ticket ticket = waiters.Enter(group);
        mu.Unlock();
        waiters.Sleep(ticket);
      });
    }
    size_t released = 0;
    while (released < 4) {
      mu.Lock();
      released += waiters.Release(group, group + 1);
      const CommitWaiters::Wakes wakes = waiters.TakeWakes();
      mu.Unlock();
      waiters.Wake(wakes);
      std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace holdfast
