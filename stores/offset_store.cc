#include "stores/offset_store.h"

#include <algorithm>
#include <tuple>

#include "journal/format/codec.h"

namespace holdfast {
namespace {

constexpr auto kOffset = BatchOverlay::Space::kOffset;

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
    const auto found = offsets_.find(ViewOf(key));
    if (found != offsets_.end()) position = found->second;
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
    for (const auto& [key, position] : offsets_) {
      if (!wanted(key)) continue;
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
    for (const auto& [key, position] : offsets_) topics.push_back(key.topic);
  }
  std::sort(topics.begin(), topics.end());
  topics.erase(std::unique(topics.begin(), topics.end()), topics.end());
  return topics;
}

StatusOr<SourceProgress> JournalOffsetStore::ReadSource(const SourceKey& key) {
  Source source;
  {
    MutexLock lock(sequencer_);
    const auto found = sources_.find(ViewOf(key));
    if (found == sources_.end()) return NotFound("nothing is recorded of this source");
    source = found->second;
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
    default:
      CHECK(false);  // Routed to the wrong store.
  }
}

void JournalOffsetStore::Apply(const OffsetAdvance& record, const Basis& basis) {
  sequencer_.AssertHeld();
  const PositionKeyView key{record.topic, record.client, record.partition};
  auto found = offsets_.find(key);
  if (found == offsets_.end()) {
    found = offsets_.emplace(PositionKey(key), Position()).first;
  }
  Position& position = found->second;
  if (basis.lsn <= position.lsn) return;
  position.incarnation = record.incarnation;
  position.next = record.next;
  Rest(position, basis);
}

void JournalOffsetStore::Apply(const OffsetForget& record, Lsn lsn) {
  sequencer_.AssertHeld();
  newest_forget_ = std::max(newest_forget_, lsn);
  const auto found = offsets_.find(PositionKeyView{record.topic, record.client, record.partition});
  if (found == offsets_.end() || lsn <= found->second.lsn) return;
  Release(found->second);
  offsets_.erase(found);
}

void JournalOffsetStore::Apply(const SourceSeen& record, const Basis& basis) {
  sequencer_.AssertHeld();
  Raise(SourceOf({record.topic, {}, record.partition, record.incarnation}).seen, record.through,
        basis);
}

void JournalOffsetStore::Apply(const SourceCursor& record, const Basis& basis) {
  sequencer_.AssertHeld();
  Raise(SourceOf({record.topic, {}, record.partition, record.incarnation}).cursor, record.cursor,
        basis);
}

bool JournalOffsetStore::Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const {
  sequencer_.AssertHeld();
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kOffsetAdvance: {
      const auto advance = FieldsOf<OffsetAdvance>(record);
      const auto found =
          offsets_.find(PositionKeyView{advance.topic, advance.client, advance.partition});
      if (found == offsets_.end() || found->second.lsn != lsn) return false;
      draft.Add(advance);
      return true;
    }
    case RecordType::kSourceSeen: {
      const auto seen = FieldsOf<SourceSeen>(record);
      const auto found = sources_.find(
          PositionKeyView{seen.topic, {}, seen.partition, seen.incarnation});
      if (found == sources_.end() || found->second.seen.lsn != lsn) return false;
      draft.Add(seen);
      return true;
    }
    case RecordType::kSourceCursor: {
      const auto cursor = FieldsOf<SourceCursor>(record);
      const auto found = sources_.find(
          PositionKeyView{cursor.topic, {}, cursor.partition, cursor.incarnation});
      if (found == sources_.end() || found->second.cursor.lsn != lsn) return false;
      draft.Add(cursor);
      return true;
    }
    default:
      return false;  // a forget leaves nothing to state
  }
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

JournalOffsetStore::Source& JournalOffsetStore::SourceOf(const PositionKeyView& key) {
  const auto found = sources_.find(key);
  if (found != sources_.end()) return found->second;
  return sources_[PositionKey(key)];
}

Verdict JournalOffsetStore::Judge(const RawRecord& record, const JudgeContext& context) {
  sequencer_.AssertHeld();
  switch (static_cast<RecordType>(record.header.type)) {
    case RecordType::kOffsetAdvance:
      return JudgeAdvance(record, context);
    case RecordType::kOffsetForget:
      return JudgeForget(record, context);
    default:
      return JudgeSource(record, context);
  }
}

Verdict JournalOffsetStore::JudgeAdvance(const RawRecord& record, const JudgeContext& context) {
  Decoder in(record.fields);
  PositionKeyView key;
  key.topic = in.Bytes();
  key.client = in.Bytes();
  key.partition = in.Varint();
  const std::string_view bytes = KeyBytes(record, in);
  const uint64_t incarnation = in.Varint();
  const uint64_t next = in.Varint();

  const auto pending = context.alone ? nullptr : context.overlay.Find(kOffset, bytes);
  if (pending != nullptr) {
    if (pending->live &&
        std::tie(incarnation, next) <= std::tie(pending->values[0], pending->values[1])) {
      return Verdict::Drop(Lsn());  // The batch's own record made it so.
    }
  } else if (const auto found = offsets_.find(key); found != offsets_.end()) {
    const Position& now = found->second;
    if (std::tie(incarnation, next) <= std::tie(now.incarnation, now.next)) {
      return Verdict::Drop(now.lsn);
    }
  }
  if (!context.alone) {
    context.overlay.Set(kOffset, bytes, {.live = true, .values = {incarnation, next}});
  }
  return Verdict::Admit();
}

Verdict JournalOffsetStore::JudgeForget(const RawRecord& record, const JudgeContext& context) {
  Decoder in(record.fields);
  PositionKeyView key;
  key.topic = in.Bytes();
  key.client = in.Bytes();
  key.partition = in.Varint();
  const std::string_view bytes = KeyBytes(record, in);

  const auto pending = context.alone ? nullptr : context.overlay.Find(kOffset, bytes);
  const bool live = pending != nullptr ? pending->live : offsets_.contains(key);
  if (!live) return Verdict::Drop(pending != nullptr ? Lsn() : newest_forget_);
  if (!context.alone) context.overlay.Set(kOffset, bytes, {.live = false});
  return Verdict::Admit();
}

Verdict JournalOffsetStore::JudgeSource(const RawRecord& record, const JudgeContext& context) {
  const bool is_seen = record.header.type == static_cast<uint8_t>(RecordType::kSourceSeen);
  const auto space = is_seen ? BatchOverlay::Space::kSeen : BatchOverlay::Space::kCursor;
  Decoder in(record.fields);
  PositionKeyView key;
  key.topic = in.Bytes();
  key.incarnation = in.Varint();
  key.partition = in.Varint();
  const std::string_view bytes = KeyBytes(record, in);
  const uint64_t value = in.Varint();

  const auto pending = context.alone ? nullptr : context.overlay.Find(space, bytes);
  if (pending != nullptr) {
    if (value <= pending->values[0]) return Verdict::Drop(Lsn());
  } else if (const auto found = sources_.find(key); found != sources_.end()) {
    const SourceMark& mark = is_seen ? found->second.seen : found->second.cursor;
    if (mark.lsn && value <= mark.value) return Verdict::Drop(mark.lsn);
  }
  if (!context.alone) context.overlay.Set(space, bytes, {.live = true, .values = {value}});
  return Verdict::Admit();
}

}  // namespace holdfast
