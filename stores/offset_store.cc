#include "stores/offset_store.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "journal/format/codec.h"

namespace holdfast {
namespace {

constexpr auto kOffset = BatchOverlay::Space::kOffset;
constexpr auto kStart = BatchOverlay::Space::kStart;

// Slots that one call of WriteSnapshot looks at: free ones cost time too, and the sequencer waits.
constexpr uint64_t kSlotsVisitedMax = 16'384;

// Kinds of entries of a checkpoint (FORMAT.md §8).
constexpr uint64_t kPositionEntry = 1;
constexpr uint64_t kSourceEntry = 2;
constexpr uint64_t kStartEntry = 3;

// The key of a client's position or start, which is what such a record begins with.
[[gnu::always_inline]] inline PositionKeyView TakeClientKey(Decoder& in) {
  PositionKeyView key;
  key.topic = in.Bytes();
  key.client = in.Bytes();
  key.partition = in.Varint();
  return key;
}

// The same of a source.
[[gnu::always_inline]] inline PositionKeyView TakeSourceKey(Decoder& in) {
  PositionKeyView key;
  key.topic = in.Bytes();
  key.incarnation = in.Varint();
  key.partition = in.Varint();
  return key;
}

// The bytes that name a key at the front of `record`: what `in` has read of its fields so far.
// Fields have one encoding each, so equal keys have equal bytes.
std::string_view KeyBytes(const RawRecord& record, const Decoder& in) {
  return AsText(record.fields.first(record.fields.size() - in.remaining()));
}

Status Unconfirmed() {
  return Unavailable(Detail::kPoisoned,
                     "the journal failed before the newest change of this key was confirmed; "
                     "reopen the store");
}

}  // namespace

Commit JournalOffsetStore::Write(const OffsetKey& key, OffsetPosition position) {
  BatchLease batch(writer_->limits());
  batch->WriteOffset(key, position);
  return writer_->Write(*batch);
}

Commit JournalOffsetStore::Forget(const OffsetKey& key) {
  BatchLease batch(writer_->limits());
  batch->ForgetOffset(key);
  return writer_->Write(*batch);
}

StatusOr<StoredOffset> JournalOffsetStore::Read(const OffsetKey& key) {
  Position position;
  Lsn forgotten;
  {
    MutexLock lock(sequencer_);
    if (const Position* found = offsets_.Find(ViewOf(key)); found != nullptr) position = *found;
    forgotten = newest_forget_;
  }
  if (Hidden(position.lsn ? position.lsn : forgotten)) return Unconfirmed();
  if (!position.lsn) {
    return NotFound("no offset was ever written for this topic, client and partition");
  }
  return StoredOffset{.key = key,
                      .position = {position.next, position.incarnation},
                      .lsn = position.lsn.value(),
                      .durable = Durable(position.lsn)};
}

StatusOr<OffsetPosition> JournalOffsetStore::ReadStart(const OffsetKey& key) {
  Position start;
  Lsn forgotten;
  {
    MutexLock lock(sequencer_);
    if (const Start* found = starts_.Find(ViewOf(key)); found != nullptr) start = *found;
    forgotten = newest_forget_;
  }
  if (Hidden(start.lsn ? start.lsn : forgotten)) return Unconfirmed();
  if (!start.lsn) return NotFound("no start was written for this topic, client and partition");
  return OffsetPosition(start.next, start.incarnation);
}

std::vector<StoredOffset> JournalOffsetStore::ReadTopic(std::string_view topic) {
  return Select([&](const PositionKey& key) { return key.topic == topic; });
}

std::vector<StoredOffset> JournalOffsetStore::ReadAll() {
  return Select([](const PositionKey&) { return true; });
}

template <typename Wanted>
std::vector<StoredOffset> JournalOffsetStore::Select(Wanted wanted) {
  std::vector<StoredOffset> selected;
  {
    MutexLock lock(sequencer_);
    for (const auto& [key, position, live] : offsets_.entries()) {
      if (!live || !wanted(key)) continue;
      selected.push_back({.key = {key.topic, key.client, key.partition},
                          .position = {position.next, position.incarnation},
                          .lsn = position.lsn.value()});
    }
  }
  std::sort(selected.begin(), selected.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  for (StoredOffset& offset : selected) offset.durable = Durable(Lsn(offset.lsn));
  return selected;
}

std::vector<std::string> JournalOffsetStore::Topics() {
  std::vector<std::string> topics;
  {
    MutexLock lock(sequencer_);
    for (const auto& [key, position, live] : offsets_.entries()) {
      if (live) topics.push_back(key.topic);
    }
  }
  std::sort(topics.begin(), topics.end());
  topics.erase(std::unique(topics.begin(), topics.end()), topics.end());
  return topics;
}

StatusOr<SourceProgress> JournalOffsetStore::ReadSource(const SourceKey& key) {
  Source source;
  {
    MutexLock lock(sequencer_);
    const Source* found = sources_.Find(ViewOf(key));
    if (found == nullptr) return NotFound("nothing is recorded of this source");
    source = *found;
  }
  const Lsn lsn = std::max(source.seen.lsn, source.cursor.lsn);
  if (Hidden(lsn)) return Unconfirmed();
  return SourceProgress{.has_seen = static_cast<bool>(source.seen.lsn),
                        .seen = source.seen.value,
                        .has_cursor = static_cast<bool>(source.cursor.lsn),
                        .cursor = source.cursor.value,
                        .lsn = lsn.value(),
                        .durable = Durable(lsn)};
}

Status JournalOffsetStore::Flush() {
  Lsn newest;
  {
    MutexLock lock(sequencer_);
    newest = newest_;
  }
  return newest ? writer_->sink().WaitFor(newest.value()) : absl::OkStatus();
}

uint64_t JournalOffsetStore::Count() {
  MutexLock lock(sequencer_);
  return offsets_.size();
}

void JournalOffsetStore::Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) {
  sequencer_.AssertHeld();
  const Basis basis{.lsn = lsn, .segment = ref.segment, .bytes = record.bytes()};
  newest_ = std::max(newest_, lsn);
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kOffsetAdvance:
      return Apply(FieldsOf<OffsetAdvance>(record), basis);
    case RecordType::kOffsetForget:
      return Apply(FieldsOf<OffsetForget>(record), lsn);
    case RecordType::kSourceSeen:
      return Apply(FieldsOf<SourceSeen>(record), basis);
    case RecordType::kSourceCursor:
      return Apply(FieldsOf<SourceCursor>(record), basis);
    case RecordType::kOffsetStart:
      return Apply(FieldsOf<OffsetStart>(record), basis);
    default:
      CHECK(false);  // Routed to the wrong store.
  }
}

