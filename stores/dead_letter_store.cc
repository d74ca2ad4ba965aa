#include "stores/dead_letter_store.h"

#include <algorithm>
#include <limits>

#include "journal/format/codec.h"
#include "journal/format/compression.h"
#include "stores/nanos.h"

namespace holdfast {
namespace {

constexpr auto kDeadLetter = BatchOverlay::Space::kDeadLetter;

// How often a redrive that lost a race against another one is made again.
constexpr int kRedrivesMax = 64;

uint32_t Saturated(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
}

StatusOr<DeadLetterRecord> Decode(const StoredPayload& payload) {
  ByteView bytes = payload.record();
  ASSIGN_OR_RETURN(const RawRecord raw, TakeRecord(bytes));
  ASSIGN_OR_RETURN(const AnyRecord any, DecodeRecord(raw));
  const auto* record = std::get_if<DeadLetterRecord>(&any);
  if (record != nullptr) return *record;
  return DataLoss("a {} where a dead letter should be", RecordTypeName(raw.header.type));
}

}  // namespace

void JournalDeadLetterStore::Attach(StoreWriter& writer) {
  writer_ = &writer;
  payloads_.Attach(writer.sink());
}

Commit JournalDeadLetterStore::Record(const DeadLetter& dead_letter) {
  BatchLease batch(writer_->limits());
  batch->RecordDeadLetter(dead_letter);
  return writer_->Write(*batch);
}

Commit JournalDeadLetterStore::Purge(std::string_view delivery_id) {
  BatchLease batch(writer_->limits());
  batch->PurgeDeadLetter(delivery_id);
  return writer_->Write(*batch);
}

Commit JournalDeadLetterStore::Redrive(std::string_view delivery_id, const RedriveAs& as) {
  if (Status checked = CheckRedrive(delivery_id, as); !checked.ok()) {
    return Commit(std::move(checked));
  }
  for (int tries = 1;; ++tries) {
    const StatusOr<StoredPayload> payload = payloads_.Read(delivery_id);
    if (!payload.ok()) {
      if (payload.status().code() != StatusCode::kNotFound) return Commit(payload.status());
      MutexLock lock(payloads_.sequencer());
      return writer_->Resting(payloads_.newest_removal(), payload.status());
    }
    const StatusOr<DeadLetterRecord> dead = Decode(*payload);
    if (!dead.ok()) return Commit(dead.status());
    BatchLease batch(writer_->limits());
    batch->Redrive(
        {.id = as.new_id,
         .epoch = dead->epoch,
         .topic = dead->topic,
         .incarnation = dead->incarnation,
         .partition = dead->partition,
         .offset = std::nullopt,
         .client = dead->client,
         .attempt = 0,
         .due_ns = ToNanos(as.due),
         .created_ns = ToNanos(as.created),
         .redriven_from = dead->id,
         .event = dead->event},
        {.id = dead->id, .new_id = as.new_id, .replays = uint64_t{payload->state().attempt} + 1});
    Commit commit = writer_->Write(*batch);
    if (DetailOf(commit.refused()) != Detail::kConflict || tries == kRedrivesMax) return commit;
  }
}

StatusOr<DeadLetterStore::Presence> JournalDeadLetterStore::IsDeadLettered(
    std::string_view delivery_id) {
  ASSIGN_OR_RETURN(const PayloadIndex::Presence found, payloads_.Probe(delivery_id));
  return Presence{.recorded = found.present, .durable = found.durable};
}

StatusOr<StoredDeadLetter> JournalDeadLetterStore::Get(std::string_view delivery_id) {
  ASSIGN_OR_RETURN(const StoredPayload payload, payloads_.Read(delivery_id));
  return ToDeadLetter(payload);
}

Status JournalDeadLetterStore::Iterate(const std::function<bool(const StoredDeadLetter&)>& visit) {
  return payloads_.ForEach([&](const StoredPayload& payload) -> StatusOr<bool> {
    ASSIGN_OR_RETURN(const StoredDeadLetter dead_letter, ToDeadLetter(payload));
    return visit(dead_letter);
  });
}

StatusOr<StoredDeadLetter> JournalDeadLetterStore::ToDeadLetter(
    const StoredPayload& payload) const {
  ASSIGN_OR_RETURN(const DeadLetterRecord record, Decode(payload));
  ASSIGN_OR_RETURN(std::string event, UnpackEvent(record.event));
  const IndexState& state = payload.state();
  return StoredDeadLetter{.dead_letter = {.delivery_id = std::string(record.id),
                                          .dlq_topic = std::string(record.dlq_topic),
                                          .dlq_offset = record.dlq_offset,
                                          .reason = std::string(record.reason),
                                          .attempts = Saturated(record.attempts),
                                          .epoch = record.epoch,
                                          .topic = std::string(record.topic),
                                          .incarnation = record.incarnation,
                                          .partition = record.partition,
                                          .offset = record.offset,
                                          .client = std::string(record.client),
                                          .died = TimeFromNanos(record.died_ns),
                                          .event = std::move(event)},
                          .replays = state.attempt,
                          .lsn = state.state_lsn.value(),
                          .durable = writer_->sink().Reached(state.state_lsn.value())};
}

uint64_t JournalDeadLetterStore::Count() {
  MutexLock lock(payloads_.sequencer());
  return payloads_.index().size();
}

Status JournalDeadLetterStore::Flush() {
  Lsn newest;
  {
    MutexLock lock(payloads_.sequencer());
    newest = newest_;
  }
  return newest ? writer_->sink().WaitFor(newest.value()) : absl::OkStatus();
}

void JournalDeadLetterStore::Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) {
  payloads_.sequencer().AssertHeld();
  newest_ = std::max(newest_, lsn);
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kDeadLetter:
      return Apply(FieldsOf<DeadLetterRecord>(record), lsn, ref, record.bytes());
    case RecordType::kDeadLetterRedriven:
      return Apply(FieldsOf<DeadLetterRedriven>(record), lsn);
    case RecordType::kDeadLetterPurge:
      return Apply(FieldsOf<DeadLetterPurge>(record), lsn);
    default:
      CHECK(false);  // Routed to the wrong store.
  }
}

