#include "stores/local_stores.h"

#include <gtest/gtest.h>

#include "tests/stores/fake_stores.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(LocalStoresTest, EveryRecordOfTheCatalogueHasItsStore) {
  FakeStores fake;
  const auto routed = [&]<typename... Records>(RecordList<Records...>*) {
    return (... && (fake.stores.machines().For(Records::kType) != nullptr));
  };
  EXPECT_TRUE(routed(static_cast<Catalogue*>(nullptr)));
}

// A fresh set of stores that replays the records shows what the running one shows.
// Proves: G2
TEST(LocalStoresTest, RunningAndReplayingLeadToTheSameState) {
  FakeStores fake;
  Accept(fake.stores.Transact([](Transaction& t) {
    t.PutDelivery(DeliveryFor("a"));
    t.PutDelivery(DeliveryFor("b"));
    t.SourceSeen({"orders", 1, 2}, 4711);
  }));
  Accept(fake.stores.Transact([](Transaction& t) {
    t.RemoveDelivery("a", Reason::kAcked);
    t.WriteOffset({"orders", "billing", 2}, 4712);
    t.RecordDeadLetter(DeadLetterFor("d"));
  }));
  Accept(fake.deliveries().Update({.id = "b", .epoch = 4, .attempt = 2, .due = absl::Seconds(3)}));

  FakeStores recovered;
  fake.sink.Replay(recovered.stores.machines());
  RecoveryReport report;
  recovered.stores.AddTo(report);
  EXPECT_EQ(report.deliveries, 1u);
  EXPECT_EQ(report.offsets, 1u);
  EXPECT_EQ(report.dead_letters, 1u);
  EXPECT_EQ(recovered.offsets().Read({"orders", "billing", 2})->position, OffsetPosition(4712));
  EXPECT_EQ(recovered.offsets().ReadSource({"orders", 1, 2})->seen, 4711u);
  EXPECT_FAILS(recovered.deliveries().Get("a"), kNotFound, kNone);
}

}  // namespace
}  // namespace holdfast
