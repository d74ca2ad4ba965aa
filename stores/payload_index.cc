#include "stores/payload_index.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "journal/base/one_ahead.h"
#include "journal/format/codec.h"
#include "journal/format/records.h"
#include "stores/index_entry.h"

namespace holdfast {
namespace {

// How often a read that failed is tried again because the key changed meanwhile.
constexpr int kTriesMax = 8;

// How much of a visit is read ahead: enough that what two threads wait for each other is little
// beside their work, and little to hold.
constexpr size_t kGatheredMax = 4'096;
constexpr uint64_t kGatheredBytes = uint64_t{2} << 20;

// A visit goes forward through the journal in rounds of so many keys, of 16 bytes each: reads are
// long then, wherever what is live lies. The first round is small, for who wants a few only.
constexpr size_t kFirstRoundMax = 1'024;
constexpr size_t kRoundMax = size_t{1} << 21;

// Slots that one hold of the sequencer looks at: free ones cost time too, and the sequencer waits.
constexpr uint64_t kSlotsVisitedMax = 16'384;

// Keys of a visit that one hold of the sequencer settles.
constexpr size_t kSettledTogether = 64;

// Entries of a checkpoint whose places in the index are fetched side by side.
constexpr size_t kLoadedTogether = 64;

// Room is made for keys as long as the first, which may be an odd one: at most so long.
constexpr size_t kUsualKeyBytesMax = 64;

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

StatusOr<IndexState> PayloadIndex::ReadState(std::string_view key) {
  IndexState state;
  {
    MutexLock lock(sequencer_);
    const HashIndex::Slot slot = index_.Find(key);
    if (slot != HashIndex::kNoSlot) {
      state = index_.Get(slot);
    } else {
      state.state_lsn = newest_removal_;
    }
  }
  RETURN_IF_ERROR(CheckShown(state.state_lsn));
  if (!state.payload_lsn) return NotFound("no entry of this id");
  return state;
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
  std::vector<Placed> round;
  std::span<const Placed> rest;
  size_t count_max = kFirstRoundMax;
  OneAhead<Block> blocks([&](Block& block) {
    if (rest.empty()) {
      round = NextRound(*snapshot, std::exchange(count_max, kRoundMax));
      rest = round;
    }
    if (rest.empty()) return false;
    Gather(*snapshot, rest, block);
    return true;
  });
  Status first_error;
  for (uint64_t shown = 0;;) {
    const StatusOr<Block*> block = blocks.Next();
    if (!block.ok()) {
      if (first_error.ok()) first_error = block.status();
      break;
    }
    if (*block == nullptr || !Show(*snapshot, visit, **block, first_error)) break;
    shown += (*block)->keys.size();
    if (shown >= kFirstRoundMax && sink_->reads_ahead()) blocks.Start();
  }
  blocks.Stop();
  MutexLock lock(sequencer_);
  snapshot.reset();
  return first_error;
}

bool PayloadIndex::Show(const HashIndex::Snapshot& snapshot, const Visit& visit, Block& block,
                        Status& first_error) {
  std::span<Looked> rest = block.keys;
  std::array<Fate, kSettledTogether> fates;
  for (size_t together = kSettledTogether; !rest.empty();) {
    const std::span<Looked> some = rest.first(std::min(rest.size(), together));
    uint64_t changes = 0;
    {
      MutexLock lock(sequencer_);
      changes = changes_.load(std::memory_order_relaxed);
      for (size_t i = 0; i < some.size(); ++i) fates[i] = Settle(snapshot, some[i]);
    }
    size_t shown = 0;
    for (; shown < some.size(); ++shown) {
      // What is true of one that was not shown yet may have been changed meanwhile, by `visit` too.
      if (shown > 0 && changes_.load(std::memory_order_relaxed) != changes) break;
      const Looked& key = some[shown];
      if (fates[shown] == Fate::kGone) continue;
      StatusOr<bool> visited = true;
      if (fates[shown] == Fate::kToRead) {
        const auto alone = ReadAlone(snapshot, key.slot);
        if (!alone.has_value()) continue;
        visited = alone->ok() ? visit(**alone) : alone->status();
      } else if (Status seen = CheckShown(key.payload.state_.state_lsn); !seen.ok()) {
        visited = std::move(seen);
      } else {
        visited = visit(key.payload);
      }
      if (!visited.ok()) {
        if (first_error.ok()) first_error = visited.status();
      } else if (!*visited) {
        return false;
      }
    }
    // Beside many changes each key is settled for itself in the end.
    together = shown < some.size() ? 1 : std::min(kSettledTogether, 2 * together);
    rest = rest.subspan(shown);
  }
  return true;
}

std::vector<PayloadIndex::Placed> PayloadIndex::NextRound(HashIndex::Snapshot& snapshot,
                                                          size_t count_max) {
  std::vector<Placed> round;
  for (bool more = true; more && round.size() < count_max;) {
    const size_t stop = std::min(count_max, round.size() + kSlotsVisitedMax);
    MutexLock lock(sequencer_);
    if (round.empty()) round.reserve(std::min<uint64_t>(count_max, index_.size()));
    while (more && round.size() < stop) {
      const HashIndex::Slot slot = snapshot.Next();
      more = slot != HashIndex::kNoSlot;
      if (!more) break;
      const RecordRef ref = index_.Get(slot).ref;
      round.push_back({.place = uint64_t{ref.segment} << 32 | ref.offset, .slot = slot});
    }
  }
  const auto before = [](const Placed& a, const Placed& b) { return a.place < b.place; };
  // Deliveries that end in the order they came use their slots in turn: the order of slots is that
  // of the journal, begun somewhere in its middle.
  const auto second = std::is_sorted_until(round.begin(), round.end(), before);
  if (second == round.end()) return round;
  if (std::is_sorted(second, round.end(), before) && before(round.back(), round.front())) {
    std::rotate(round.begin(), second, round.end());
  } else {
    std::sort(round.begin(), round.end(), before);
  }
  return round;
}

void PayloadIndex::Gather(const HashIndex::Snapshot& snapshot, std::span<const Placed>& round,
                          Block& block) {
  block.keys.clear();
  block.cold.clear();
  block.places.clear();
  block.records.Clear();
  {
    MutexLock lock(sequencer_);
    uint64_t bytes = 0;
    size_t count = 0;
    for (; count < round.size() && block.keys.size() < kGatheredMax && bytes < kGatheredBytes;
         ++count) {
      if (!snapshot.Has(round[count].slot)) continue;  // erased meanwhile
      block.keys.push_back(LookAt(round[count].slot));
      bytes += block.keys.back().payload.state_.ref.length;
    }
    round = round.subspan(count);
  }
  const auto before = [](const Looked& a, const Looked& b) {
    const IndexState& left = a.payload.state_;
    const IndexState& right = b.payload.state_;
    return std::tie(left.ref.segment, left.ref.offset, left.payload_lsn) <
           std::tie(right.ref.segment, right.ref.offset, right.payload_lsn);
  };
  // They are, but for those that moved meanwhile.
  if (!std::is_sorted(block.keys.begin(), block.keys.end(), before)) {
    std::sort(block.keys.begin(), block.keys.end(), before);
  }
  for (Looked& looked : block.keys) {
    if (looked.payload.cached_) continue;
    block.places.push_back({looked.payload.state_.ref, looked.payload.state_.payload_lsn});
    block.cold.push_back(&looked);
  }
  sink_->ReadRecords(block.places, block.records);
  for (size_t i = 0; i < block.cold.size(); ++i) {
    block.cold[i]->payload.shown_ = block.records.record(i);
  }
}

PayloadIndex::Fate PayloadIndex::Settle(const HashIndex::Snapshot& snapshot, Looked& gathered) {
  if (!snapshot.Has(gathered.slot)) return Fate::kGone;
  StoredPayload& payload = gathered.payload;
  const Lsn read = payload.state_.payload_lsn;
  payload.state_ = index_.Get(gathered.slot);
  if (payload.state_.payload_lsn != read) {
    payload.cached_ = SharedBytes();
    payload.shown_ = {};
    return Fate::kToRead;
  }
  if (payload.cached_) return Fate::kHere;
  if (payload.shown_.empty()) return Fate::kToRead;
  const Status same = CheckKey(payload.shown_, index_.KeyAt(gathered.slot), payload.state_.ref);
  return same.ok() ? Fate::kHere : Fate::kToRead;
}

std::optional<StatusOr<StoredPayload>> PayloadIndex::ReadAlone(const HashIndex::Snapshot& snapshot,
                                                               HashIndex::Slot slot) {
  std::string key;
  Looked now;
  {
    MutexLock lock(sequencer_);
    if (!snapshot.Has(slot)) return std::nullopt;
    now = LookAt(slot);
    key = index_.KeyAt(slot);
  }
  StatusOr<StoredPayload> read = ReadFound(key, std::move(now), false);
  if (read.status().code() == StatusCode::kNotFound) return std::nullopt;
  return read;
}

std::optional<IndexState> PayloadIndex::StateOf(std::string_view key, Lsn payload_lsn) const {
  sequencer_.AssertHeld();
  const HashIndex::Slot slot = index_.Find(key);
  if (slot == HashIndex::kNoSlot) return std::nullopt;
  const IndexState state = index_.Get(slot);
  return state.payload_lsn == payload_lsn ? std::optional(state) : std::nullopt;
}

void PayloadIndex::SetPlace(HashIndex::Slot slot, const IndexState& state) {
  NoteChange();
  Release(slot);
  index_.Set(slot, state);
  // What was kept, not what was given: that is what will be removed again.
  const HashIndex::Share kept = index_.PayloadShare(slot);
  live_.Add(kept.segment, kept.record_bytes);
}

void PayloadIndex::Release(HashIndex::Slot slot) {
  if (!index_.PayloadLsn(slot)) return;  // it is new
  const HashIndex::Share share = index_.PayloadShare(slot);
  live_.Remove(share.segment, share.record_bytes);
}

bool PayloadIndex::WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const {
  const size_t full = out.size() + bytes_max;
  const uint64_t end = std::min<uint64_t>(index_.slots_end(), cursor + kSlotsVisitedMax);
  for (; cursor < end && out.size() < full; ++cursor) {
    const auto slot = static_cast<HashIndex::Slot>(cursor);
    if (index_.IsLive(slot)) EncodeIndexEntry(index_.KeyAt(slot), index_.Get(slot), out);
  }
  return cursor < index_.slots_end();
}

Status PayloadIndex::LoadSnapshot(ByteView entries, uint64_t expected) {
  std::array<IndexEntry, kLoadedTogether> block;
  std::array<uint64_t, kLoadedTogether> hashes;
  Decoder in(entries);
  while (in.remaining() > 0) {
    size_t count = 0;
    for (; count < block.size() && in.remaining() > 0; ++count) {
      ASSIGN_OR_RETURN(block[count], TakeIndexEntry(in));
      hashes[count] = index_.HashOf(block[count].key);
    }
    if (index_.size() == 0) {
      index_.Reserve(expected, std::min(block[0].key.size(), kUsualKeyBytesMax));
    }
    index_.Touch(std::span(hashes).first(count));
    if (index_.full()) return DataLoss("more keys than an index holds");
    for (size_t i = 0; i < count; ++i) {
      const IndexEntry& entry = block[i];
      const auto [slot, inserted] = index_.FindOrInsert(entry.key, hashes[i]);
      if (!inserted && index_.Get(slot).state_lsn >= entry.state.state_lsn) continue;
      SetPlace(slot, entry.state);
      newest_loaded_ = std::max(newest_loaded_, entry.state.state_lsn);
    }
  }
  return absl::OkStatus();
}

void PayloadIndex::Reset() {
  CHECK(cache_.entries() == 0);  // only what is appended is remembered
  for (HashIndex::Slot slot = 0; slot < index_.slots_end(); ++slot) {
    if (index_.IsLive(slot)) Release(slot);
  }
  index_.Clear();
  newest_removal_ = newest_loaded_ = Lsn();
}

void PayloadIndex::Erase(HashIndex::Slot slot) {
  NoteChange();
  Release(slot);
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
