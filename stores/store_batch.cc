#include "stores/store_batch.h"

#include <memory>

#include "journal/format/compression.h"
#include "stores/nanos.h"

namespace holdfast {
namespace {

// Memory that an idle batch may keep: enough for a thousand small changes.
constexpr size_t kIdleBytesMax = size_t{1} << 20;

struct ThreadBatch {
  StoreBatch batch;
  bool leased = false;
};
ThreadBatch& BatchOfThisThread() {
  static thread_local ThreadBatch batch;
  return batch;
}

}  // namespace

void StoreBatch::Begin(const StoreLimits& limits) {
  limits_ = limits;
  if (draft_.memory_bytes() > kIdleBytesMax) {
    draft_ = BatchDraft();
  } else {
    draft_.Clear();
  }
  if (scratch_.capacity() > kIdleBytesMax) scratch_ = std::string();
  refused_ = absl::OkStatus();
  grows_ = false;
  put_must_be_new_ = false;
}

void StoreBatch::PutDelivery(const Delivery& delivery) {
  const Status checked = CheckDelivery(delivery, limits_);
  if (!refused_.ok() || !checked.ok()) return Add(checked, true, DeliveryPut());
  Add(checked, true,
      DeliveryPut{.id = delivery.id,
                  .epoch = delivery.epoch,
                  .topic = delivery.topic,
                  .incarnation = delivery.incarnation,
                  .partition = delivery.partition,
                  .offset = delivery.offset,
                  .client = delivery.client,
                  .attempt = delivery.attempt,
                  .due_ns = ToNanos(delivery.due),
                  .created_ns = ToNanos(delivery.created),
                  .redriven_from = delivery.redriven_from,
                  .event = Pack(delivery.event)});
}

void StoreBatch::UpdateDelivery(const Reschedule& reschedule) {
  Add(CheckReschedule(reschedule), true,
      DeliveryReschedule{.id = reschedule.id,
                         .epoch = reschedule.epoch,
                         .attempt = reschedule.attempt,
                         .due_ns = ToNanos(reschedule.due)});
}

void StoreBatch::RemoveDelivery(const Removal& removal) {
  Add(CheckRemoval(removal), false,
      DeliveryRemove{.id = removal.id,
                     .epoch = removal.epoch,
                     .client = removal.client,
                     .reason = static_cast<uint64_t>(removal.reason),
                     .idempotency_key = removal.idempotency_key,
                     .answer = removal.answer});
}

void StoreBatch::WriteOffset(const OffsetKey& key, OffsetPosition position) {
  Status checked = CheckOffsetKey(key);
  if (checked.ok()) checked = CheckOffset("next", position.next);
  Add(checked, false,
      OffsetAdvance{.topic = key.topic,
                    .client = key.client,
                    .partition = key.partition,
                    .incarnation = position.incarnation,
                    .next = position.next});
}

void StoreBatch::WriteStart(const OffsetKey& key, OffsetPosition start) {
  Status checked = CheckOffsetKey(key);
  if (checked.ok()) checked = CheckOffset("start", start.next);
  Add(checked, false,
      OffsetStart{.topic = key.topic,
                  .client = key.client,
                  .partition = key.partition,
                  .incarnation = start.incarnation,
                  .start = start.next});
}

void StoreBatch::ForgetOffset(const OffsetKey& key) {
  Add(CheckOffsetKey(key), false,
      OffsetForget{.topic = key.topic, .client = key.client, .partition = key.partition});
}

void StoreBatch::SourceSeen(const SourceKey& key, uint64_t through) {
  Status checked = CheckSource(key);
  if (checked.ok()) checked = CheckOffset("through", through);
  Add(checked, false,
      holdfast::SourceSeen{.topic = key.topic,
                           .incarnation = key.incarnation,
                           .partition = key.partition,
                           .through = through});
}

void StoreBatch::SourceCursor(const SourceKey& key, uint64_t cursor) {
  Status checked = CheckSource(key);
  if (checked.ok()) checked = CheckOffset("cursor", cursor);
  Add(checked, false,
      holdfast::SourceCursor{.topic = key.topic,
                             .incarnation = key.incarnation,
                             .partition = key.partition,
                             .cursor = cursor});
}

void StoreBatch::RecordDeadLetter(const DeadLetter& dead_letter) {
  const Status checked = CheckDeadLetter(dead_letter, limits_);
  if (!refused_.ok() || !checked.ok()) return Add(checked, true, DeadLetterRecord());
  Add(checked, true,
      DeadLetterRecord{.id = dead_letter.delivery_id,
                       .dlq_topic = dead_letter.dlq_topic,
                       .dlq_offset = dead_letter.dlq_offset,
                       .reason = dead_letter.reason,
                       .attempts = dead_letter.attempts,
                       .epoch = dead_letter.epoch,
                       .topic = dead_letter.topic,
                       .incarnation = dead_letter.incarnation,
                       .partition = dead_letter.partition,
                       .offset = dead_letter.offset,
                       .client = dead_letter.client,
                       .died_ns = ToNanos(dead_letter.died),
                       .replays = 0,
                       .event = Pack(dead_letter.event)});
}

void StoreBatch::PurgeDeadLetter(std::string_view delivery_id) {
  Add(CheckDeliveryId(delivery_id), false, DeadLetterPurge{.id = delivery_id});
}

void StoreBatch::Redrive(const DeliveryPut& put, const DeadLetterRedriven& redriven) {
  put_must_be_new_ = true;
  Add(CheckDeliveryId(put.id), true, put);
  Add(absl::OkStatus(), true, redriven);
}

template <typename Record>
void StoreBatch::Add(const Status& checked, bool grows, const Record& record) {
  if (!refused_.ok()) return;
  if (!checked.ok()) {
    refused_ = checked;
    return;
  }
  if (draft_.count() == kChangesMax) {
    refused_ = Invalid("a transaction holds at most {} changes", kChangesMax);
    return;
  }
  draft_.Add(record);
  grows_ |= grows;
  if (draft_.batch_bytes() > limits_.batch_bytes_max) {
    refused_ =
        Exhausted(Detail::kLimit,
                  "a batch of {} bytes; min(16 MiB, segment_bytes / 4) - 64 = {} is the limit",
                  draft_.batch_bytes(), limits_.batch_bytes_max);
  }
}

StoredEvent StoreBatch::Pack(std::string_view event) {
  if (limits_.compress_event_bytes_min == 0 || event.size() < limits_.compress_event_bytes_min) {
    return {.raw_bytes = event.size(), .compressed = false, .bytes = event};
  }
  return PackEvent(event, scratch_);
}

BatchLease::BatchLease(const StoreLimits& limits) {
  ThreadBatch& mine = BatchOfThisThread();
  if (mine.leased) {
    batch_ = new StoreBatch();
  } else {
    mine.leased = true;
    batch_ = &mine.batch;
    leased_ = &mine.leased;
  }
  batch_->Begin(limits);
}

BatchLease::~BatchLease() {
  if (leased_ != nullptr) {
    *leased_ = false;
  } else {
    delete batch_;
  }
}

}  // namespace holdfast
