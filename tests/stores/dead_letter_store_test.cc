#include "stores/dead_letter_store.h"

#include <gtest/gtest.h>

#include <set>

#include "stores/store_limits.h"
#include "tests/stores/backends.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class DeadLetterStoreTest : public testing::TestWithParam<Backend> {
 protected:
  StoreUnderTest store_{GetParam()};
  DeadLetterStore& dead_letters() { return store_->dead_letters(); }
  bool Recorded(std::string_view id) {
    const auto presence = dead_letters().IsDeadLettered(id);
    EXPECT_OK(presence);
    return presence->recorded;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, DeadLetterStoreTest, testing::ValuesIn(kBackends), BackendName);

// Proves: D1
TEST_P(DeadLetterStoreTest, EveryFieldComesBack) {
  std::vector<DeadLetter> various;
  various.push_back({.delivery_id = "least"});
  DeadLetter most = DeadLetterFor(std::string("id\0with#/|\xff", 11), std::string(1 << 17, '\xfe'));
  most.dlq_topic = "";
  most.dlq_offset = kOffsetMax;
  most.attempts = UINT32_MAX;
  most.epoch = UINT64_MAX;
  most.offset = 0;
  most.died = absl::InfinitePast();
  various.push_back(most);
  DeadLetter no_offset = DeadLetterFor("no offset", "");
  no_offset.offset.reset();
  various.push_back(no_offset);
  for (const DeadLetter& dead_letter : various) {
    ASSERT_OK(dead_letters().Record(dead_letter).Wait());
  }
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(dead_letters().Count(), various.size());
    for (const DeadLetter& dead_letter : various) {
      const auto got = dead_letters().Get(dead_letter.delivery_id);
      ASSERT_OK(got) << dead_letter.delivery_id;
      EXPECT_EQ(got->dead_letter, dead_letter);
      EXPECT_EQ(got->replays, 0u);
      EXPECT_TRUE(got->durable);
    }
    std::set<std::string> visited;
    EXPECT_OK(dead_letters().Iterate([&](const StoredDeadLetter& stored) {
      EXPECT_TRUE(visited.insert(stored.dead_letter.delivery_id).second);
      return true;
    }));
    EXPECT_EQ(visited.size(), various.size());
    store_.CutPower();
  }
}

TEST_P(DeadLetterStoreTest, TheFirstRecordWins) {
  EXPECT_TRUE(dead_letters().Record(DeadLetterFor("a", "first")).changed());
  const Commit second = dead_letters().Record(DeadLetterFor("a", "second"));
  EXPECT_OK(second.Wait());
  EXPECT_FALSE(second.changed());
  EXPECT_EQ(dead_letters().Get("a")->dead_letter.event, "first");
  EXPECT_EQ(dead_letters().Count(), 1u);
  store_.Kill();
  EXPECT_EQ(dead_letters().Get("a")->dead_letter.event, "first");
}

TEST_P(DeadLetterStoreTest, APurgedOneIsGone) {
  ASSERT_OK(dead_letters().Record(DeadLetterFor("a")).Wait());
  EXPECT_TRUE(Recorded("a"));
  EXPECT_TRUE(dead_letters().Purge("a").changed());
  EXPECT_FALSE(dead_letters().Purge("a").changed());
  EXPECT_FALSE(Recorded("a"));
  EXPECT_FAILS(dead_letters().Get("a"), kNotFound, kNone);
  ASSERT_OK(dead_letters().Flush());
  store_.Kill();
  EXPECT_FALSE(Recorded("a"));
  EXPECT_EQ(dead_letters().Count(), 0u);
}

// A delivery moves here in one batch: never in both places, never in none.
// Proves: A1, D2
TEST_P(DeadLetterStoreTest, AMoveIsOneBatch) {
  ASSERT_OK(store_->deliveries().Put(DeliveryFor("a")).Wait());
  ASSERT_OK(store_
                ->Transact([](Transaction& t) {
                  t.RecordDeadLetter(DeadLetterFor("a"));
                  t.RemoveDelivery("a", Reason::kDeadLettered);
                  t.WriteOffset({"orders", "billing", 2}, 4712);
                })
                .Wait());
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(Recorded("a"));
    EXPECT_FAILS(store_->deliveries().Get("a"), kNotFound, kNone);
    EXPECT_EQ(store_->offsets().Read({"orders", "billing", 2})->position, OffsetPosition(4712));
    store_.CutPower();
  }
}

