#include "stores/delivery_state_store.h"

#include <algorithm>
#include <limits>

#include "journal/format/codec.h"
#include "journal/format/compression.h"
#include "stores/nanos.h"

namespace holdfast {
namespace {

constexpr auto kDelivery = BatchOverlay::Space::kDelivery;

// What an index keeps of a put: the fields behind these stay in the journal.
struct PutHead {
  std::string_view id;
  uint64_t epoch = 0;
  uint64_t attempt = 0;
  int64_t due_ns = 0;
};
PutHead TakePutHead(ByteView fields) {
  Decoder in(fields);
  PutHead head;
  head.id = in.Bytes();
  head.epoch = in.Varint();
  in.Bytes();                                 // topic
  in.Varint();                                // incarnation
  in.Varint();                                // partition
  if (in.Fixed<uint8_t>() == 1) in.Varint();  // offset
  in.Bytes();                                 // client
  head.attempt = in.Varint();
  head.due_ns = in.Signed();
  CHECK(in.ok());
  return head;
}

// Attempts stop at the largest number that the interface has.
uint32_t Saturated(uint64_t attempt) {
  return static_cast<uint32_t>(std::min<uint64_t>(attempt, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

void JournalDeliveryStateStore::Attach(StoreWriter& writer) {
  writer_ = &writer;
  payloads_.Attach(writer.sink());
}

Commit JournalDeliveryStateStore::Put(const Delivery& delivery) {
  BatchLease batch(writer_->limits());
  batch->PutDelivery(delivery);
  return writer_->Write(*batch);
}

Commit JournalDeliveryStateStore::Update(const Reschedule& reschedule) {
  BatchLease batch(writer_->limits());
  batch->UpdateDelivery(reschedule);
  return writer_->Write(*batch);
}

Commit JournalDeliveryStateStore::Remove(const Removal& removal) {
  BatchLease batch(writer_->limits());
  batch->RemoveDelivery(removal);
  return writer_->Write(*batch);
}

StatusOr<StoredDelivery> JournalDeliveryStateStore::Get(std::string_view id) {
  ASSIGN_OR_RETURN(const StoredPayload payload, payloads_.Read(id));
  StoredDelivery stored;
  RETURN_IF_ERROR(Fill(payload, stored));
  return stored;
}

StatusOr<StoredSchedule> JournalDeliveryStateStore::GetSchedule(std::string_view id) {
  ASSIGN_OR_RETURN(const IndexState state, payloads_.ReadState(id));
  return StoredSchedule{.epoch = state.epoch,
                        .attempt = state.attempt,
                        .due = DurationFromNanos(state.due_ns),
                        .lsn = state.state_lsn.value(),
                        .durable = writer_->sink().Reached(state.state_lsn.value())};
}

Commit JournalDeliveryStateStore::Answered(const Removal& ack) {
  const uint64_t hash =
      AnswerHash(ack.id, ack.epoch, ack.client, ack.idempotency_key.value_or(std::string_view()));
  Lsn removal, newest_removal;
  {
    MutexLock lock(payloads_.sequencer());
    if (ack.reason == Reason::kAcked && ack.idempotency_key.has_value()) {
      removal = answers_.Find(hash);
    }
    newest_removal = payloads_.newest_removal();
  }
  if (removal) return writer_->Resting(removal, absl::OkStatus());
  return writer_->Resting(newest_removal, NotFound("no such acknowledgement is remembered"));
}

Status JournalDeliveryStateStore::Iterate(const std::function<bool(const StoredDelivery&)>& visit) {
  StoredDelivery stored;
  return payloads_.ForEach([&](const StoredPayload& payload) -> StatusOr<bool> {
    RETURN_IF_ERROR(Fill(payload, stored));
    return visit(stored);
  });
}

Status JournalDeliveryStateStore::Fill(const StoredPayload& payload, StoredDelivery& into) const {
  ByteView bytes = payload.record();
  ASSIGN_OR_RETURN(const RawRecord raw, TakeRecord(bytes));
  DeliveryPut put;
  const bool is_put = static_cast<RecordType>(raw.header.type) == RecordType::kDeliveryPut &&
                      raw.header.version == kRecordVersion &&
                      (raw.header.flags & ~kRecordMaySkip) == 0;
  if (!is_put || !DecodeFields(raw.fields, put)) {
    RETURN_IF_ERROR(CheckRecord(raw));
    return DataLoss("a {} where a put should be", RecordTypeName(raw.header.type));
  }
  const IndexState& state = payload.state();
  Delivery& delivery = into.delivery;
  RETURN_IF_ERROR(UnpackEventInto(put.event, delivery.event));
  delivery.id = put.id;
  delivery.epoch = state.epoch;
  delivery.topic = put.topic;
  delivery.incarnation = put.incarnation;
  delivery.partition = put.partition;
  delivery.offset = put.offset;
  delivery.client = put.client;
  delivery.attempt = state.attempt;
  delivery.due = DurationFromNanos(state.due_ns);
  delivery.created = TimeFromNanos(put.created_ns);
  delivery.redriven_from.reset();
  if (put.redriven_from.has_value()) delivery.redriven_from.emplace(*put.redriven_from);
  into.lsn = state.state_lsn.value();
  into.durable = writer_->sink().Reached(into.lsn);
  return absl::OkStatus();
}

uint64_t JournalDeliveryStateStore::Count() {
  MutexLock lock(payloads_.sequencer());
  return payloads_.index().size();
}

Status JournalDeliveryStateStore::Flush() {
  Lsn newest;
  {
    MutexLock lock(payloads_.sequencer());
    newest = newest_;
  }
  return newest ? writer_->sink().WaitFor(newest.value()) : absl::OkStatus();
}

void JournalDeliveryStateStore::Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) {
  payloads_.sequencer().AssertHeld();
  newest_ = std::max(newest_, lsn);
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kDeliveryPut:
      return ApplyPut(record, lsn, ref);
    case RecordType::kDeliveryReschedule:
      return Apply(FieldsOf<DeliveryReschedule>(record), lsn);
    case RecordType::kDeliveryRemove:
      return Apply(FieldsOf<DeliveryRemove>(record), lsn, ref);
    default:
      CHECK(false);  // Routed to the wrong store.
  }
}

void JournalDeliveryStateStore::ApplyPut(const RawRecord& record, Lsn lsn, const RecordRef& ref) {
  payloads_.sequencer().AssertHeld();
  const PutHead put = TakePutHead(record.fields);
  HashIndex& index = payloads_.index();
  const HashIndex::Slot slot = index.FindOrInsert(put.id).slot;
  if (lsn <= index.StateLsn(slot)) return;
  payloads_.SetPlace(slot, {.ref = ref,
                            .record_bytes = record.bytes(),
                            .payload_lsn = lsn,
                            .state_lsn = lsn,
                            .epoch = put.epoch,
                            .due_ns = put.due_ns,
                            .attempt = Saturated(put.attempt)});
}

void JournalDeliveryStateStore::Apply(const DeliveryReschedule& record, Lsn lsn) {
  payloads_.sequencer().AssertHeld();
  HashIndex& index = payloads_.index();
  const HashIndex::Slot slot = index.Find(record.id);
  if (slot == HashIndex::kNoSlot) return;
  IndexState state = index.Get(slot);
  if (lsn <= state.state_lsn) return;
  state.state_lsn = lsn;
  state.epoch = record.epoch;
  state.attempt = Saturated(record.attempt);
  state.due_ns = record.due_ns;
  index.Set(slot, state);
}

void JournalDeliveryStateStore::Apply(const DeliveryRemove& record, Lsn lsn, const RecordRef& ref) {
  payloads_.sequencer().AssertHeld();
  answers_.ApplyRemoval(record, lsn, ref);
  payloads_.NoteRemoval(lsn);
  HashIndex& index = payloads_.index();
  const HashIndex::Slot slot = index.Find(record.id);
  if (slot != HashIndex::kNoSlot && lsn > index.StateLsn(slot)) payloads_.Erase(slot);
}

// A delivery rests on its put, and the newest reschedule: both become one put. In the oldest
// segment a reschedule never stands alone: its put is older still. Of a removal nothing is left but
// what its acknowledgement was answered.
bool JournalDeliveryStateStore::Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const {
  const auto type = static_cast<RecordType>(record.header.type);
  if (type == RecordType::kDeliveryRemove) return answers_.RestateRemoval(lsn, draft);
  if (type != RecordType::kDeliveryPut) return false;
  auto put = FieldsOf<DeliveryPut>(record);
  const std::optional<IndexState> state = payloads_.StateOf(put.id, lsn);
  if (!state.has_value()) return false;
  put.epoch = state->epoch;
  put.attempt = state->attempt;
  put.due_ns = state->due_ns;
  draft.Add(put);
  return true;
}

uint64_t JournalDeliveryStateStore::SnapshotEntries() const {
  payloads_.sequencer().AssertHeld();
  return payloads_.index().size();
}

bool JournalDeliveryStateStore::WriteSnapshot(uint64_t& cursor, size_t bytes_max,
                                              std::string& out) const {
  payloads_.sequencer().AssertHeld();
  return payloads_.WriteSnapshot(cursor, bytes_max, out);
}

Status JournalDeliveryStateStore::LoadSnapshot(ByteView entries, uint64_t expected) {
  payloads_.sequencer().AssertHeld();
  RETURN_IF_ERROR(payloads_.LoadSnapshot(entries, expected));
  newest_ = std::max(newest_, payloads_.newest_loaded());
  return absl::OkStatus();
}

void JournalDeliveryStateStore::Reset() {
  payloads_.sequencer().AssertHeld();
  payloads_.Reset();
  newest_ = Lsn();
}

void JournalDeliveryStateStore::Expect(const BatchDraft& draft) const {
  if (!payloads_.beyond_cache()) return;
  for (size_t index = 0; index < draft.count(); ++index) {
    const RawRecord record = draft.raw(index);
    const auto type = static_cast<RecordType>(record.header.type);
    if (std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes)) Expect(record);
  }
}

void JournalDeliveryStateStore::Expect(const RawRecord& record) const {
  payloads_.Prefetch(Decoder(record.fields).Bytes());
}

Judgement JournalDeliveryStateStore::Judge(const RawRecord& record, const JudgeContext& context) {
  payloads_.sequencer().AssertHeld();
  Decoder in(record.fields);
  const std::string_view id = in.Bytes();
  const auto type = static_cast<RecordType>(record.header.type);
  HashIndex& index = payloads_.index();

  PendingState* const pending = context.alone ? nullptr : context.overlay.Find(kDelivery, id);
  // A put looks at nothing else, so it does not pay for the search.
  const bool needs_slot = type != RecordType::kDeliveryPut || context.put_must_be_new;
  HashIndex::Slot slot = HashIndex::kNoSlot;
  if (pending == nullptr && needs_slot) slot = index.Find(id);
  const bool live = pending != nullptr ? pending->live : slot != HashIndex::kNoSlot;
  // What "there is none" rests on: an earlier record of this batch, or some removal.
  const Lsn removal = pending != nullptr ? Lsn() : payloads_.newest_removal();

  switch (type) {
    case RecordType::kDeliveryPut:
      if (context.put_must_be_new && live) {
        return Judgement::Refuse(slot == HashIndex::kNoSlot ? Lsn() : index.Get(slot).state_lsn,
                                 AlreadyExists("a delivery of this id is in flight"));
      }
      if (index.full()) {
        return Judgement::Refuse(
            Lsn(), Exhausted(Detail::kLimit, "{} deliveries are in flight, no more fit the index",
                             index.size()));
      }
      break;
    case RecordType::kDeliveryReschedule:
      if (!live) return Judgement::Refuse(removal, NotFound("no live delivery of this id"));
      return Judgement::Admit();  // Nothing that a later record of the batch asks for changes.
    default:
      if (!live) return Judgement::Drop(removal);
      break;
  }
  if (!context.alone) {
    context.overlay.Set(pending, kDelivery, id, {.live = type == RecordType::kDeliveryPut});
  }
  return Judgement::Admit();
}

void JournalDeliveryStateStore::AddTo(EngineStats& stats) {
  MutexLock lock(payloads_.sequencer());
  const ValueCache& cache = payloads_.cache();
  stats.cache_hits += cache.hits();
  stats.cache_misses += cache.misses();
  stats.cache_entries += cache.entries();
  stats.cache_bytes += cache.bytes();
}

uint64_t JournalDeliveryStateStore::IndexBytes() {
  MutexLock lock(payloads_.sequencer());
  return payloads_.index().memory_bytes();
}

}  // namespace holdfast
