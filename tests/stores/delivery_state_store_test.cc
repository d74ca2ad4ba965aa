#include "stores/delivery_state_store.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "stores/store_limits.h"
#include "tests/stores/backends.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/encoded_record.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class DeliveryStateStoreTest : public testing::TestWithParam<Backend> {
 protected:
  StoreUnderTest store_{GetParam()};
  DeliveryStateStore& deliveries() { return store_->deliveries(); }
};
INSTANTIATE_TEST_SUITE_P(Backends, DeliveryStateStoreTest, testing::ValuesIn(kBackends),
                         BackendName);

// Every combination that a field can be in, as far as encodings care.
std::vector<Delivery> Various() {
  std::vector<Delivery> various;
  various.push_back({.id = "least"});
  Delivery most = DeliveryFor(std::string("id\0with#/|\xff", 11), std::string(1 << 18, '\xfe'));
  most.epoch = UINT64_MAX;
  most.topic = std::string(kNameBytesMax, 't');
  most.incarnation = UINT64_MAX;
  most.partition = UINT64_MAX;
  most.offset = kOffsetMax;
  most.client = std::string(1, '\0');
  most.attempt = UINT32_MAX;
  most.due = absl::InfiniteDuration();
  most.created = absl::InfiniteFuture();
  most.redriven_from = "";
  various.push_back(most);
  Delivery early = DeliveryFor("early", "");
  early.offset = 0;
  early.due = -absl::Nanoseconds(1);
  early.created = absl::FromUnixNanos(-1);
  early.redriven_from = "somebody";
  various.push_back(early);
  various.push_back(DeliveryFor("one byte", "x"));
  various.push_back(DeliveryFor("zeros", std::string(10'000, '\0')));
  std::string noise(5'000, '\0');
  SeededRng rng(1);
  for (char& byte : noise) byte = static_cast<char>(rng.Next());
  various.push_back(DeliveryFor("noise", noise));
  return various;
}

// Proves: D1
TEST_P(DeliveryStateStoreTest, EveryFieldComesBack) {
  store_.options().segment_bytes = uint64_t{4} << 20;
  store_.Reopen();
  std::map<std::string, Delivery> put;
  for (const Delivery& delivery : Various()) {
    ASSERT_OK(deliveries().Put(delivery).Wait()) << delivery.id;
    put[delivery.id] = delivery;
  }
  const auto check = [&] {
    EXPECT_EQ(deliveries().Count(), put.size());
    for (const auto& [id, delivery] : put) {
      const auto got = deliveries().Get(id);
      ASSERT_OK(got) << id;
      EXPECT_EQ(got->delivery, delivery) << id;
      EXPECT_TRUE(got->durable);
    }
    std::map<std::string, Delivery> visited;
    EXPECT_OK(deliveries().Iterate([&](const StoredDelivery& stored) {
      EXPECT_TRUE(visited.emplace(stored.delivery.id, stored.delivery).second);
      return true;
    }));
    EXPECT_EQ(visited, put);
  };
  check();
  store_.Reopen();
  check();
  store_.CutPower();
  check();
}

// Proves: D1
TEST_P(DeliveryStateStoreTest, EmptyAndAbsentStayDistinct) {
  Delivery absent = DeliveryFor("absent");
  absent.offset.reset();
  absent.redriven_from.reset();
  Delivery empty = DeliveryFor("empty");
  empty.offset = 0;
  empty.redriven_from = "";
  ASSERT_OK(deliveries().Put(absent).Wait());
  ASSERT_OK(deliveries().Put(empty).Wait());
  store_.Reopen();
  EXPECT_EQ(deliveries().Get("absent")->delivery.offset, std::nullopt);
  EXPECT_EQ(deliveries().Get("absent")->delivery.redriven_from, std::nullopt);
  EXPECT_EQ(deliveries().Get("empty")->delivery.offset, 0u);
  EXPECT_EQ(deliveries().Get("empty")->delivery.redriven_from, "");
}

TEST_P(DeliveryStateStoreTest, APutReplacesALiveOne) {
  ASSERT_OK(deliveries().Put(DeliveryFor("a", "first")).Wait());
  ASSERT_OK(deliveries().Put(DeliveryFor("a", "second")).Wait());
  EXPECT_EQ(deliveries().Count(), 1u);
  EXPECT_EQ(deliveries().Get("a")->delivery.event, "second");
  store_.Kill();
  EXPECT_EQ(deliveries().Count(), 1u);
  EXPECT_EQ(deliveries().Get("a")->delivery.event, "second");
}

TEST_P(DeliveryStateStoreTest, AnUpdateChangesWhatItNamesAndNothingElse) {
  Delivery expected = DeliveryFor("a");
  ASSERT_OK(deliveries().Put(expected).Wait());
  const Commit update = deliveries().Update(
      {.id = "a", .epoch = 9, .attempt = 4, .due = absl::Seconds(99) + absl::Nanoseconds(1)});
  ASSERT_OK(update.Wait());
  EXPECT_TRUE(update.changed());
  expected.epoch = 9;
  expected.attempt = 4;
  expected.due = absl::Seconds(99) + absl::Nanoseconds(1);
  EXPECT_EQ(deliveries().Get("a")->delivery, expected);
  EXPECT_EQ(deliveries().Get("a")->lsn, update.lsn());
  store_.CutPower();
  EXPECT_EQ(deliveries().Get("a")->delivery, expected);
}

// Remove wins over retry.
// Proves: D2
TEST_P(DeliveryStateStoreTest, NothingBringsARemovedOneBack) {
  ASSERT_OK(deliveries().Put(DeliveryFor("a")).Wait());
  ASSERT_OK(deliveries().Remove({.id = "a", .reason = Reason::kAcked}).Wait());
  const auto gone = [&] {
    EXPECT_FAILS(deliveries().Get("a"), kNotFound, kNone);
    EXPECT_EQ(deliveries().Count(), 0u);
    EXPECT_FAILS(
        deliveries().Update({.id = "a", .epoch = 1, .attempt = 1, .due = absl::Seconds(1)}).Wait(),
        kNotFound, kNone);
    const Commit again = deliveries().Remove({.id = "a"});
    EXPECT_OK(again.Wait());
    EXPECT_FALSE(again.changed());
    EXPECT_OK(deliveries().Iterate([](const StoredDelivery&) {
      ADD_FAILURE();
      return true;
    }));
  };
  gone();
  store_.Kill();
  gone();
  store_.CutPower();
  gone();
}

// Proves: D4
TEST_P(DeliveryStateStoreTest, AVisitorMayRemoveWhatItVisits) {
  for (int i = 0; i < 100; ++i) Accept(deliveries().Put(DeliveryFor(std::to_string(i))));
  std::set<std::string> visited;
  EXPECT_OK(deliveries().Iterate([&](const StoredDelivery& stored) {
    EXPECT_TRUE(visited.insert(stored.delivery.id).second);
    EXPECT_TRUE(deliveries().Remove({.id = stored.delivery.id}).changed());
    Accept(deliveries().Put(DeliveryFor("later " + stored.delivery.id)));  // not visited
    return true;
  }));
  EXPECT_EQ(visited.size(), 100u);
  EXPECT_EQ(deliveries().Count(), 100u);
}

// Proves: D4
TEST_P(DeliveryStateStoreTest, WhatAVisitorRemovedIsNotVisited) {
  for (int i = 0; i < 100; ++i) Accept(deliveries().Put(DeliveryFor(std::to_string(i))));
  std::set<std::string> removed;
  EXPECT_OK(deliveries().Iterate([&](const StoredDelivery& stored) {
    EXPECT_FALSE(removed.contains(stored.delivery.id));
    const std::string other = std::to_string(99 - std::stoi(stored.delivery.id));
    if (deliveries().Remove({.id = other}).changed()) removed.insert(other);
    return true;
  }));
}

TEST_P(DeliveryStateStoreTest, AVisitEndsWhenTheVisitorSaysSo) {
  for (int i = 0; i < 10; ++i) Accept(deliveries().Put(DeliveryFor(std::to_string(i))));
  int visits = 0;
  EXPECT_OK(deliveries().Iterate([&](const StoredDelivery&) { return ++visits < 3; }));
  EXPECT_EQ(visits, 3);
}

// Proves: D3
TEST_P(DeliveryStateStoreTest, ARefusedPutLeavesNoTrace) {
  Delivery wrong = DeliveryFor("a");
  wrong.offset = kOffsetMax + 1;
  EXPECT_FAILS(deliveries().Put(wrong).Wait(), kInvalidArgument, kNone);
  EXPECT_FAILS(deliveries().Put(DeliveryFor("")).Wait(), kInvalidArgument, kNone);
  wrong = DeliveryFor(std::string(kNameBytesMax + 1, 'x'));
  EXPECT_FAILS(deliveries().Put(wrong).Wait(), kInvalidArgument, kNone);
  EXPECT_EQ(deliveries().Count(), 0u);
  store_.Reopen();
  EXPECT_EQ(deliveries().Count(), 0u);
}

TEST_P(DeliveryStateStoreTest, FlushConfirmsWhatWasWritten) {
  const Commit put = deliveries().Put(DeliveryFor("a"));
  EXPECT_OK(deliveries().Flush());
  EXPECT_TRUE(put.confirmed());
  EXPECT_TRUE(deliveries().Get("a")->durable);
}

// --- The journal alone

TEST(JournalDeliveryStateStoreTest, AValueIsVisibleBeforeItIsDurableAndSaysSo) {
  FakeStores fake;
  const Commit put = fake.deliveries().Put(DeliveryFor("a"));
  EXPECT_FALSE(put.confirmed());
  EXPECT_FALSE(fake.deliveries().Get("a")->durable);
  EXPECT_EQ(fake.deliveries().Get("a")->lsn, put.lsn());
  EXPECT_OK(put.Wait());
  EXPECT_TRUE(fake.deliveries().Get("a")->durable);
}

// The law of replay: applying everything again changes nothing.
TEST(JournalDeliveryStateStoreTest, ReplayIsIdempotent) {
  FakeStores fake;
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  Accept(fake.deliveries().Put(DeliveryFor("b")));
  Accept(fake.deliveries().Update({.id = "a", .epoch = 5, .attempt = 2, .due = absl::Seconds(1)}));
  Accept(fake.deliveries().Put(DeliveryFor("b", "again")));
  Accept(fake.offsets().Write({"t", "c", 0}, 7));
  Accept(fake.dead_letters().Record(DeadLetterFor("d")));
  const StoredDelivery a = *fake.deliveries().Get("a");
  fake.sink.Replay(fake.stores.machines());
  EXPECT_EQ(fake.deliveries().Get("a")->delivery, a.delivery);
  EXPECT_EQ(fake.deliveries().Get("a")->lsn, a.lsn);
  EXPECT_EQ(fake.deliveries().Get("b")->delivery.event, "again");
  EXPECT_EQ(fake.deliveries().Count(), 2u);
}

// In replay a reschedule without a live entry is not an error: its delivery was removed.
TEST(JournalDeliveryStateStoreTest, AReplayedRescheduleOfNobodyIsIgnored) {
  FakeStores fake;
  MutexLock lock(fake.sequencer);
  fake.stores.machines().Apply(
      EncodedRecord(DeliveryReschedule{.id = "nobody", .attempt = 1}).raw(), Lsn(1), {});
  fake.stores.machines().Apply(EncodedRecord(DeliveryRemove{.id = "nobody"}).raw(), Lsn(2), {});
}

TEST(JournalDeliveryStateStoreTest, AttemptsSaturate) {
  FakeStores fake;
  Accept(fake.deliveries().Put(DeliveryFor("a")));
  {
    MutexLock lock(fake.sequencer);
    fake.stores.machines().Apply(
        EncodedRecord(DeliveryReschedule{.id = "a", .attempt = UINT64_MAX}).raw(), Lsn(9), {});
  }
  EXPECT_EQ(fake.deliveries().Get("a")->delivery.attempt, UINT32_MAX);
}

// Events cost memory only while they are cached.
// Proves: D5
TEST(JournalDeliveryStateStoreTest, MemoryDoesNotGrowWithTheSizeOfEvents) {
  uint64_t index_bytes[2] = {0, 0};
  for (const int large : {0, 1}) {
    EngineOptions options;
    options.value_cache_entries = 1'000;
    options.value_cache_bytes = 500'000;
    FakeStores fake(options);
    for (int i = 0; i < 20'000; ++i) {
      Accept(fake.deliveries().Put(
          DeliveryFor("id-" + std::to_string(i), std::string(large != 0 ? 1'024 : 1, 'x'))));
    }
    index_bytes[large] = fake.deliveries().IndexBytes();
    EngineStats stats;
    fake.deliveries().AddTo(stats);
    EXPECT_LE(stats.cache_entries, 1'000u);
    EXPECT_LE(stats.cache_bytes, 500'000u);
  }
  EXPECT_EQ(index_bytes[0], index_bytes[1]);
}

}  // namespace
}  // namespace holdfast
