#include "stores/payload_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/stores/fake_stores.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// No cache: every read is cold.
EngineOptions Uncached() {
  EngineOptions options;
  options.value_cache_entries = 0;
  return options;
}

EngineStats StatsOf(FakeStores& fake) {
  EngineStats stats;
  fake.deliveries().AddTo(stats);
  return stats;
}

TEST(PayloadIndexTest, AValueIsReadOnceAndKept) {
  EngineOptions options;
  options.value_cache_entries = 1;
  FakeStores fake(options);
  Accept(fake.deliveries().Put(DeliveryFor("a", "cold")));
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "cold");
  Accept(fake.deliveries().Put(DeliveryFor("b", "pushes nothing out")));
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "cold");
  EXPECT_EQ(fake.sink.reads(), 1u);
  EXPECT_EQ(StatsOf(fake).cache_hits, 1u);
  EXPECT_OK(fake.deliveries().Get("b"));
  EXPECT_OK(fake.deliveries().Get("a"));
  EXPECT_EQ(fake.sink.reads(), 3u);
}

// Proves: D6, G4
TEST(PayloadIndexTest, BytesOfAnotherKeyAreDamageNotAValue) {
  FakeStores fake(Uncached());
  const Commit a = fake.deliveries().Put(DeliveryFor("a"));
  const Commit b = fake.deliveries().Put(DeliveryFor("b"));
  fake.sink.ReplaceRecord(Lsn(a.lsn()), fake.sink.record(Lsn(b.lsn())));
  EXPECT_FAILS(fake.deliveries().Get("a"), kDataLoss, kDamage);
  EXPECT_OK(fake.deliveries().Get("b"));
}

// Proves: G4
TEST(PayloadIndexTest, ARecordOfAnotherKindIsDamage) {
  FakeStores fake(Uncached());
  const Commit put = fake.deliveries().Put(DeliveryFor("a"));
  std::string bytes;
  EncodeRecord(DeliveryRemove{.id = "a"}, bytes);
  fake.sink.ReplaceRecord(Lsn(put.lsn()), bytes);
  EXPECT_FAILS(fake.deliveries().Get("a"), kDataLoss, kDamage);
  fake.sink.ReplaceRecord(Lsn(put.lsn()), "");
  EXPECT_FAILS(fake.deliveries().Get("a"), kDataLoss, kDamage);
}

// Damage, a failed read and absence are three answers, and a read can be tried again.
// Proves: G4
TEST(PayloadIndexTest, AFailedReadIsNotAnAnswer) {
  FakeStores fake(Uncached());
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  fake.sink.FailReads(Unavailable(Detail::kIo, "EIO"));
  EXPECT_FAILS(fake.deliveries().Get("a"), kUnavailable, kIo);
  EXPECT_FAILS(fake.deliveries().Get("b"), kNotFound, kNone);
  EXPECT_EQ(fake.deliveries().Count(), 1u);
  fake.sink.FailReads(absl::OkStatus());
  EXPECT_OK(fake.deliveries().Get("a"));
}

// A reader that was overtaken must not bring its old bytes back.
// Proves: D6
TEST(PayloadIndexTest, ALateCacheFillDoesNotBringBackAnOldValue) {
  EngineOptions options;
  options.value_cache_entries = 1;
  FakeStores fake(options);
  Accept(fake.deliveries().Put(DeliveryFor("a", "old")));
  Accept(fake.deliveries().Put(DeliveryFor("b")));
  fake.sink.OnNextRead([&] { Accept(fake.deliveries().Put(DeliveryFor("a", "new"))); });
  // It may see either: the call was under way.
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "old");
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "new");
  // Nor may one that was overtaken by somebody who has read the new value.
  Accept(fake.deliveries().Put(DeliveryFor("a", "newer")));
  fake.sink.OnNextRead([&] {
    Accept(fake.deliveries().Put(DeliveryFor("a", "newest")));
    EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "newest");
  });
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "newer");
  const uint64_t reads = fake.sink.reads();
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "newest");
  EXPECT_EQ(fake.sink.reads(), reads);
}

// Proves: D2, D6
TEST(PayloadIndexTest, ALateCacheFillDoesNotBringBackARemovedKey) {
  EngineOptions options;
  options.value_cache_entries = 1;
  FakeStores fake(options);
  Accept(fake.deliveries().Put(DeliveryFor("a", "removed")));
  Accept(fake.deliveries().Put(DeliveryFor("b")));
  fake.sink.OnNextRead([&] {
    Accept(fake.deliveries().Remove({.id = "a"}));
    Accept(fake.deliveries().Put(DeliveryFor("c", "in the slot of a")));
    EXPECT_EQ(fake.deliveries().Get("c")->delivery.event, "in the slot of a");
  });
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.event, "removed");  // as it was when asked
  EXPECT_FAILS(fake.deliveries().Get("a"), kNotFound, kNone);
  EXPECT_EQ(fake.deliveries().Get("c")->delivery.event, "in the slot of a");
}

