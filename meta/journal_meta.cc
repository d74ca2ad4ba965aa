#include "meta/journal_meta.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "journal/base/check.h"

namespace holdfast {
namespace {

// Kinds of entries in a checkpoint.
constexpr uint64_t kKeyEntry = 1;
constexpr uint64_t kLeaseEntry = 2;
constexpr uint64_t kRevisionEntry = 3;

// An entry of a checkpoint holds so much of a value.
constexpr uint64_t kPartBytes = uint64_t{64} << 10;
// The cursor of a snapshot: slot and part, then lease, then the end.
constexpr unsigned kPartBits = 20;
constexpr uint64_t kLeases = uint64_t{1} << 63;
constexpr uint64_t kRevision = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kSlotsVisitedMax = 10'000;

// A batch that only ends things may use the reserve of a full disk.
Claim ClaimOf(const std::vector<MvccChange>& changes) {
  const auto ends = [](const MvccChange& change) {
    return std::holds_alternative<MvccDelete>(change) ||
           std::holds_alternative<MvccLeaseEnd>(change) ||
           std::holds_alternative<MvccRevision>(change);
  };
  return std::all_of(changes.begin(), changes.end(), ends) ? Claim::kShrink : Claim::kGrow;
}

MetaPut RecordOf(const MvccEntry& entry) {
  return {.key = entry.key,
          .create_revision = entry.create_revision,
          .revision = entry.mod_revision,
          .version = entry.version,
          .lease = entry.lease,
          .value = entry.value};
}

MetaLeaseGrant RecordOf(uint64_t lease, absl::Duration ttl) {
  return {.id = lease, .ttl_ns = absl::ToInt64Nanoseconds(ttl)};
}

// What a waiting thread and the callback of the journal share; the last of the two frees it.
struct Confirmation {
  Mutex mu;
  CondVar changed;
  std::optional<Status> outcome ABSL_GUARDED_BY(mu);
};

}  // namespace

JournalMeta::JournalMeta(Mutex& sequencer, LiveBytes& live, Clock& clock, uint64_t id_seed,
                         const MvccMetaOptions& options)
    : MvccMeta(sequencer, clock, id_seed, options), live_(live) {}

JournalMeta::~JournalMeta() { Stop(); }

void JournalMeta::Attach(RecordSink& sink, AttachOptions options) {
  CHECK(sink_ == nullptr);
  sink_ = &sink;
  attached_ = std::move(options);
  MutexLock lock(mu_);
  partial_.reset();
  const bool skips = attached_.writable && !attached_.clean;
  Serve({.skip = skips ? kRevisionsSkipped : 0, .threads = attached_.threads});
}

Status JournalMeta::Ready() const {
  if (sink_ == nullptr) return WrongState(Detail::kNotReady, "the store is not open yet");
  return attached_.may_call == nullptr ? absl::OkStatus() : attached_.may_call();
}

uint64_t JournalMeta::key_count() {
  MutexLock lock(mu_);
  return state_.key_count();
}

// --- The way into the journal ---

BatchDraft JournalMeta::Draft(const std::vector<MvccChange>& changes) {
  BatchDraft draft;
  for (const MvccChange& change : changes) {
    if (const auto* put = std::get_if<MvccPut>(&change)) {
      draft.Add(RecordOf(*put->entry));
    } else if (const auto* erased = std::get_if<MvccDelete>(&change)) {
      draft.Add(MetaDelete{.key = erased->key, .revision = erased->revision});
    } else if (const auto* grant = std::get_if<MvccLeaseGrant>(&change)) {
      draft.Add(RecordOf(grant->id, grant->ttl));
    } else if (const auto* ended = std::get_if<MvccLeaseEnd>(&change)) {
      draft.Add(MetaLeaseEnd{.id = ended->id});
    } else {
      draft.Add(MetaRevision{.revision = std::get<MvccRevision>(change).revision});
    }
  }
  return draft;
}

Status JournalMeta::Reserve(const std::vector<MvccChange>& changes) {
  sink_->sequencer().AssertHeld();
  return sink_->Reserve(Draft(changes).batch_bytes(), ClaimOf(changes));
}

uint64_t JournalMeta::Append(const std::vector<MvccChange>& changes) {
  sink_->sequencer().AssertHeld();
  return (sink_->Append(Draft(changes)) + (changes.size() - 1)).value();
}

void JournalMeta::WhenDurable(uint64_t position, std::function<void(Status)> callback) {
  sink_->CallWhenReached(position, std::move(callback));
}

Status JournalMeta::WaitDurable(uint64_t position, absl::Duration deadline) {
  if (position == 0 || sink_->Reached(position)) return absl::OkStatus();
  if (!attached_.threads) return sink_->WaitFor(position);
  const auto confirmation = std::make_shared<Confirmation>();
  sink_->CallWhenReached(position, [confirmation](Status outcome) {
    MutexLock lock(confirmation->mu);
    confirmation->outcome = std::move(outcome);
    confirmation->changed.NotifyAll();
  });
  MutexLock lock(confirmation->mu);
  while (!confirmation->outcome.has_value()) {
    const absl::Duration left = clock_.Until(deadline);
    if (clock_.Now() >= deadline) {
      return MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone, "not by the deadline");
    }
    confirmation->changed.WaitFor(confirmation->mu, left);
  }
  return *confirmation->outcome;
}