void JournalDeadLetterStore::Apply(const DeadLetterRecord& record, Lsn lsn, const RecordRef& ref,
                                   uint32_t record_bytes) {
  payloads_.sequencer().AssertHeld();
  HashIndex& index = payloads_.index();
  const HashIndex::Slot slot = index.FindOrInsert(record.id).slot;
  if (lsn <= index.Get(slot).state_lsn) return;
  payloads_.SetPlace(slot, {.ref = ref,
                            .record_bytes = record_bytes,
                            .payload_lsn = lsn,
                            .state_lsn = lsn,
                            .epoch = record.epoch,
                            .due_ns = 0,
                            .attempt = Saturated(record.replays)});
}

void JournalDeadLetterStore::Apply(const DeadLetterRedriven& record, Lsn lsn) {
  payloads_.sequencer().AssertHeld();
  HashIndex& index = payloads_.index();
  const HashIndex::Slot slot = index.Find(record.id);
  if (slot == HashIndex::kNoSlot) return;
  IndexState state = index.Get(slot);
  if (lsn <= state.state_lsn) return;
  state.state_lsn = lsn;
  state.attempt = Saturated(record.replays);
  index.Set(slot, state);
}

void JournalDeadLetterStore::Apply(const DeadLetterPurge& record, Lsn lsn) {
  payloads_.sequencer().AssertHeld();
  payloads_.NoteRemoval(lsn);
  HashIndex& index = payloads_.index();
  const HashIndex::Slot slot = index.Find(record.id);
  if (slot != HashIndex::kNoSlot && lsn > index.Get(slot).state_lsn) payloads_.Erase(slot);
}

bool JournalDeadLetterStore::Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const {
  if (static_cast<RecordType>(record.header.type) != RecordType::kDeadLetter) return false;
  auto dead_letter = FieldsOf<DeadLetterRecord>(record);
  const std::optional<IndexState> state = payloads_.StateOf(dead_letter.id, lsn);
  if (!state.has_value()) return false;
  dead_letter.replays = state->attempt;
  draft.Add(dead_letter);
  return true;
}

uint64_t JournalDeadLetterStore::SnapshotEntries() const {
  payloads_.sequencer().AssertHeld();
  return payloads_.index().size();
}

bool JournalDeadLetterStore::WriteSnapshot(uint64_t& cursor, size_t bytes_max,
                                           std::string& out) const {
  payloads_.sequencer().AssertHeld();
  return payloads_.WriteSnapshot(cursor, bytes_max, out);
}

Status JournalDeadLetterStore::LoadSnapshot(ByteView entries, uint64_t expected) {
  payloads_.sequencer().AssertHeld();
  RETURN_IF_ERROR(payloads_.LoadSnapshot(entries, expected));
  newest_ = std::max(newest_, payloads_.newest_loaded());
  return absl::OkStatus();
}

void JournalDeadLetterStore::Reset() {
  payloads_.sequencer().AssertHeld();
  payloads_.Reset();
  newest_ = Lsn();
}

Judgement JournalDeadLetterStore::Judge(const RawRecord& record, const JudgeContext& context) {
  payloads_.sequencer().AssertHeld();
  Decoder in(record.fields);
  const std::string_view id = in.Bytes();
  const auto type = static_cast<RecordType>(record.header.type);
  HashIndex& index = payloads_.index();

  const PendingState* pending = context.alone ? nullptr : context.overlay.Find(kDeadLetter, id);
  const HashIndex::Slot slot = pending == nullptr ? index.Find(id) : HashIndex::kNoSlot;
  const bool live = pending != nullptr ? pending->live : slot != HashIndex::kNoSlot;
  const Lsn removal = pending != nullptr ? Lsn() : payloads_.newest_removal();

  switch (type) {
    case RecordType::kDeadLetter:
      if (live) {  // The first one wins.
        return Judgement::Drop(slot == HashIndex::kNoSlot ? Lsn() : index.Get(slot).state_lsn);
      }
      if (index.full()) {
        return Judgement::Refuse(
            Lsn(), Exhausted(Detail::kLimit, "{} dead letters are kept, no more fit the index",
                             index.size()));
      }
      break;
    case RecordType::kDeadLetterRedriven: {
      (void)in.Bytes();  // The new id.
      const uint64_t replays = in.Varint();
      if (!live) return Judgement::Refuse(removal, NotFound("no dead letter of this id"));
      // A redrive is alone with its put, so the count stands in the index.
      if (replays != uint64_t{index.Get(slot).attempt} + 1) {
        return Judgement::Refuse(Lsn(), MakeStatus(StatusCode::kAborted, Detail::kConflict,
                                                 "the dead letter was redriven meanwhile"));
      }
      return Judgement::Admit();
    }
    default:
      if (!live) return Judgement::Drop(removal);
      break;
  }
  if (!context.alone) {
    context.overlay.Set(kDeadLetter, id, {.live = type == RecordType::kDeadLetter});
  }
  return Judgement::Admit();
}

}  // namespace holdfast
