// PayloadIndex: small states in memory, payloads in the journal, the hot ones cached.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/hash_index.h"
#include "index/value_cache.h"
#include "journal/base/mutex.h"
#include "journal/live_bytes.h"
#include "journal/record_sink.h"

namespace holdfast {

// One key with its payload, as both stood at one moment.
class StoredPayload {
 public:
  const IndexState& state() const { return state_; }
  // The record that holds the payload, header and fields.
  ByteView record() const { return cached_ ? cached_.view() : AsBytes(read_); }

 private:
  friend class PayloadIndex;
  IndexState state_;
  SharedBytes cached_;
  std::string read_;
};

// Payload records are those whose first field is the key. The owner applies records to index()
// under the sequencer; the reading calls below take it themselves.
// Threads: as marked.
class PayloadIndex {
 public:
  // `sequencer` and `live`, which it guards, are borrowed and outlive it.
  PayloadIndex(Mutex& sequencer, LiveBytes& live, uint64_t seed, const ValueCache::Options& cache)
      : sequencer_(sequencer), live_(live), index_(seed), cache_(cache) {}
  Mutex& sequencer() const ABSL_LOCK_RETURNED(sequencer_) { return sequencer_; }
  // Where cold payloads are read. Borrowed.
  void Attach(RecordSink& sink) { sink_ = &sink; }

  HashIndex& index() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) { return index_; }
  const HashIndex& index() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) { return index_; }
  const ValueCache& cache() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) { return cache_; }
  // What is known of `key`, if its payload is the record `payload_lsn`.
  std::optional<IndexState> StateOf(std::string_view key, Lsn payload_lsn) const;
  // Keeps the payload of a record that was just appended, unless it is outdated already.
  void Remember(HashIndex::Slot slot, Lsn lsn, ByteView record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  // The payload of the key lies at `state` from now on: counted there as live, and no longer where
  // it lay before. A state that keeps its payload's place goes to index() alone.
  void SetPlace(HashIndex::Slot slot, const IndexState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  void Erase(HashIndex::Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  // The newest removal bounds what "there is no such key" rests on.
  void NoteRemoval(Lsn lsn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    newest_removal_ = std::max(newest_removal_, lsn);
  }
  Lsn newest_removal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) { return newest_removal_; }

  // As StateMachine's functions of these names; entries in order of slot.
  bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  // A key may come twice: erased and put again while the snapshot was written. The newer state
  // holds.
  // Errors: kDataLoss  the entries do not decode, or are more than an index holds
  Status LoadSnapshot(ByteView entries, uint64_t expected)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  // The newest record that any key rests on.
  Lsn newest_loaded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) { return newest_loaded_; }
  void Reset() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);

  // Errors: kNotFound     there is no such key
  //         kUnavailable  kIo; kPoisoned: the journal failed before the newest change was confirmed
  //         kDataLoss     the bytes are damaged
  StatusOr<StoredPayload> Read(std::string_view key) ABSL_LOCKS_EXCLUDED(sequencer_);

  // Whether the key is there, without its payload.
  // Errors: kUnavailable  kPoisoned, as above
  struct Presence {
    bool present = false;
    bool durable = false;  // the answer is confirmed
  };
  StatusOr<Presence> Probe(std::string_view key) ABSL_LOCKS_EXCLUDED(sequencer_);

  // Visits the keys that are there now and are not erased until their turn comes, until `visit`
  // answers false. Those that cannot be read are left out; the first error is the answer. An error
  // that `visit` hands back counts as unreadable too.
  using Visit = std::function<StatusOr<bool>(const StoredPayload&)>;
  Status ForEach(const Visit& visit) ABSL_LOCKS_EXCLUDED(sequencer_);

 private:
  struct Looked {
    HashIndex::Slot slot = HashIndex::kNoSlot;
    StoredPayload payload;
  };
  // The payload of what was looked at, from wherever it is; `remember` keeps it.
  StatusOr<StoredPayload> ReadFound(std::string_view key, Looked looked, bool remember)
      ABSL_LOCKS_EXCLUDED(sequencer_);
  // A key of a visit, by where its payload stood when the round was made.
  struct Placed {
    uint64_t place = 0;
    HashIndex::Slot slot = HashIndex::kNoSlot;
  };
  // The next keys of `snapshot`, at most `count_max`, in order of place.
  std::vector<Placed> NextRound(HashIndex::Snapshot& snapshot, size_t count_max)
      ABSL_LOCKS_EXCLUDED(sequencer_);
  // Takes some from the front of `round`: payloads read as far as they could be, in order of place.
  std::vector<Looked> Gather(const HashIndex::Snapshot& snapshot, std::span<const Placed>& round)
      ABSL_LOCKS_EXCLUDED(sequencer_);
  // What `gathered` has become meanwhile; none if its key was erased.
  std::optional<StatusOr<StoredPayload>> Settle(Looked gathered,
                                                const HashIndex::Snapshot& snapshot)
      ABSL_LOCKS_EXCLUDED(sequencer_);
  Looked Look(std::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Looked LookAt(HashIndex::Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Status CheckShown(Lsn lsn) const;
  void Release(const IndexState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);

  Mutex& sequencer_;
  LiveBytes& live_ ABSL_GUARDED_BY(sequencer_);  // of the journal; shared with the other stores
  RecordSink* sink_ = nullptr;
  HashIndex index_ ABSL_GUARDED_BY(sequencer_);
  ValueCache cache_ ABSL_GUARDED_BY(sequencer_);
  Lsn newest_removal_ ABSL_GUARDED_BY(sequencer_);
  Lsn newest_loaded_ ABSL_GUARDED_BY(sequencer_);
};

}  // namespace holdfast