void JournalOffsetStore::Apply(const OffsetAdvance& record, const Basis& basis) {
  sequencer_.AssertHeld();
  Position& position = offsets_.FindOrInsert({record.topic, record.client, record.partition});
  if (basis.lsn <= position.lsn) return;
  position.incarnation = record.incarnation;
  position.next = record.next;
  Rest(position, basis);
}

void JournalOffsetStore::Apply(const OffsetForget& record, Lsn lsn) {
  sequencer_.AssertHeld();
  newest_forget_ = std::max(newest_forget_, lsn);
  const PositionKeyView key{record.topic, record.client, record.partition};
  const auto forget = [&](auto& entries) {
    sequencer_.AssertHeld();
    const Position* const entry = entries.Find(key);
    if (entry == nullptr || lsn <= entry->lsn) return;
    Release(*entry);
    entries.Erase(key);
  };
  forget(offsets_);
  forget(starts_);
}

void JournalOffsetStore::Apply(const OffsetStart& record, const Basis& basis) {
  sequencer_.AssertHeld();
  Start& start = starts_.FindOrInsert({record.topic, record.client, record.partition});
  if (basis.lsn <= start.lsn) return;
  start.incarnation = record.incarnation;
  start.next = record.start;
  Rest(start, basis);
}

void JournalOffsetStore::Apply(const SourceSeen& record, const Basis& basis) {
  sequencer_.AssertHeld();
  Raise(sources_.FindOrInsert({record.topic, {}, record.partition, record.incarnation}).seen,
        record.through, basis);
}