// --- The state machine ---

void JournalMeta::Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) {
  mu_.AssertHeld();
  const Basis basis{.lsn = lsn, .segment = ref.segment, .bytes = record.bytes()};
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kMetaPut: {
      const auto put = FieldsOf<MetaPut>(record);
      return TakePut(
          std::make_shared<const MvccEntry>(MvccEntry{.key = std::string(put.key),
                                                      .value = std::string(put.value),
                                                      .create_revision = put.create_revision,
                                                      .mod_revision = put.revision,
                                                      .version = put.version,
                                                      .lease = put.lease}),
          basis);
    }
    case RecordType::kMetaDelete: {
      const auto erased = FieldsOf<MetaDelete>(record);
      return TakeDelete(erased.key, erased.revision, basis);
    }
    case RecordType::kMetaLeaseGrant: {
      const auto grant = FieldsOf<MetaLeaseGrant>(record);
      return TakeGrant(grant.id, absl::Nanoseconds(grant.ttl_ns), basis);
    }
    case RecordType::kMetaLeaseEnd:
      return TakeEnd(FieldsOf<MetaLeaseEnd>(record).id);
    case RecordType::kMetaRevision:
      return TakeRevision(FieldsOf<MetaRevision>(record).revision, basis);
    default:
      CHECK(false);  // Routed to the wrong machine.
  }
}

void JournalMeta::TakePut(MvccEntryPtr entry, const Basis& basis) {
  // An entry at the newest revision says what it is.
  if (entry->mod_revision >= state_.revision()) Release(revision_rest_);
  state_.Apply(MvccPut{entry}, clock_.Now());
  const MvccEntryPtr now = state_.Find(entry->key);
  if (now == nullptr || now->mod_revision != entry->mod_revision) return;  // a newer one stands
  Slot& slot = SlotFor(entry->key);
  slot.entry = now;
  if (slot.basis.lsn < basis.lsn) Rest(slot.basis, basis);
}

void JournalMeta::TakeDelete(std::string_view key, uint64_t revision, const Basis& basis) {
  state_.Apply(MvccDelete{.key = std::string(key), .revision = revision}, clock_.Now());
  TakeRevision(revision, basis);
  if (state_.Find(key) != nullptr) return;  // made again later
  const auto found = slot_of_key_.find(key);
  if (found == slot_of_key_.end()) return;
  Slot& slot = slots_[found->second];
  Release(slot.basis);
  slot.entry = nullptr;
  free_slots_.push_back(found->second);
  slot_of_key_.erase(found);
}

void JournalMeta::TakeGrant(uint64_t id, absl::Duration ttl, const Basis& basis) {
  state_.Apply(MvccLeaseGrant{.id = id, .ttl = ttl}, clock_.Now());
  LeaseRest& lease = leases_[id];
  lease.ttl = ttl;
  if (lease.basis.lsn < basis.lsn) Rest(lease.basis, basis);
}

void JournalMeta::TakeEnd(uint64_t id) {
  state_.Apply(MvccLeaseEnd{.id = id}, clock_.Now());
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  Release(found->second.basis);
  leases_.erase(found);
}

