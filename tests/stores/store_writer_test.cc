#include "stores/store_writer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/stores/fake_stores.h"
#include "tests/support/child_process.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(StoreWriterTest, AMutationIsOneBatchAndOneKick) {
  FakeStores fake;
  const Commit commit = fake.stores.Transact([](Transaction& t) {
    t.PutDelivery(DeliveryFor("a"));
    t.WriteOffset({"orders", "billing", 2}, 5);
    t.RecordDeadLetter(DeadLetterFor("b"));
  });
  EXPECT_OK(commit.Wait());
  EXPECT_TRUE(commit.changed());
  EXPECT_EQ(commit.lsn(), 3u);
  EXPECT_EQ(fake.sink.batches(), 1u);
  EXPECT_EQ(fake.sink.kicks(), 1u);
}

TEST(StoreWriterTest, AnEmptyTransactionChangesNothing) {
  FakeStores fake;
  const Commit commit = fake.stores.Transact([](Transaction&) {});
  EXPECT_OK(commit.Wait());
  EXPECT_FALSE(commit.changed());
  EXPECT_EQ(fake.sink.batches(), 0u);
}

// Proves: D3
TEST(StoreWriterTest, ARefusedBatchLeavesNoTrace) {
  FakeStores fake;
  fake.sink.Refuse(Exhausted(Detail::kDiskFull, "no room"));
  EXPECT_FAILS(fake.deliveries().Put(DeliveryFor("a")).Wait(), kResourceExhausted, kDiskFull);
  EXPECT_EQ(fake.deliveries().Count(), 0u);
  EXPECT_EQ(fake.sink.batches(), 0u);
  EXPECT_EQ(fake.sink.kicks(), 0u);
  fake.sink.Refuse(absl::OkStatus());
  EXPECT_FAILS(fake.deliveries().Get("a"), kNotFound, kNone);
  EXPECT_OK(fake.deliveries().Put(DeliveryFor("a")).Wait());
}

// Proves: D3
TEST(StoreWriterTest, OneRefusedChangeRefusesAll) {
  FakeStores fake;
  const Commit commit = fake.stores.Transact([](Transaction& t) {
    t.PutDelivery(DeliveryFor("a"));
    t.WriteOffset({"orders", "billing", 2}, 5);
    t.UpdateDelivery({.id = "nobody", .epoch = 1, .attempt = 1, .due = absl::Seconds(1)});
  });
  EXPECT_FAILS(commit.Wait(), kNotFound, kNone);
  EXPECT_FALSE(commit.changed());
  EXPECT_EQ(fake.sink.batches(), 0u);
  EXPECT_EQ(fake.deliveries().Count(), 0u);
  EXPECT_FAILS(fake.offsets().Read({"orders", "billing", 2}), kNotFound, kNone);
}

TEST(StoreWriterTest, ChangesAreJudgedInOrderAgainstWhatEarlierOnesLeave) {
  FakeStores fake;
  const Commit commit = fake.stores.Transact([](Transaction& t) {
    t.PutDelivery(DeliveryFor("a"));
    t.UpdateDelivery({.id = "a", .epoch = 4, .attempt = 1, .due = absl::Seconds(1)});
    t.RemoveDelivery("a", Reason::kAcked);
    t.RemoveDelivery("a", Reason::kAcked);  // dropped
    t.WriteOffset({"orders", "billing", 2}, 5);
    t.WriteOffset({"orders", "billing", 2}, 4);  // dropped
    t.ForgetOffset({"orders", "billing", 2});
    t.ForgetOffset({"orders", "billing", 2});  // dropped
    t.WriteOffset({"orders", "billing", 2}, 3);
    t.RecordDeadLetter(DeadLetterFor("a"));
    t.RecordDeadLetter(DeadLetterFor("a", "other"));  // dropped
    t.SourceSeen({"orders", 1, 2}, 0);
    t.SourceSeen({"orders", 1, 2}, 0);  // dropped
    t.SourceCursor({"orders", 1, 2}, 0);
  });
  EXPECT_OK(commit.Wait());
  EXPECT_EQ(commit.lsn(), 9u);
  EXPECT_EQ(fake.deliveries().Count(), 0u);
  EXPECT_EQ(fake.offsets().Read({"orders", "billing", 2})->position, OffsetPosition(3));
  EXPECT_EQ(fake.dead_letters().Get("a")->dead_letter.event, "event");

  const Commit late = fake.stores.Transact([](Transaction& t) {
    t.PutDelivery(DeliveryFor("b"));
    t.RemoveDelivery("b", Reason::kAcked);
    t.UpdateDelivery({.id = "b", .epoch = 4, .attempt = 1, .due = absl::Seconds(1)});
  });
  EXPECT_FAILS(late.Wait(), kNotFound, kNone);
}