TEST_P(DeadLetterStoreTest, ARedriveIsANewDeliveryThatNamesItsOrigin) {
  const std::string event(10'000, 'e');  // stored compressed
  ASSERT_OK(dead_letters().Record(DeadLetterFor("a", event)).Wait());
  const Commit redrive = dead_letters().Redrive(
      "a", {.new_id = "b", .due = absl::Seconds(5), .created = absl::FromUnixSeconds(9)});
  ASSERT_OK(redrive.Wait());
  EXPECT_TRUE(redrive.changed());
  for (int round = 0; round < 2; ++round) {
    const auto delivery = store_->deliveries().Get("b");
    ASSERT_OK(delivery);
    Delivery expected = DeliveryFor("b", event);
    expected.offset.reset();
    expected.due = absl::Seconds(5);
    expected.created = absl::FromUnixSeconds(9);
    expected.redriven_from = "a";
    EXPECT_EQ(delivery->delivery, expected);
    EXPECT_EQ(dead_letters().Get("a")->replays, 1u);
    EXPECT_EQ(dead_letters().Get("a")->dead_letter, DeadLetterFor("a", event));
    store_.CutPower();
  }
  EXPECT_OK(dead_letters().Redrive("a", {.new_id = "c", .due = {}, .created = {}}).Wait());
  EXPECT_EQ(dead_letters().Get("a")->replays, 2u);
}

TEST_P(DeadLetterStoreTest, ARedriveThatCannotBeIsRefusedWhole) {
  EXPECT_FAILS(dead_letters().Redrive("nobody", {.new_id = "b", .due = {}, .created = {}}).Wait(),
               kNotFound, kNone);
  ASSERT_OK(dead_letters().Record(DeadLetterFor("a")).Wait());
  ASSERT_OK(store_->deliveries().Put(DeliveryFor("b", "mine")).Wait());
  EXPECT_FAILS(dead_letters().Redrive("a", {.new_id = "b", .due = {}, .created = {}}).Wait(),
               kAlreadyExists, kNone);
  EXPECT_FAILS(dead_letters().Redrive("a", {.new_id = "a", .due = {}, .created = {}}).Wait(),
               kInvalidArgument, kNone);
  EXPECT_FAILS(dead_letters().Redrive("a", {.new_id = "", .due = {}, .created = {}}).Wait(),
               kInvalidArgument, kNone);
  EXPECT_EQ(store_->deliveries().Get("b")->delivery.event, "mine");
  EXPECT_EQ(dead_letters().Get("a")->replays, 0u);
  ASSERT_OK(dead_letters().Purge("a").Wait());
  EXPECT_FAILS(dead_letters().Redrive("a", {.new_id = "c", .due = {}, .created = {}}).Wait(),
               kNotFound, kNone);
}

TEST_P(DeadLetterStoreTest, BadOnesAreRefused) {
  DeadLetter wrong = DeadLetterFor("a");
  wrong.dlq_offset = UINT64_MAX;
  EXPECT_FAILS(dead_letters().Record(wrong).Wait(), kInvalidArgument, kNone);
  EXPECT_FAILS(dead_letters().Record(DeadLetterFor("")).Wait(), kInvalidArgument, kNone);
  EXPECT_FAILS(dead_letters().Purge("").Wait(), kInvalidArgument, kNone);
  EXPECT_EQ(dead_letters().Count(), 0u);
}

// --- The journal alone

// Each redrive counts, also those that meet.
TEST(JournalDeadLetterStoreTest, ARedriveThatLostARaceIsMadeAgain) {
  FakeStores fake;
  Accept(fake.dead_letters().Record(DeadLetterFor("a")));
  fake.sink.OnNextRead([&] {
    EXPECT_OK(fake.dead_letters().Redrive("a", {.new_id = "x", .due = {}, .created = {}}).Wait());
  });
  EXPECT_OK(fake.dead_letters().Redrive("a", {.new_id = "y", .due = {}, .created = {}}).Wait());
  EXPECT_EQ(fake.dead_letters().Get("a")->replays, 2u);
  EXPECT_EQ(fake.deliveries().Count(), 2u);
}

// Proves: A8
TEST(JournalDeadLetterStoreTest, PresenceTellsWhetherItIsDurable) {
  FakeStores fake;
  EXPECT_FALSE(fake.dead_letters().IsDeadLettered("a")->recorded);
  EXPECT_TRUE(fake.dead_letters().IsDeadLettered("a")->durable);
  const Commit record = fake.dead_letters().Record(DeadLetterFor("a"));
  EXPECT_FALSE(fake.dead_letters().IsDeadLettered("a")->durable);
  EXPECT_OK(record.Wait());
  EXPECT_TRUE(fake.dead_letters().IsDeadLettered("a")->durable);
  const Commit purge = fake.dead_letters().Purge("a");
  EXPECT_FALSE(fake.dead_letters().IsDeadLettered("a")->durable);
  EXPECT_EQ(fake.dead_letters().Redrive("a", {.new_id = "b", .due = {}, .created = {}}).lsn(),
            purge.lsn());
}

TEST(JournalDeadLetterStoreTest, ADamagedBodyIsNotRedriven) {
  FakeStores fake;
  const Commit record = fake.dead_letters().Record(DeadLetterFor("a"));
  fake.sink.ReplaceRecord(Lsn(record.lsn()), "");
  EXPECT_FAILS(fake.dead_letters().Redrive("a", {.new_id = "b", .due = {}, .created = {}}).Wait(),
               kDataLoss, kDamage);
  EXPECT_EQ(fake.deliveries().Count(), 0u);
}

}  // namespace
}  // namespace holdfast
