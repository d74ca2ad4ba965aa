// JournalMeta: the Meta of one node, kept in a journal beside whatever else is in it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "journal/base/string_map.h"
#include "journal/batch_draft.h"
#include "journal/format/codec.h"
#include "journal/format/records.h"
#include "journal/live_bytes.h"
#include "journal/record_sink.h"
#include "journal/state_machine.h"
#include "meta/mvcc_meta.h"

namespace holdfast {

// A state machine of the journal, whole in memory; every change is a record. History, and with it
// what a watch can start from, begins anew at each start; leases have their full ttl again then.
// A revision that was shown is never used for anything else: nothing is shown before the level in
// force has reached it, and after a stop that was not clean (where a power cut may have taken what
// level written had confirmed) the revisions go on far above what was found.
// Threads: any, after Attach. The sequencer is its lock.
class JournalMeta final : public MvccMeta, public StateMachine {
 public:
  // Which records it takes.
  static constexpr RecordType kTypes[] = {RecordType::kMetaPut, RecordType::kMetaDelete,
                                          RecordType::kMetaLeaseGrant, RecordType::kMetaLeaseEnd,
                                          RecordType::kMetaRevision};
  // What revisions skip after a stop that was not clean: more than a second of writing.
  static constexpr uint64_t kRevisionsSkipped = uint64_t{1} << 24;

  // `sequencer`, `live`, which it guards, and `clock` are borrowed and outlive it.
  JournalMeta(Mutex& sequencer, LiveBytes& live, Clock& clock, uint64_t id_seed,
              const MvccMetaOptions& options);
  ~JournalMeta() override;

  struct AttachOptions {
    bool clean = false;                // nothing that was confirmed can be missing
    bool writable = true;              // false: read-only
    bool threads = true;               // false: whoever waits drives the disk, and Tick() the rest
    std::function<Status()> may_call;  // asked before each call; empty: always
  };
  // Recovery is over; changes go to `sink`, which is borrowed and outlives the last call.
  void Attach(RecordSink& sink, AttachOptions options) ABSL_LOCKS_EXCLUDED(sequencer());
  // Leases end no more and watches are not called back any more.
  void Close() { Stop(); }
  // In a forked child: the thread is not there.
  void AbandonInChild() { Abandon(); }

  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override;
  bool Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const override;
  uint64_t SnapshotEntries() const override;
  bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const override;
  Status LoadSnapshot(ByteView entries, uint64_t expected) override;
  bool MayLackSection() const override { return true; }
  void Reset() override;

  // Threads: any, before Attach too.
  uint64_t key_count() ABSL_LOCKS_EXCLUDED(sequencer());

 private:
  // The record that something rests on: where it lies and what it takes there.
  struct Basis {
    Lsn lsn;  // none: on nothing
    uint32_t segment = 0;
    uint32_t bytes = 0;
  };
  struct Slot {
    MvccEntryPtr entry;  // null: free
    Basis basis;
  };
  struct LeaseRest {
    absl::Duration ttl;
    Basis basis;
  };
  // An entry of a checkpoint of which not all parts were loaded yet.
  struct Partial {
    MvccEntry entry;
    Basis basis;
    uint64_t value_bytes = 0;
  };

  Mutex& sequencer() const ABSL_LOCK_RETURNED(mu_) { return mu_; }
  static BatchDraft Draft(const std::vector<MvccChange>& changes);

  Status Reserve(const std::vector<MvccChange>& changes) override;
  uint64_t Append(const std::vector<MvccChange>& changes) override;
  void Kick() override { sink_->Kick(); }
  void WhenDurable(uint64_t position, std::function<void(Status)> callback) override;
  Status WaitDurable(uint64_t position, absl::Duration deadline) override;
  Status Ready() const override;
  bool writable() const override { return attached_.writable; }

  void TakePut(MvccEntryPtr entry, const Basis& basis) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeDelete(std::string_view key, uint64_t revision, const Basis& basis)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeGrant(uint64_t id, absl::Duration ttl, const Basis& basis)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeEnd(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeRevision(uint64_t revision, const Basis& basis) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Slot* FindSlot(std::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const Slot* FindSlot(std::string_view key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Slot& SlotFor(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Rest(Basis& on, const Basis& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(Basis& basis) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static void EncodePart(const Slot& slot, uint64_t from, std::string& out);
  static void Encode(const Basis& basis, Encoder& encode);
  static std::optional<Basis> TakeBasis(Decoder& in);
  bool LoadPart(Decoder& in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool LoadLease(Decoder& in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool LoadRevision(Decoder& in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  LiveBytes& live_;
  RecordSink* sink_ = nullptr;  // null until attached
  AttachOptions attached_;
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mu_);
  std::vector<uint32_t> free_slots_ ABSL_GUARDED_BY(mu_);
  StringMap<uint32_t> slot_of_key_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, LeaseRest> leases_ ABSL_GUARDED_BY(mu_);
  // What says the newest revision where no entry that stands does; none where one does.
  Basis revision_rest_ ABSL_GUARDED_BY(mu_);
  std::optional<Partial> partial_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