void JournalOffsetStore::Apply(const SourceCursor& record, const Basis& basis) {
  sequencer_.AssertHeld();
  Raise(sources_.FindOrInsert({record.topic, {}, record.partition, record.incarnation}).cursor,
        record.cursor, basis);
}

bool JournalOffsetStore::Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const {
  sequencer_.AssertHeld();
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kOffsetAdvance: {
      const auto advance = FieldsOf<OffsetAdvance>(record);
      const Position* found = offsets_.Find({advance.topic, advance.client, advance.partition});
      if (found == nullptr || found->lsn != lsn) return false;
      draft.Add(advance);
      return true;
    }
    case RecordType::kSourceSeen: {
      const auto seen = FieldsOf<SourceSeen>(record);
      const Source* found = sources_.Find({seen.topic, {}, seen.partition, seen.incarnation});
      if (found == nullptr || found->seen.lsn != lsn) return false;
      draft.Add(seen);
      return true;
    }
    case RecordType::kSourceCursor: {
      const auto cursor = FieldsOf<SourceCursor>(record);
      const Source* found = sources_.Find({cursor.topic, {}, cursor.partition, cursor.incarnation});
      if (found == nullptr || found->cursor.lsn != lsn) return false;
      draft.Add(cursor);
      return true;
    }
    case RecordType::kOffsetStart: {
      const auto start = FieldsOf<OffsetStart>(record);
      const Start* found = starts_.Find({start.topic, start.client, start.partition});
      if (found == nullptr || found->lsn != lsn) return false;
      draft.Add(start);
      return true;
    }
    default:
      return false;  // a forget leaves nothing to state
  }
}

uint64_t JournalOffsetStore::SnapshotEntries() const {
  sequencer_.AssertHeld();
  return offsets_.size() + sources_.size() + starts_.size();
}

// The cursor counts the slots of the three maps, one after the other: each map's as it was when its
// turn came, because slots that come later may be left to replay.
bool JournalOffsetStore::WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const {
  sequencer_.AssertHeld();
  constexpr uint64_t kSources = uint64_t{1} << 32;
  constexpr uint64_t kStarts = uint64_t{2} << 32;
  const size_t full = out.size() + bytes_max;
  const auto write = [&](const auto& entries, uint64_t first) {
    const uint64_t end = std::min<uint64_t>(entries.size(), cursor - first + kSlotsVisitedMax);
    for (; cursor - first < end && out.size() < full; ++cursor) {
      const auto& [key, value, live] = entries[cursor - first];
      if (live) Encode(key, value, out);
    }
    return cursor - first < entries.size();
  };
  if (cursor < kSources) {
    if (write(offsets_.entries(), 0)) return true;
    cursor = kSources;
  }
  if (cursor < kStarts) {
    if (write(sources_.entries(), kSources)) return true;
    cursor = kStarts;
  }
  return write(starts_.entries(), kStarts);
}

void JournalOffsetStore::Encode(const PositionKey& key, const Position& position,
                                std::string& out) {
  Encode(kPositionEntry, key, position, out);
}

void JournalOffsetStore::Encode(const PositionKey& key, const Start& start, std::string& out) {
  Encode(kStartEntry, key, start, out);
}

void JournalOffsetStore::Encode(uint64_t kind, const PositionKey& key, const Position& position,
                                std::string& out) {
  Encoder encode(out);
  encode.Varint(kind);
  encode.Bytes(key.topic);
  encode.Bytes(key.client);
  for (const uint64_t number :
       {key.partition, position.incarnation, position.next, position.lsn.value(),
        uint64_t{position.segment}, uint64_t{position.bytes}}) {
    encode.Varint(number);
  }
}

void JournalOffsetStore::Encode(const PositionKey& key, const Source& source, std::string& out) {
  Encoder encode(out);
  encode.Varint(kSourceEntry);
  encode.Bytes(key.topic);
  encode.Varint(key.incarnation);
  encode.Varint(key.partition);
  for (const SourceMark* mark : {&source.seen, &source.cursor}) {
    encode.Varint(mark->lsn.value());
    if (!mark->lsn) continue;
    encode.Varint(mark->value);
    encode.Varint(mark->segment);
    encode.Varint(mark->bytes);
  }
}

