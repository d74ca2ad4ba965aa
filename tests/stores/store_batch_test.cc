#include "stores/store_batch.h"

#include <gtest/gtest.h>

#include "journal/format/compression.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(StoreBatchTest, EncodesEveryField) {
  BatchLease batch({});
  batch->PutDelivery(DeliveryFor("id", "the event"));
  batch->RemoveDelivery({.id = "id",
                         .reason = Reason::kWithdrawn,
                         .epoch = 5,
                         .client = "c",
                         .idempotency_key = "",
                         .answer = "ok"});
  ASSERT_OK(batch->refused());
  const auto put = FieldsOf<DeliveryPut>(batch->draft().raw(0));
  EXPECT_EQ(put.id, "id");
  EXPECT_EQ(put.offset, 4711u);
  EXPECT_EQ(put.due_ns, 30'000'000'000);
  EXPECT_EQ(put.redriven_from, std::nullopt);
  EXPECT_EQ(put.event.bytes, "the event");
  const auto remove = FieldsOf<DeliveryRemove>(batch->draft().raw(1));
  EXPECT_EQ(remove.epoch, 5u);
  EXPECT_EQ(remove.reason, static_cast<uint64_t>(Reason::kWithdrawn));
  EXPECT_EQ(remove.idempotency_key, "");  // there, and empty
}

TEST(StoreBatchTest, LargeEventsAreCompressedWhereThatPays) {
  const std::string repetitive(8'000, 'x');
  BatchLease batch({.compress_event_bytes_min = 4'096});
  batch->PutDelivery(DeliveryFor("small", std::string(4'095, 'x')));
  batch->PutDelivery(DeliveryFor("large", repetitive));
  EXPECT_FALSE(FieldsOf<DeliveryPut>(batch->draft().raw(0)).event.compressed);
  const StoredEvent event = FieldsOf<DeliveryPut>(batch->draft().raw(1)).event;
  EXPECT_TRUE(event.compressed);
  EXPECT_LT(event.bytes.size(), 1'000u);
  EXPECT_EQ(*UnpackEvent(event), repetitive);

  BatchLease off({.compress_event_bytes_min = 0});
  off->PutDelivery(DeliveryFor("large", repetitive));
  EXPECT_FALSE(FieldsOf<DeliveryPut>(off->draft().raw(0)).event.compressed);
}

TEST(StoreBatchTest, TheFirstRefusalCounts) {
  BatchLease batch({.event_bytes_max = 10});
  batch->PutDelivery(DeliveryFor("a", std::string(11, 'x')));
  batch->PutDelivery(DeliveryFor(""));
  EXPECT_FAILS(batch->refused(), kResourceExhausted, kLimit);
}

TEST(StoreBatchTest, HoldsAtMost65535Changes) {
  BatchLease batch({});
  for (size_t i = 0; i < kChangesMax; ++i) batch->PurgeDeadLetter("id");
  EXPECT_OK(batch->refused());
  batch->PurgeDeadLetter("id");
  EXPECT_FAILS(batch->refused(), kInvalidArgument, kNone);
}

TEST(StoreBatchTest, HoldsAtMostAsManyBytesAsABatchMay) {
  BatchLease batch({.batch_bytes_max = 1'000});
  batch->PutDelivery(DeliveryFor("a", std::string(500, 'x')));
  EXPECT_OK(batch->refused());
  batch->PutDelivery(DeliveryFor("b", std::string(500, 'x')));
  EXPECT_FAILS(batch->refused(), kResourceExhausted, kLimit);
}

TEST(StoreBatchTest, ALeaseInsideALeaseIsAnotherBatch) {
  BatchLease outer({});
  outer->PurgeDeadLetter("a");
  {
    BatchLease inner({});
    EXPECT_EQ(inner->draft().count(), 0u);
    inner->PurgeDeadLetter("b");
  }
  EXPECT_EQ(outer->draft().count(), 1u);
}

TEST(StoreBatchTest, ABatchStartsEmptyAgain) {
  {
    BatchLease batch({});
    batch->PutDelivery(DeliveryFor(""));
  }
  BatchLease batch({});
  EXPECT_OK(batch->refused());
  EXPECT_FALSE(batch->grows());
  EXPECT_TRUE(batch->draft().empty());
}

}  // namespace
}  // namespace holdfast
