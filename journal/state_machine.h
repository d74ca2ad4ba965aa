// StateMachine: all that the journal and recovery know of a store.
#pragma once

#include <array>

#include "journal/base/strong.h"
#include "journal/format/record_ref.h"
#include "journal/format/records.h"

namespace holdfast {

// The law of replay: state comes about in Apply and nowhere else; running and recovering call the
// same function with the same arguments. Apply cannot fail, is absolute (no record means "one
// more") and idempotent (`lsn` at or below what the entry holds is a no-op).
class StateMachine {
 public:
  virtual ~StateMachine() = default;
  // `record` borrows its bytes for the call. `ref` is where its batch lies.
  // Threads: the sequencer is held (while running), or nothing else runs yet (recovery).
  virtual void Apply(const AnyRecord& record, Lsn lsn, const RecordRef& ref) = 0;
};

// Which machine takes which record type. One machine may take several.
class StateMachines {
 public:
  void Route(RecordType type, StateMachine& machine) {
    machines_[static_cast<size_t>(type)] = &machine;
  }
  // Null if nobody takes the type.
  StateMachine* For(RecordType type) const { return machines_[static_cast<size_t>(type)]; }
  // Needs: every type of the catalogue that can arrive is routed.
  void Apply(const AnyRecord& record, Lsn lsn, const RecordRef& ref) const;

 private:
  std::array<StateMachine*, 256> machines_{};  // Borrowed.
};

}  // namespace holdfast