Status JournalOffsetStore::LoadSnapshot(ByteView entries, uint64_t expected) {
  sequencer_.AssertHeld();
  if (offsets_.size() == 0) offsets_.Reserve(expected);
  Decoder in(entries);
  while (in.remaining() > 0) {
    const uint64_t kind = in.Varint();
    const bool loaded = kind == kPositionEntry ? LoadPosition(in, offsets_)
                        : kind == kSourceEntry ? LoadSource(in)
                        : kind == kStartEntry  ? LoadPosition(in, starts_)
                                               : false;
    if (!loaded) return DataLoss("an entry of the offsets does not decode");
  }
  return absl::OkStatus();
}

template <typename Entry>
bool JournalOffsetStore::LoadPosition(Decoder& in, SlotMap<Entry>& entries) {
  const PositionKeyView key = TakeClientKey(in);
  const uint64_t incarnation = in.Varint();
  const uint64_t next = in.Varint();
  const std::optional<Basis> basis = TakeBasis(in, Lsn(in.Varint()));
  if (!basis.has_value()) return false;
  newest_ = std::max(newest_, basis->lsn);
  Position& position = entries.FindOrInsert(key);
  if (basis->lsn <= position.lsn) return true;  // it moved to another slot meanwhile
  position.incarnation = incarnation;
  position.next = next;
  Rest(position, *basis);
  return true;
}

bool JournalOffsetStore::LoadSource(Decoder& in) {
  const PositionKeyView key = TakeSourceKey(in);
  Source* source = nullptr;
  for (SourceMark Source::* const which : {&Source::seen, &Source::cursor}) {
    const Lsn lsn(in.Varint());
    if (!lsn && in.ok()) continue;
    const uint64_t value = in.Varint();
    const std::optional<Basis> basis = TakeBasis(in, lsn);
    if (!basis.has_value()) return false;
    newest_ = std::max(newest_, lsn);
    if (source == nullptr) source = &sources_.FindOrInsert(key);
    Raise(source->*which, value, *basis);
  }
  return in.ok();
}

std::optional<JournalOffsetStore::Basis> JournalOffsetStore::TakeBasis(Decoder& in, Lsn lsn) {
  const uint64_t segment = in.Varint();
  const uint64_t bytes = in.Varint();
  constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();
  if (!in.ok() || !lsn || segment == 0 || segment > kU32Max || bytes > kU32Max) return std::nullopt;
  return Basis{
      .lsn = lsn, .segment = static_cast<uint32_t>(segment), .bytes = static_cast<uint32_t>(bytes)};
}

void JournalOffsetStore::Reset() {
  sequencer_.AssertHeld();
  for (const auto& [key, position, live] : offsets_.entries()) Release(position);
  for (const auto& [key, source, live] : sources_.entries()) {
    Release(source.seen);
    Release(source.cursor);
  }
  for (const auto& [key, start, live] : starts_.entries()) Release(start);
  offsets_.Clear();
  sources_.Clear();
  starts_.Clear();
  newest_ = newest_forget_ = Lsn();
}

void JournalOffsetStore::Raise(SourceMark& mark, uint64_t value, const Basis& basis) {
  if (basis.lsn <= mark.lsn) return;
  mark.value = value;
  Rest(mark, basis);
}

void JournalOffsetStore::Rest(Basis& on, const Basis& now) {
  Release(on);
  on = now;
  live_.Add(SegmentId(now.segment), now.bytes);
}

void JournalOffsetStore::Release(const Basis& basis) {
  if (basis.lsn) live_.Remove(SegmentId(basis.segment), basis.bytes);
}

Judgement JournalOffsetStore::Judge(const RawRecord& record, const JudgeContext& context) {
  sequencer_.AssertHeld();
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kOffsetAdvance:
      return JudgeAdvance(record, context);
    case RecordType::kOffsetForget:
      return JudgeForget(record, context);
    case RecordType::kOffsetStart:
      return JudgeStart(record, context);
    default:
      return JudgeSource(record, context);
  }
}