TEST(StoreWriterTest, LargeTransactionsAreJudgedLikeSmallOnes) {
  FakeStores fake;
  const Commit commit = fake.stores.Transact([](Transaction& t) {
    for (int i = 0; i < 1'000; ++i) t.PutDelivery(DeliveryFor("id-" + std::to_string(i)));
    for (int i = 0; i < 1'000; i += 2) {
      t.RemoveDelivery("id-" + std::to_string(i), Reason::kAcked);
      t.RemoveDelivery("id-" + std::to_string(i), Reason::kAcked);
    }
  });
  EXPECT_OK(commit.Wait());
  EXPECT_EQ(commit.lsn(), 1'500u);
  EXPECT_EQ(fake.deliveries().Count(), 500u);
}

// A no-op answers with the record that made it so.
// Proves: A8
TEST(StoreWriterTest, ANoOpRestsOnTheRecordThatMadeItSo) {
  FakeStores fake;
  Accept(fake.deliveries().Put(DeliveryFor("a")));                     // 1
  const Commit removed = fake.deliveries().Remove({.id = "a"});        // 2
  const Commit offset = fake.offsets().Write({"t", "c", 0}, 9);        // 3
  const Commit dead = fake.dead_letters().Record(DeadLetterFor("d"));  // 4

  const Commit removed_again = fake.deliveries().Remove({.id = "a"});
  EXPECT_FALSE(removed_again.changed());
  EXPECT_EQ(removed_again.lsn(), removed.lsn());
  const Commit offset_again = fake.offsets().Write({"t", "c", 0}, 9);
  EXPECT_FALSE(offset_again.changed());
  EXPECT_EQ(offset_again.lsn(), offset.lsn());
  const Commit dead_again = fake.dead_letters().Record(DeadLetterFor("d", "late"));
  EXPECT_FALSE(dead_again.changed());
  EXPECT_EQ(dead_again.lsn(), dead.lsn());
  EXPECT_EQ(fake.sink.batches(), 4u);
  EXPECT_FALSE(removed_again.confirmed());

  // A refusal that rests on a removal is given away only when that removal is confirmed.
  const Commit late =
      fake.deliveries().Update({.id = "a", .epoch = 1, .attempt = 1, .due = absl::Seconds(1)});
  EXPECT_EQ(late.lsn(), removed.lsn());
  fake.sink.Poison();
  EXPECT_FAILS(late.Wait(), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(removed_again.Wait(), kUnavailable, kUnknownOutcome);
  fake.sink.Confirm(Lsn(removed.lsn()));
  EXPECT_FAILS(late.Wait(), kNotFound, kNone);
  EXPECT_OK(removed_again.Wait());
}

// In one transaction, too: the answer to a batch whose records were all dropped.
// Proves: A8
TEST(StoreWriterTest, ABatchOfNoOpsRestsOnTheNewestOfTheirRecords) {
  FakeStores fake;
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  Accept(fake.offsets().Write({"t", "c", 0}, 9));
  const Commit removed = fake.deliveries().Remove({.id = "a"});
  const Commit again = fake.stores.Transact([](Transaction& t) {
    t.RemoveDelivery("a", Reason::kAcked);
    t.WriteOffset({"t", "c", 0}, 9);
  });
  EXPECT_FALSE(again.changed());
  EXPECT_EQ(again.lsn(), removed.lsn());
  EXPECT_EQ(fake.sink.batches(), 3u);
}

TEST(StoreWriterTest, NothingEverWrittenNeedsNoConfirmation) {
  FakeStores fake;
  const Commit removed = fake.deliveries().Remove({.id = "nobody"});
  EXPECT_FALSE(removed.changed());
  EXPECT_TRUE(removed.confirmed());
  fake.sink.Poison();
  EXPECT_OK(removed.Wait());
}

// Puts and retries must not eat the reserve that acknowledgements live on.
TEST(StoreWriterTest, OnlyWhatEndsStateMayUseTheReserve) {
  FakeStores fake;
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  EXPECT_EQ(fake.sink.claim(), Claim::kGrow);
  Accept(fake.deliveries().Update({.id = "a", .epoch = 1, .attempt = 1, .due = absl::Seconds(1)}));
  EXPECT_EQ(fake.sink.claim(), Claim::kGrow);
  Accept(fake.stores.Transact([](Transaction& t) {
    t.RemoveDelivery("a", Reason::kAcked);
    t.WriteOffset({"t", "c", 0}, 1);
    t.SourceCursor({"t", 0, 0}, 1);
  }));
  EXPECT_EQ(fake.sink.claim(), Claim::kShrink);
  Accept(fake.dead_letters().Record(DeadLetterFor("d")));
  EXPECT_EQ(fake.sink.claim(), Claim::kGrow);
  Accept(fake.dead_letters().Purge("d"));
  EXPECT_EQ(fake.sink.claim(), Claim::kShrink);
}

// A thread that finds the sequencer taken lays its batch out, and whoever holds it writes that too.
TEST(StoreWriterTest, TheHolderWritesWhatOthersWaitWith) {
  constexpr size_t kOthers = 3;
  FakeStores fake;
  std::vector<std::thread> others;
  std::vector<Commit> commits(kOthers);
  fake.sink.OnNextAppend([&] {
    for (size_t i = 0; i < kOthers; ++i) {
      others.emplace_back([&, i] {
        commits[i] = i == 0 ? fake.deliveries().Update({.id = "nobody", .epoch = 1, .attempt = 1})
                            : fake.deliveries().Put(DeliveryFor("b" + std::to_string(i)));
      });
    }
    while (fake.stores.writer().waiting() < kOthers) std::this_thread::yield();
  });
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  for (std::thread& other : others) other.join();

  EXPECT_FAILS(commits[0].Wait(), kNotFound, kNone);
  for (size_t i = 1; i < kOthers; ++i) EXPECT_OK(commits[i].Wait());
  EXPECT_EQ(fake.deliveries().Count(), kOthers);
  EXPECT_EQ(fake.sink.kicks(), kOthers);
  EXPECT_EQ(fake.sink.appended_by(),
            std::vector<std::thread::id>(kOthers, std::this_thread::get_id()));
  EXPECT_EQ(fake.stores.writer().waiting(), 0u);
}

// It waits for room for nobody but itself.
TEST(StoreWriterTest, WhatFindsNoRoomAtOnceIsLeftToItsThread) {
  FakeStores fake;
  std::thread other;
  Commit refused;
  fake.sink.OnNextAppend([&] {
    fake.sink.Refuse(Exhausted(Detail::kDiskFull, "no room"));
    other = std::thread([&] { refused = fake.deliveries().Put(DeliveryFor("b")); });
    while (fake.stores.writer().waiting() < 1) std::this_thread::yield();
  });
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  other.join();
  EXPECT_FAILS(refused.Wait(), kResourceExhausted, kDiskFull);
  EXPECT_NE(fake.sink.reserved_by(), std::this_thread::get_id());
  EXPECT_EQ(fake.stores.writer().waiting(), 0u);
}

// Threads that come and go all get their own answers, in an order that is the same for all.
TEST(StoreWriterTest, ManyThreadsWriteOneOrder) {
  constexpr int kThreads = 12;  // more than there are places to wait in
  constexpr uint64_t kEach = 2'000;
  FakeStores fake;
  std::vector<std::thread> threads;
  std::vector<std::vector<uint64_t>> lsns(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t next = 1; next <= kEach; ++next) {
        const Commit commit =
            fake.offsets().Write({"orders", "client-" + std::to_string(thread), 0}, next);
        if (commit.changed()) lsns[thread].push_back(commit.lsn());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const std::vector<uint64_t>& of_thread : lsns) {
    EXPECT_EQ(of_thread.size(), kEach);
    EXPECT_TRUE(std::is_sorted(of_thread.begin(), of_thread.end()));
    all.insert(of_thread.begin(), of_thread.end());
  }
  EXPECT_EQ(all.size(), kThreads * kEach);
  EXPECT_EQ(fake.sink.batches(), kThreads * kEach);
  EXPECT_EQ(fake.sink.kicks(), kThreads * kEach);
}

// Proves: G9
TEST(StoreWriterTest, AForkedChildIsRefused) {
  FakeStores fake;
  EXPECT_EQ(InChild([&] {
              const Status put = fake.deliveries().Put(DeliveryFor("a")).Wait();
              if (DetailOf(put) != Detail::kLocked) return put.ToString();
              if (fake.sink.batches() != 0) return std::string("it was appended");
              return std::string();
            }),
            "");
  EXPECT_OK(fake.deliveries().Put(DeliveryFor("a")).Wait());
}

}  // namespace
}  // namespace holdfast