void JournalMeta::TakeRevision(uint64_t revision, const Basis& basis) {
  if (revision < state_.revision()) return;
  state_.Apply(MvccRevision{.revision = revision}, clock_.Now());
  if (revision_rest_.lsn < basis.lsn) Rest(revision_rest_, basis);
}

void JournalMeta::Reset() {
  mu_.AssertHeld();
  for (Slot& slot : slots_) Release(slot.basis);
  for (auto& [id, lease] : leases_) Release(lease.basis);
  Release(revision_rest_);
  slots_.clear();
  free_slots_.clear();
  slot_of_key_.clear();
  leases_.clear();
  partial_.reset();
  state_.Reset();
}

// --- What compaction asks ---

bool JournalMeta::Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const {
  mu_.AssertHeld();
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kMetaPut: {
      const Slot* slot = FindSlot(FieldsOf<MetaPut>(record).key);
      if (slot == nullptr || slot->basis.lsn != lsn) return false;
      draft.Add(RecordOf(*slot->entry));
      return true;
    }
    case RecordType::kMetaLeaseGrant: {
      const auto found = leases_.find(FieldsOf<MetaLeaseGrant>(record).id);
      if (found == leases_.end() || found->second.basis.lsn != lsn) return false;
      draft.Add(RecordOf(found->first, found->second.ttl));
      return true;
    }
    case RecordType::kMetaDelete:
    case RecordType::kMetaRevision:
      if (revision_rest_.lsn != lsn) return false;
      draft.Add(MetaRevision{.revision = state_.revision()});
      return true;
    default:
      return false;  // the end of a lease leaves nothing to state
  }
}

void JournalMeta::Rest(Basis& on, const Basis& now) {
  Release(on);
  on = now;
  live_.Add(SegmentId(now.segment), now.bytes);
}

void JournalMeta::Release(Basis& basis) {
  if (basis.lsn) live_.Remove(SegmentId(basis.segment), basis.bytes);
  basis = {};
}

JournalMeta::Slot* JournalMeta::FindSlot(std::string_view key) {
  const auto found = slot_of_key_.find(key);
  return found == slot_of_key_.end() ? nullptr : &slots_[found->second];
}

const JournalMeta::Slot* JournalMeta::FindSlot(std::string_view key) const {
  const auto found = slot_of_key_.find(key);
  return found == slot_of_key_.end() ? nullptr : &slots_[found->second];
}

JournalMeta::Slot& JournalMeta::SlotFor(const std::string& key) {
  if (Slot* found = FindSlot(key); found != nullptr) return *found;
  uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slot_of_key_.emplace(key, slot);
  return slots_[slot];
}

// --- Checkpoints ---

uint64_t JournalMeta::SnapshotEntries() const {
  mu_.AssertHeld();
  uint64_t entries = leases_.size() + (revision_rest_.lsn ? 1 : 0);
  return entries + slot_of_key_.size();
}

// A slot that changes between two parts of its value leaves parts that do not fit together: they
// are passed over, and replay puts it right.
bool JournalMeta::WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const {
  mu_.AssertHeld();
  const size_t full = out.size() + bytes_max;
  for (uint64_t visited = 0; cursor < kLeases; ++visited) {
    const uint64_t slot = cursor >> kPartBits;
    if (slot >= slots_.size()) {
      cursor = kLeases;
      break;
    }
    if (out.size() >= full || visited == kSlotsVisitedMax) return true;
    const MvccEntryPtr& entry = slots_[slot].entry;
    const uint64_t from = (cursor & ((uint64_t{1} << kPartBits) - 1)) * kPartBytes;
    if (entry != nullptr && (from == 0 || from < entry->value.size())) {
      EncodePart(slots_[slot], from, out);
      ++cursor;
      if (from + kPartBytes < entry->value.size()) continue;
    }
    cursor = (slot + 1) << kPartBits;
  }
  while (cursor < kRevision) {
    const auto lease = leases_.lower_bound(cursor - kLeases);
    if (lease == leases_.end()) {
      cursor = kRevision;
      break;
    }
    if (out.size() >= full) return true;
    Encoder encode(out);
    encode.Varint(kLeaseEntry);
    encode.Varint(lease->first);
    encode.Signed(absl::ToInt64Nanoseconds(lease->second.ttl));
    Encode(lease->second.basis, encode);
    cursor = kLeases + lease->first + 1;
  }
  if (!revision_rest_.lsn) return false;
  if (out.size() >= full) return true;
  Encoder encode(out);
  encode.Varint(kRevisionEntry);
  encode.Varint(state_.revision());
  Encode(revision_rest_, encode);
  return false;
}