Judgement JournalOffsetStore::JudgeAdvance(const RawRecord& record, const JudgeContext& context) {
  Decoder in(record.fields);
  const PositionKeyView key = TakeClientKey(in);
  const std::string_view bytes = KeyBytes(record, in);
  const uint64_t incarnation = in.Varint();
  const uint64_t next = in.Varint();

  const auto pending = context.alone ? nullptr : context.overlay.Find(kOffset, bytes);
  if (pending != nullptr) {
    if (pending->live &&
        std::tie(incarnation, next) <= std::tie(pending->values[0], pending->values[1])) {
      return Judgement::Drop(Lsn());  // The batch's own record made it so.
    }
  } else if (const Position* now = offsets_.Find(key); now != nullptr) {
    if (std::tie(incarnation, next) <= std::tie(now->incarnation, now->next)) {
      return Judgement::Drop(now->lsn);
    }
  }
  if (!context.alone) {
    context.overlay.Set(pending, kOffset, bytes, {.live = true, .values = {incarnation, next}});
  }
  return Judgement::Admit();
}

Judgement JournalOffsetStore::JudgeForget(const RawRecord& record, const JudgeContext& context) {
  Decoder in(record.fields);
  const PositionKeyView key = TakeClientKey(in);
  const std::string_view bytes = KeyBytes(record, in);

  const auto position = context.alone ? nullptr : context.overlay.Find(kOffset, bytes);
  const auto start = context.alone ? nullptr : context.overlay.Find(kStart, bytes);
  const bool live = (position != nullptr ? position->live : offsets_.Find(key) != nullptr) ||
                    (start != nullptr ? start->live : starts_.Find(key) != nullptr);
  if (!live) {
    return Judgement::Drop(position != nullptr && start != nullptr ? Lsn() : newest_forget_);
  }
  if (!context.alone) {
    context.overlay.Set(kOffset, bytes, {.live = false});
    context.overlay.Set(kStart, bytes, {.live = false});
  }
  return Judgement::Admit();
}

Judgement JournalOffsetStore::JudgeStart(const RawRecord& record, const JudgeContext& context) {
  Decoder in(record.fields);
  const PositionKeyView key = TakeClientKey(in);
  const std::string_view bytes = KeyBytes(record, in);
  const uint64_t incarnation = in.Varint();

  const auto pending = context.alone ? nullptr : context.overlay.Find(kStart, bytes);
  if (pending != nullptr) {
    if (pending->live && incarnation <= pending->values[0]) return Judgement::Drop(Lsn());
  } else if (const Start* now = starts_.Find(key); now != nullptr) {
    if (incarnation <= now->incarnation) return Judgement::Drop(now->lsn);
  }
  if (!context.alone) context.overlay.Set(kStart, bytes, {.live = true, .values = {incarnation}});
  return Judgement::Admit();
}

Judgement JournalOffsetStore::JudgeSource(const RawRecord& record, const JudgeContext& context) {
  const bool is_seen = record.header.type == static_cast<uint8_t>(RecordType::kSourceSeen);
  const auto space = is_seen ? BatchOverlay::Space::kSeen : BatchOverlay::Space::kCursor;
  Decoder in(record.fields);
  const PositionKeyView key = TakeSourceKey(in);
  const std::string_view bytes = KeyBytes(record, in);
  const uint64_t value = in.Varint();

  const auto pending = context.alone ? nullptr : context.overlay.Find(space, bytes);
  if (pending != nullptr) {
    if (value <= pending->values[0]) return Judgement::Drop(Lsn());
  } else if (const Source* found = sources_.Find(key); found != nullptr) {
    const SourceMark& mark = is_seen ? found->seen : found->cursor;
    if (mark.lsn && value <= mark.value) return Judgement::Drop(mark.lsn);
  }
  if (!context.alone) {
    context.overlay.Set(pending, space, bytes, {.live = true, .values = {value}});
  }
  return Judgement::Admit();
}

}  // namespace holdfast
