// StateMachine: all that the journal and recovery know of a store.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "journal/base/check.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/batch_draft.h"
#include "journal/format/record_ref.h"
#include "journal/format/records.h"

namespace holdfast {

// The law of replay: state comes about in Apply and nowhere else; running and recovering call the
// same function with the same arguments. Apply cannot fail, is absolute (no record means "one
// more") and idempotent (`lsn` at or below what the entry holds is a no-op).
//
// The calls below Apply are for compaction and checkpoints; a machine that keeps nothing in memory
// need not override them.
class StateMachine {
 public:
  virtual ~StateMachine() = default;
  // `record` decodes, and borrows its bytes for the call. `ref` is where its batch lies.
  // Threads: the sequencer is held (while running), or nothing else runs yet (recovery).
  virtual void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) = 0;

  // `record` will be offered to Restate soon: begins to fetch what that will look at.
  // Threads: any; the sequencer is not needed, and another thread may hold it.
  virtual void Expect(const RawRecord& record) const { (void)record; }

  // If the state still rests on `record`, which has number `lsn`: states that part of it anew, as
  // it is now, in one more record of `draft` or in its last one, and returns true. Applied under a
  // new number, that takes the place of `record` and of everything newer about the same key.
  // Threads: the sequencer is held.
  virtual bool Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const {
    (void)record, (void)lsn, (void)draft;
    return false;
  }

  // About how many entries WriteSnapshot will write. Threads: the sequencer is held.
  virtual uint64_t SnapshotEntries() const { return 0; }
  // Appends entries to `out`, about `bytes_max` bytes of them, from `cursor` on (0: the first), and
  // moves it. A call may find none, and still not be the last. False: there are no more behind
  // those. Entries that change between two calls
  // are written as they were or as they are, and those that come meanwhile may be missing: replay
  // from the LSN at which the first call was made puts both right.
  // Threads: the sequencer is held in each call, not between them.
  virtual bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const {
    (void)cursor, (void)bytes_max, (void)out;
    return false;
  }
  // Takes entries that WriteSnapshot wrote, in one or more calls that each end at an entry; at the
  // first call nothing was applied yet. `expected`: about how many there will be in all.
  // Errors: kDataLoss  they do not decode; the machine is to be Reset
  virtual Status LoadSnapshot(ByteView entries, uint64_t expected) {
    (void)expected;
    return entries.empty() ? absl::OkStatus() : DataLoss("a snapshot of a machine that has none");
  }
  // True: this machine came later than checkpoints. One without its section was written when there
  // was nothing to put into it.
  virtual bool MayLackSection() const { return false; }
  // Forgets everything. Threads: nothing else runs yet (recovery).
  virtual void Reset() {}
};

// Which machine takes which record type. One machine may take several.
class StateMachines {
 public:
  void Route(RecordType type, StateMachine& machine) {
    machines_[static_cast<size_t>(type)] = &machine;
  }
  // Null if nobody takes the type.
  StateMachine* For(RecordType type) const { return machines_[static_cast<size_t>(type)]; }
  // Each machine once, in order of the lowest number of the types that it takes, which is handed
  // over with it: that number names its entries in a checkpoint.
  template <typename Visit>  // (uint32_t section, StateMachine&)
  void ForEach(const Visit& visit) const {
    for (size_t type = 0; type < machines_.size(); ++type) {
      const auto first = std::find(machines_.begin(), machines_.end(), machines_[type]);
      if (machines_[type] != nullptr && first == machines_.begin() + static_cast<ptrdiff_t>(type)) {
        visit(static_cast<uint32_t>(type), *machines_[type]);
      }
    }
  }
  // Needs: every type of the catalogue that can arrive is routed.
  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) const {
    StateMachine* machine = For(static_cast<RecordType>(record.header.type));
    CHECK(machine != nullptr);
    machine->Apply(record, lsn, ref);
  }

 private:
  std::array<StateMachine*, 256> machines_{};  // Borrowed.
};

}  // namespace holdfast
