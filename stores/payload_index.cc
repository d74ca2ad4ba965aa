#include "stores/payload_index.h"

#include <algorithm>

#include "journal/format/codec.h"
#include "journal/format/records.h"

namespace holdfast {
namespace {

// How often a read that failed is tried again because the key changed meanwhile.
constexpr int kTriesMax = 8;

// The record in `bytes` is one about `key`.
Status CheckKey(ByteView bytes, std::string_view key, const RecordRef& ref) {
  const StatusOr<RawRecord> record = TakeRecord(bytes);
  if (!record.ok()) return record.status();
  Decoder in(record->fields);
  if (in.Bytes() == key && in.ok()) return absl::OkStatus();
  return DataLoss("segment {}, offset {}: the record is of another key", ref.segment, ref.offset);
}

}  // namespace

StatusOr<StoredPayload> PayloadIndex::Read(std::string_view key) {
  Looked looked;
  Lsn removal;
  {
    MutexLock lock(sequencer_);
    looked = Look(key);
    removal = newest_removal_;
  }
  if (looked.slot == HashIndex::kNoSlot) {
    RETURN_IF_ERROR(CheckShown(removal));
    return NotFound("no entry of this id");
  }
  return ReadFound(key, std::move(looked), true);
}

StatusOr<StoredPayload> PayloadIndex::ReadFound(std::string_view key, Looked looked,
                                                bool remember) {
  for (int tries = 1;; ++tries) {
    RETURN_IF_ERROR(CheckShown(looked.payload.state_.state_lsn));
    if (looked.payload.cached_) return std::move(looked.payload);
    const IndexState& state = looked.payload.state_;
    StatusOr<std::string> bytes = sink_->ReadRecord(state.ref, state.payload_lsn);
    Status read = bytes.status();
    if (read.ok()) read = CheckKey(AsBytes(*bytes), key, state.ref);

    MutexLock lock(sequencer_);
    Looked now = Look(key);
    const bool same =
        now.slot != HashIndex::kNoSlot && now.payload.state_.payload_lsn == state.payload_lsn;
    if (read.ok()) {
      if (same && remember) cache_.Insert(now.slot, state.payload_lsn, AsBytes(*bytes));
      looked.payload.read_ = *std::move(bytes);
      return std::move(looked.payload);
    }
    if (same || tries == kTriesMax) return read;
    if (now.slot == HashIndex::kNoSlot) return NotFound("no entry of this id");
    looked = std::move(now);
  }
}

StatusOr<PayloadIndex::Presence> PayloadIndex::Probe(std::string_view key) {
  bool present;
  Lsn depends;
  {
    MutexLock lock(sequencer_);
    const HashIndex::Slot slot = index_.Find(key);
    present = slot != HashIndex::kNoSlot;
    depends = present ? index_.Get(slot).state_lsn : newest_removal_;
  }
  RETURN_IF_ERROR(CheckShown(depends));
  return Presence{.present = present, .durable = sink_->Reached(depends.value())};
}

Status PayloadIndex::ForEach(const Visit& visit) {
  std::optional<HashIndex::Snapshot> snapshot;
  {
    MutexLock lock(sequencer_);
    snapshot.emplace(index_);
  }
  Status first_error;
  for (bool more = true; more;) {
    std::string key;
    Looked looked;
    {
      MutexLock lock(sequencer_);
      const HashIndex::Slot slot = snapshot->Next();
      if (slot == HashIndex::kNoSlot) break;
      key = index_.KeyAt(slot);
      looked = LookAt(slot);
    }
    StatusOr<StoredPayload> payload = ReadFound(key, std::move(looked), false);
    StatusOr<bool> visited = payload.ok() ? visit(*payload) : payload.status();
    if (visited.ok()) {
      more = *visited;
    } else if (first_error.ok() && payload.status().code() != StatusCode::kNotFound) {
      first_error = visited.status();
    }
  }
  MutexLock lock(sequencer_);
  snapshot.reset();
  return first_error;
}

void PayloadIndex::Remember(HashIndex::Slot slot, Lsn lsn, ByteView record) {
  if (index_.IsLive(slot) && index_.Get(slot).payload_lsn == lsn) cache_.Insert(slot, lsn, record);
}

void PayloadIndex::Erase(HashIndex::Slot slot) {
  cache_.Erase(slot);
  index_.Erase(slot);
}

PayloadIndex::Looked PayloadIndex::Look(std::string_view key) {
  const HashIndex::Slot slot = index_.Find(key);
  return slot == HashIndex::kNoSlot ? Looked() : LookAt(slot);
}

PayloadIndex::Looked PayloadIndex::LookAt(HashIndex::Slot slot) {
  Looked looked;
  looked.slot = slot;
  looked.payload.state_ = index_.Get(slot);
  looked.payload.cached_ = cache_.Find(slot, looked.payload.state_.payload_lsn);
  return looked;
}

Status PayloadIndex::CheckShown(Lsn lsn) const {
  if (!lsn || !sink_->poisoned() || sink_->Reached(lsn.value())) return absl::OkStatus();
  return Unavailable(Detail::kPoisoned,
                     "the journal failed before the newest change of this id was confirmed; "
                     "reopen the store");
}

}  // namespace holdfast
