#include "runtime/meta_ledger.h"

#include <latch>

#include "meta/memory_meta.h"
#include "meta/meta_key.h"
#include "tests/meta/faulty_meta.h"
#include "tests/runtime/dispatcher_world.h"

namespace holdfast {
namespace {

using Fault = FaultyMeta::Fault;

Delivery Of(const std::string& id) {
  return {.id = id, .topic = "orders", .incarnation = 1, .partition = 0};
}

class MetaLedgerTest : public testing::Test {
 protected:
  // The answer, once it is there.
  static Status Record(MetaLedger& ledger, const std::string& id, const DeadLetterPlace& place) {
    Status answer;
    std::latch answered(1);
    ledger.Record(Of(id), place, [&](const Status& status) {
      answer = status;
      answered.count_down();
    });
    answered.wait();
    return answer;
  }

  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta faulty_{meta_};
};

TEST_F(MetaLedgerTest, TheFirstEntryOfAnIdWins) {
  MetaLedger one(meta_, 1, nullptr), two(meta_, 2, nullptr);
  EXPECT_FALSE(*one.Has("a/b"));
  ASSERT_OK(Record(one, "a/b", {"dlq:x", 7}));
  ASSERT_OK(Record(two, "a/b", {"other", 8}));
  ASSERT_OK(Record(one, "a/b", {"dlq:x", 9}));
  EXPECT_TRUE(*two.Has("a/b"));
  EXPECT_EQ(two.Find("a/b")->topic, "dlq:x");
  EXPECT_EQ(two.Find("a/b")->offset, 7u);
  EXPECT_EQ(meta_.Get("/em/dlq/a%2Fb", {})->value, "dlq:x:7");
  EXPECT_FAILS(one.Find("c"), kNotFound, kNone);
  ASSERT_OK(meta_.Put("/em/dlq/c", "nonsense", {}));
  EXPECT_FAILS(one.Find("c"), kDataLoss, kDamage);
}

TEST_F(MetaLedgerTest, ManyAreAskedForInFewCalls) {
  std::vector<std::string> ids;
  std::vector<bool> expected;
  for (int i = 0; i < 3'000; ++i) {
    ids.push_back(i % 7 == 0 ? "z/" + std::to_string(i) : std::to_string(i));
    expected.push_back(i % 3 == 0);
    if (expected.back()) {
      ASSERT_OK(meta_.Put(MetaKey("dlq", {ids.back()}), "dlq:1", {}));
    }
    if (i % 5 == 0) {
      ASSERT_OK(meta_.Put(MetaKey("dlq", {"of others " + ids.back()}), "d:1", {}));
    }
  }
  ids.push_back(ids.front());  // twice
  expected.push_back(expected.front());
  MetaLedger ledger(faulty_, 1, nullptr);
  int calls = 0;
  faulty_.SetFaults([&](FaultyMeta::Call) {
    ++calls;
    return Fault::kNone;
  });
  ASSERT_OK_AND_ASSIGN(const std::vector<bool> has, ledger.HasAll(ids));
  EXPECT_EQ(has, expected);
  EXPECT_LE(calls, 5);
  EXPECT_TRUE(ledger.HasAll({})->empty());
  EXPECT_EQ(*ledger.HasAll({"nobody", "6"}), (std::vector{false, true}));
  EXPECT_EQ(*ledger.HasAll({"~", ids[0]}), (std::vector{false, true}));
  faulty_.SetFaults([](FaultyMeta::Call) { return Fault::kUnreachable; });
  EXPECT_FAILS(ledger.HasAll(ids), kUnavailable, kIo);
}

// Proves: S2, S3
TEST_F(MetaLedgerTest, LostAnswersAreResolvedAndOutagesTold) {
  MetaLedger ledger(faulty_, 1, nullptr);
  faulty_.SetFaults([](FaultyMeta::Call call) {
    return call == FaultyMeta::Call::kWrite ? Fault::kUnanswered : Fault::kNone;
  });
  ASSERT_OK(Record(ledger, "a", {"dlq", 1}));
  faulty_.SetFaults([](FaultyMeta::Call) { return Fault::kUnreachable; });
  EXPECT_FAILS(Record(ledger, "b", {"dlq", 1}), kUnavailable, kIo);
  EXPECT_FAILS(ledger.Has("a"), kUnavailable, kIo);
  faulty_.Heal();
  EXPECT_FALSE(*ledger.Has("b"));
}

// Proves: S5
TEST_F(MetaLedgerTest, AnOwnerThatWasReplacedRecordsNothing) {
  const SourceKey partition{"orders", 1, 0};
  const auto join = [&](const std::string& name, uint64_t nonce) {
    return *Membership::Join(meta_, nonce, clock_, {.instance = name, .thread = false});
  };
  const auto one = join("one", 1), two = join("two", 2);
  MetaLedger ledger(meta_, 3, one.get());
  EXPECT_FAILS(Record(ledger, "a", {"dlq", 1}), kPermissionDenied, kStaleOwner);
  ASSERT_OK(one->Acquire(partition));
  ASSERT_OK(Record(ledger, "a", {"dlq", 1}));
  // It still believes, and the Meta knows better.
  ASSERT_OK(meta_.Put("/em/assignments/orders/1/0", "1 9 two", {}));
  EXPECT_TRUE(one->Owns(partition));
  EXPECT_FAILS(Record(ledger, "b", {"dlq", 1}), kPermissionDenied, kStaleOwner);
  EXPECT_FALSE(*ledger.Has("b"));
  ASSERT_OK(Record(ledger, "a", {"dlq", 1})) << "that one is recorded, by whomever";
}

TEST_F(MetaLedgerTest, WhatWaitsWhenItGoesIsAnsweredToo) {
  std::latch entered(1), go_on(1);
  faulty_.SetFaults([&, first = true](FaultyMeta::Call) mutable {
    if (std::exchange(first, false)) {
      entered.count_down();
      go_on.wait();
    }
    return Fault::kNone;
  });
  auto ledger = std::make_unique<MetaLedger>(faulty_, 1, nullptr);
  std::vector<Status> answers(3, absl::UnknownError("no answer"));
  for (size_t i = 0; i < answers.size(); ++i) {
    ledger->Record(Of(std::to_string(i)), {"dlq", i},
                   [&answers, i](const Status& status) { answers[i] = status; });
  }
  entered.wait();
  std::thread closer([&] { ledger.reset(); });
  go_on.count_down();
  closer.join();
  EXPECT_OK(answers[0]);
  for (const size_t i : {1, 2}) {
    EXPECT_TRUE(answers[i].ok() || DetailOf(answers[i]) == Detail::kClosed) << answers[i];
  }
}

// The dispatcher on it: an outage of the Meta keeps the delivery, one entry comes of it, and a
// restart asks it first.
// Proves: T4, T5
TEST_F(MetaLedgerTest, TheGateOfTheDispatcherHoldsWithIt) {
  auto ledger = std::make_unique<MetaLedger>(faulty_, 1, nullptr);
  DispatcherWorld world;
  world.options.attempts_max = 1;
  world.options.ack_timeout = absl::Seconds(10);
  world.host.ledger = ledger.get();
  world.StartAndRecover();
  faulty_.SetFaults([](FaultyMeta::Call) { return Fault::kUnreachable; });
  const auto channel = world.Open("billing");
  const std::string id = world.Deliver(7, {"billing"}).targets[0].id;
  world.Advance(absl::Seconds(60));
  EXPECT_EQ(world.engine->deliveries().Count(), 1u);
  EXPECT_TRUE(world.source.finished.empty());
  faulty_.Heal();
  while (world.engine->deliveries().Count() > 0) world.Advance(absl::Seconds(1));
  EXPECT_TRUE(*ledger->Has(id));
  EXPECT_EQ(channel->pushed.size(), 1u);
  // Another died between the ledger and its batch.
  ASSERT_OK(meta_.Put("/em/dlq/next", "dlq:1", {}));
  ASSERT_OK(world.engine->deliveries()
                .Put({.id = "next", .epoch = 1, .topic = "orders", .incarnation = 1, .client = "c"})
                .Wait());
  world.Stop();
  world.StartAndRecover();
  world.Settle();
  EXPECT_EQ(world.engine->deliveries().Count(), 0u);
  world.Stop();
}

}  // namespace
}  // namespace holdfast
