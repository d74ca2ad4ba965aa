// LocalStores: the three stores and the Meta on one journal, wired together.
#pragma once

#include <memory>

#include "holdfast/engine.h"
#include "holdfast/rng.h"
#include "journal/base/mutex.h"
#include "journal/live_bytes.h"
#include "journal/record_sink.h"
#include "journal/state_machine.h"
#include "meta/journal_meta.h"
#include "stores/answer_memory.h"
#include "stores/dead_letter_store.h"
#include "stores/delivery_state_store.h"
#include "stores/fork_guard.h"
#include "stores/offset_store.h"
#include "stores/store_writer.h"

namespace holdfast {

// Made before recovery, which replays into machines(); Attach() opens them for changes.
// Threads: any, after Attach.
class LocalStores {
 public:
  // `sequencer` is borrowed and outlives the stores.
  LocalStores(Mutex& sequencer, Rng& rng, const EngineOptions& options);

  const StateMachines& machines() const { return machines_; }
  // What of each segment they rest on. Threads: the sequencer is held.
  LiveBytes& live() { return live_; }
  // How the journal that was recovered is used from here on.
  struct AttachOptions {
    bool clean = false;  // the last writer closed it, or there was none
    bool writable = true;
    bool threads = true;
  };
  // Both borrowed; they outlive the last call of a store.
  void Attach(RecordSink& sink, const ForkGuard& fork_guard, const StoreLimits& limits,
              const AttachOptions& options);

  JournalOffsetStore& offsets() { return offsets_; }
  JournalDeliveryStateStore& deliveries() { return deliveries_; }
  JournalDeadLetterStore& dead_letters() { return dead_letters_; }
  JournalMeta& meta() { return meta_; }
  // Needs: attached
  const StoreWriter& writer() const { return *writer_; }
  Commit Transact(const std::function<void(Transaction&)>& fill);

  // Fills in what is kept now.
  void AddTo(RecoveryReport& report);
  void AddTo(EngineStats& stats);

 private:
  Mutex& sequencer_;
  LiveBytes live_;  // guarded by the sequencer
  AnswerMemory answers_;
  JournalOffsetStore offsets_;
  JournalDeliveryStateStore deliveries_;
  JournalDeadLetterStore dead_letters_;
  JournalMeta meta_;
  StateMachines machines_;
  std::unique_ptr<StoreWriter> writer_;
};

}  // namespace holdfast