void JournalMeta::EncodePart(const Slot& slot, uint64_t from, std::string& out) {
  const MvccEntry& entry = *slot.entry;
  Encoder encode(out);
  encode.Varint(kKeyEntry);
  encode.Bytes(entry.key);
  for (const uint64_t number :
       {entry.create_revision, entry.mod_revision, entry.version, entry.lease}) {
    encode.Varint(number);
  }
  Encode(slot.basis, encode);
  encode.Varint(entry.value.size());
  encode.Varint(from);
  encode.Bytes(std::string_view(entry.value).substr(from, kPartBytes));
}

void JournalMeta::Encode(const Basis& basis, Encoder& encode) {
  encode.Varint(basis.lsn.value());
  encode.Varint(basis.segment);
  encode.Varint(basis.bytes);
}

Status JournalMeta::LoadSnapshot(ByteView entries, uint64_t) {
  mu_.AssertHeld();
  Decoder in(entries);
  while (in.remaining() > 0) {
    const uint64_t kind = in.Varint();
    const bool loaded = kind == kKeyEntry        ? LoadPart(in)
                        : kind == kLeaseEntry    ? LoadLease(in)
                        : kind == kRevisionEntry ? LoadRevision(in)
                                                 : false;
    if (!loaded) return DataLoss("an entry of the Meta does not decode");
  }
  return absl::OkStatus();
}

bool JournalMeta::LoadPart(Decoder& in) {
  Partial read;
  read.entry.key = std::string(in.Bytes());
  read.entry.create_revision = in.Varint();
  read.entry.mod_revision = in.Varint();
  read.entry.version = in.Varint();
  read.entry.lease = in.Varint();
  const std::optional<Basis> basis = TakeBasis(in);
  read.value_bytes = in.Varint();
  const uint64_t from = in.Varint();
  const std::string_view part = in.Bytes();
  if (!in.ok() || !basis.has_value() || read.entry.key.empty() || read.entry.version == 0 ||
      part.size() > kPartBytes || from > read.value_bytes ||
      part.size() > read.value_bytes - from) {
    return false;
  }
  read.basis = *basis;
  if (from == 0) {
    partial_ = std::move(read);
  } else if (!partial_.has_value() || partial_->basis.lsn != read.basis.lsn ||
             partial_->entry.value.size() != from) {
    return true;  // it changed meanwhile
  }
  partial_->entry.value.append(part);
  if (partial_->entry.value.size() < partial_->value_bytes) return true;
  TakePut(std::make_shared<const MvccEntry>(std::move(partial_->entry)), partial_->basis);
  partial_.reset();
  return true;
}

bool JournalMeta::LoadLease(Decoder& in) {
  const uint64_t id = in.Varint();
  const int64_t ttl_ns = in.Signed();
  const std::optional<Basis> basis = TakeBasis(in);
  if (!in.ok() || !basis.has_value() || id == 0) return false;
  TakeGrant(id, absl::Nanoseconds(ttl_ns), *basis);
  return true;
}

bool JournalMeta::LoadRevision(Decoder& in) {
  const uint64_t revision = in.Varint();
  const std::optional<Basis> basis = TakeBasis(in);
  if (!in.ok() || !basis.has_value()) return false;
  TakeRevision(revision, *basis);
  return true;
}

std::optional<JournalMeta::Basis> JournalMeta::TakeBasis(Decoder& in) {
  const Lsn lsn(in.Varint());
  const uint64_t segment = in.Varint();
  const uint64_t bytes = in.Varint();
  constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();
  if (!in.ok() || !lsn || segment == 0 || segment > kU32Max || bytes > kU32Max) return std::nullopt;
  return Basis{
      .lsn = lsn, .segment = static_cast<uint32_t>(segment), .bytes = static_cast<uint32_t>(bytes)};
}

}  // namespace holdfast
