#include "stores/memory_stores.h"

#include <gtest/gtest.h>

#include "tests/stores/fake_stores.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// What both backends must do alike is tested with both, in the tests of the stores.

TEST(MemoryStoresTest, ATransactionIsMadeWholeOrNotAtAll) {
  MemoryState state({}, 100);
  MemoryDeliveryStateStore deliveries(state);
  MemoryOffsetStore offsets(state);
  MemoryTransaction transaction;
  transaction.Begin(state);
  transaction.PutDelivery(DeliveryFor("a"));
  transaction.WriteOffset({"t", "c", 0}, 1);
  transaction.UpdateDelivery({.id = "b", .epoch = 1, .attempt = 1, .due = absl::Seconds(1)});
  EXPECT_FAILS(transaction.Apply().Wait(), kNotFound, kNone);
  EXPECT_EQ(deliveries.Count(), 0u);
  EXPECT_TRUE(offsets.ReadAll().empty());

  transaction.Begin(state);
  transaction.PutDelivery(DeliveryFor("b"));
  transaction.UpdateDelivery({.id = "b", .epoch = 8, .attempt = 1, .due = absl::Seconds(1)});
  EXPECT_TRUE(transaction.Apply().changed());
  EXPECT_EQ(deliveries.Get("b")->delivery.epoch, 8u);
}

TEST(MemoryStoresTest, AnUpdateInATransactionSeesItsRemoval) {
  MemoryState state({}, 100);
  MemoryDeliveryStateStore deliveries(state);
  Accept(deliveries.Put(DeliveryFor("a")));
  MemoryTransaction transaction;
  transaction.Begin(state);
  transaction.RemoveDelivery("a", Reason::kAcked);
  transaction.UpdateDelivery({.id = "a", .epoch = 1, .attempt = 1, .due = absl::Seconds(1)});
  EXPECT_FAILS(transaction.Apply().Wait(), kNotFound, kNone);
  EXPECT_EQ(deliveries.Count(), 1u);
}

TEST(MemoryStoresTest, ATransactionHoldsAtMost65535Changes) {
  MemoryState state({}, 100);
  MemoryTransaction transaction;
  transaction.Begin(state);
  for (size_t i = 0; i <= kChangesMax; ++i) transaction.PurgeDeadLetter("id");
  EXPECT_FAILS(transaction.Apply().Wait(), kInvalidArgument, kNone);
}

}  // namespace
}  // namespace holdfast
