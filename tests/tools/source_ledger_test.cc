#include "tools/source_ledger.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

const SourceKey kSource{"orders", 1, 3};

// Proves: O4
TEST(SourceLedgerTest, AClientCommitsUpToWhatItStillOwes) {
  SourceLedger ledger(kSource);
  EXPECT_EQ(ledger.NextFor("a"), 0U);
  for (uint64_t offset = 11; offset <= 13; ++offset) {
    ledger.AddPending({.id = std::to_string(offset), .client = "a", .offset = offset});
    ledger.MarkSeen(offset);
  }
  EXPECT_EQ(ledger.NextFor("a"), 11U);
  EXPECT_EQ(ledger.NextFor("b"), 14U) << "nothing is owed: all that was handed in is finished";
  SeededRng rng(1);
  std::set<std::string> owed = {"11", "12", "13"};
  while (auto taken = ledger.TakePending(rng)) {
    owed.erase(taken->id);
    EXPECT_EQ(ledger.NextFor("a"), owed.empty() ? 14U : std::stoull(*owed.begin()));
  }
  EXPECT_TRUE(owed.empty());
  EXPECT_EQ(ledger.PickPending(rng), nullptr);
}

TEST(SourceLedgerTest, IsReadBackFromTheStore) {
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  const Commit put = engine->Transact([](Transaction& transaction) {
    Delivery delivery;
    delivery.id = "d";
    delivery.topic = kSource.topic;
    delivery.incarnation = kSource.incarnation;
    delivery.partition = kSource.partition;
    delivery.offset = 4;
    delivery.client = "a";
    transaction.PutDelivery(delivery);
    transaction.SourceSeen(kSource, 9);
  });
  ASSERT_OK(put.Wait());
  const SourceKey other{"other", 1, 0};
  ASSERT_OK_AND_ASSIGN(const auto ledgers, ReadLedgers(*engine, {kSource, other}));
  EXPECT_EQ(ledgers.at(kSource).next_source_offset(), 10U);
  EXPECT_EQ(ledgers.at(kSource).NextFor("a"), 4U);
  EXPECT_EQ(ledgers.at(other).next_source_offset(), 0U);
  EXPECT_FAILS(ReadLedgers(*engine, {other}), kInvalidArgument, kNone)
      << "a delivery of somebody else";
}

}  // namespace
}  // namespace holdfast
