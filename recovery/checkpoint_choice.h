// CheckpointChoice: the newest checkpoint that can be used is loaded; a bad one falls back to the
// one before, and then to none: the whole journal is replayed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "holdfast/log_sink.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/io/storage.h"
#include "journal/state_machine.h"
#include "recovery/checkpoint_file.h"
#include "recovery/evidence.h"
#include "recovery/store_layout.h"

namespace holdfast {

struct CheckpointChoice {
  const CheckpointFile* used = nullptr;  // of the layout; null: none, replay begins at the oldest
  uint64_t entries = 0;                  // that the machines hold now
  // That will never be of use; of the layout, newest first. Bad: damaged, of another store or
  // version. Outdated: the records behind them are gone, or an
  // earlier version wrote them, which did not keep all of the state.
  std::vector<const CheckpointFile*> bad, outdated;

  Lsn from() const { return used == nullptr ? Lsn() : used->from; }
};

struct CheckpointUse {
  bool ignore = false;     // none is loaded: a full scan
  LogSink* log = nullptr;  // hears of each bad one; may be null
};

// Resets the machines and loads one.
// Errors: kUnavailable  a file could not be read: nothing is known of it
StatusOr<CheckpointChoice> LoadNewestCheckpoint(Storage& storage, const StoreLayout& layout,
                                                const Evidence& evidence,
                                                const StateMachines& machines,
                                                const CheckpointUse& use);

}  // namespace holdfast