// The place that was read is gone because the key moved on meanwhile: the new place decides.
TEST(PayloadIndexTest, AReadThatFailsBecauseTheKeyMovedIsTriedAgain) {
  FakeStores fake(Uncached());
  Accept(fake.deliveries().Put(DeliveryFor("a", "old")));
  fake.sink.FailReads(Unavailable(Detail::kIo, "the segment is gone"));
  fake.sink.OnNextRead([&] {
    Accept(fake.deliveries().Put(DeliveryFor("a", "new")));
    fake.sink.OnNextRead([&] { fake.sink.FailReads(absl::OkStatus()); });
  });
  const auto got = fake.deliveries().Get("a");
  ASSERT_OK(got);
  EXPECT_EQ(got->delivery.event, "new");

  fake.sink.FailReads(DataLoss("the segment was recycled"));
  fake.sink.OnNextRead([&] { Accept(fake.deliveries().Remove({.id = "a"})); });
  EXPECT_FAILS(fake.deliveries().Get("a"), kNotFound, kNone);
}

// After a failed write only what was confirmed may be shown.
// Proves: G3, G4
TEST(PayloadIndexTest, AfterAFailureUnconfirmedKeysAreUnavailableAndOthersCanBeRead) {
  FakeStores fake;
  Accept(fake.deliveries().Put(DeliveryFor("old")));
  Accept(fake.deliveries().Put(DeliveryFor("retried")));
  Accept(fake.deliveries().Put(DeliveryFor("removed")));
  Accept(fake.offsets().Write({"t", "old", 0}, 1));
  const Commit last = fake.offsets().Write({"t", "c", 0}, 1);
  fake.sink.Confirm(Lsn(last.lsn()));
  EXPECT_FAILS(fake.deliveries().Get("never"), kNotFound, kNone);

  Accept(fake.deliveries().Put(DeliveryFor("new")));
  Accept(fake.deliveries().Update(
      {.id = "retried", .epoch = 1, .attempt = 2, .due = absl::Seconds(1)}));
  Accept(fake.deliveries().Remove({.id = "removed"}));
  Accept(fake.offsets().Write({"t", "c", 0}, 2));
  Accept(fake.offsets().Forget({"t", "old", 0}));
  Accept(fake.dead_letters().Record(DeadLetterFor("dead")));
  fake.sink.Poison();

  EXPECT_OK(fake.deliveries().Get("old"));
  for (const char* id : {"new", "retried", "removed", "never"}) {
    EXPECT_FAILS(fake.deliveries().Get(id), kUnavailable, kPoisoned);
  }
  EXPECT_FAILS(fake.offsets().Read({"t", "c", 0}), kUnavailable, kPoisoned);
  EXPECT_FAILS(fake.offsets().Read({"t", "old", 0}), kUnavailable, kPoisoned);
  EXPECT_FAILS(fake.dead_letters().IsDeadLettered("dead"), kUnavailable, kPoisoned);
  EXPECT_FALSE(fake.dead_letters().IsDeadLettered("other")->recorded);

  // The others are still visited, and the answer tells that some were left out.
  std::set<std::string> visited;
  EXPECT_FAILS(fake.deliveries().Iterate([&](const StoredDelivery& stored) {
    visited.insert(stored.delivery.id);
    return true;
  }),
               kUnavailable, kPoisoned);
  EXPECT_EQ(visited, std::set<std::string>{"old"});
}

TEST(PayloadIndexTest, OneThatCannotBeReadDoesNotStopTheOthers) {
  FakeStores fake(Uncached());
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  const Commit damaged = fake.deliveries().Put(DeliveryFor("b"));
  Accept(fake.deliveries().Put(DeliveryFor("c")));
  fake.sink.ReplaceRecord(Lsn(damaged.lsn()), "");
  std::set<std::string> visited;
  EXPECT_FAILS(fake.deliveries().Iterate([&](const StoredDelivery& stored) {
    visited.insert(stored.delivery.id);
    return true;
  }),
               kDataLoss, kDamage);
  EXPECT_EQ(visited, (std::set<std::string>{"a", "c"}));
}

// So that reads are long and go forward, wherever the live ones lie.
TEST(PayloadIndexTest, AVisitGoesForwardThroughTheJournal) {
  constexpr uint64_t kCount = 5'000;
  constexpr uint64_t kFirstRound = 1'024;  // by itself: who wants a few gets them at once
  FakeStores fake(Uncached());
  const auto id = [](uint64_t number) { return "id-" + std::to_string(number); };
  for (uint64_t number = 0; number < kCount; ++number) {
    Accept(fake.deliveries().Put(DeliveryFor(id(number))));
  }
  for (uint64_t number = 0; number < kCount; ++number) {
    Accept(fake.deliveries().Put(DeliveryFor(id(number * 7'919 % kCount))));
  }
  std::set<std::string> seen;
  std::vector<uint64_t> lsns;
  ASSERT_OK(fake.deliveries().Iterate([&](const StoredDelivery& stored) {
    seen.insert(stored.delivery.id);
    lsns.push_back(stored.lsn);
    return true;
  }));
  EXPECT_EQ(seen.size(), kCount);
  ASSERT_EQ(lsns.size(), kCount);
  EXPECT_TRUE(std::is_sorted(lsns.begin(), lsns.begin() + kFirstRound));
  EXPECT_TRUE(std::is_sorted(lsns.begin() + kFirstRound, lsns.end()));
}

}  // namespace
}  // namespace holdfast
