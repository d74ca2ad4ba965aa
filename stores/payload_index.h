// PayloadIndex: small states in memory, payloads in the journal, the hot ones cached.
#pragma once

#include <atomic>
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
#include "journal/record_block.h"
#include "journal/record_sink.h"

namespace holdfast {

// One key with its payload, as both stood at one moment.
class StoredPayload {
 public:
  const IndexState& state() const { return state_; }
  // The record that holds the payload, header and fields. One that a visit shows is valid until the
  // visitor returns.
  ByteView record() const {
    if (cached_) return cached_.view();
    return shown_.empty() ? AsBytes(read_) : shown_;
  }

 private:
  friend class PayloadIndex;
  IndexState state_;
  SharedBytes cached_;
  std::string read_;
  ByteView shown_;
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

  // For whoever is going to change it: a visit looks again at what it has not shown yet.
  HashIndex& index() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    NoteChange();
    return index_;
  }
  const HashIndex& index() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) { return index_; }
  // As HashIndex's functions of these names. Threads: any, without the sequencer.
  bool beyond_cache() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return index_.beyond_cache(); }
  void Prefetch(std::string_view key) const ABSL_NO_THREAD_SAFETY_ANALYSIS { index_.Prefetch(key); }
  const ValueCache& cache() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) { return cache_; }
  // What is known of `key`, if its payload is the record `payload_lsn`.
  std::optional<IndexState> StateOf(std::string_view key, Lsn payload_lsn) const;
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

  // The state of the key, without its payload.
  // Errors: kNotFound, kUnavailable kPoisoned as above
  StatusOr<IndexState> ReadState(std::string_view key) ABSL_LOCKS_EXCLUDED(sequencer_);

  // Whether the key is there, without its payload.
  // Errors: kUnavailable  kPoisoned, as above
  struct Presence {
    bool present = false;
    bool durable = false;  // the answer is confirmed
  };
  StatusOr<Presence> Probe(std::string_view key) ABSL_LOCKS_EXCLUDED(sequencer_);

  // Visits the keys that are there now and are not erased until their turn comes, until `visit`
  // answers false. Those that cannot be read are left out; the first error is the answer. An error
  // that `visit` hands back counts as unreadable too. Where reads pay ahead, those of many keys are
  // made in a thread of their own while `visit` runs, here, with what was read before.
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
  // Some keys of a visit with their payloads, as far as those could be read; in order of place.
  struct Block {
    std::vector<Looked> keys;
    RecordBlock records;
    std::vector<Looked*> cold;              // those in `records`, in this order
    std::vector<RecordSink::Place> places;  // of them
  };
  // Takes keys from the front of `round` into `block`.
  void Gather(const HashIndex::Snapshot& snapshot, std::span<const Placed>& round, Block& block)
      ABSL_LOCKS_EXCLUDED(sequencer_);
  // Shows the keys of `block` that are still there. False: `visit` wants no more.
  bool Show(const HashIndex::Snapshot& snapshot, const Visit& visit, Block& block,
            Status& first_error) ABSL_LOCKS_EXCLUDED(sequencer_);
  // What a key has become since it was gathered.
  enum class Fate {
    kHere,
    kGone,
    kToRead,  // moved, or it could not be read
  };
  Fate Settle(const HashIndex::Snapshot& snapshot, Looked& gathered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  // A key that is to be read by itself, with the error if there is one; none if it was erased.
  std::optional<StatusOr<StoredPayload>> ReadAlone(const HashIndex::Snapshot& snapshot,
                                                   HashIndex::Slot slot)
      ABSL_LOCKS_EXCLUDED(sequencer_);
  Looked Look(std::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Looked LookAt(HashIndex::Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Status CheckShown(Lsn lsn) const;
  // The payload of `slot` is no longer live where it lies.
  void Release(HashIndex::Slot slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  void NoteChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  Mutex& sequencer_;
  LiveBytes& live_ ABSL_GUARDED_BY(sequencer_);  // of the journal; shared with the other stores
  RecordSink* sink_ = nullptr;
  HashIndex index_ ABSL_GUARDED_BY(sequencer_);
  std::atomic<uint64_t> changes_ = 0;  // written under sequencer_
  ValueCache cache_ ABSL_GUARDED_BY(sequencer_);
  Lsn newest_removal_ ABSL_GUARDED_BY(sequencer_);
  Lsn newest_loaded_ ABSL_GUARDED_BY(sequencer_);
};

}  // namespace holdfast
