// Replayer: judges the whole chain, applies what is taken, and says how it ended.
#pragma once

#include <functional>

#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "journal/journal_reader.h"
#include "journal/state_machine.h"
#include "recovery/evidence.h"
#include "recovery/store_layout.h"

namespace holdfast {

enum class ReplayScope {
  kNothing,  // judge only
  kProved,   // up to P: the rest is about to be stated again, at another place
  kAll,
};

using ProgressCallback = std::function<void(const RecoveryProgress&)>;

struct ReplayOptions {
  ReplayScope scope = ReplayScope::kAll;
  Lsn from;                   // records up to here are in a checkpoint, and not applied
  ProgressCallback progress;  // called each few MiB; may be empty
};

// How the journal ends.
struct ReplayOutcome {
  bool clean = false;
  Lsn proved;        // P
  Lsn last;          // L
  Lsn next;          // must come next, by the Links
  JournalPlace cut;  // nothing behind it was taken
  // Where the batches up to P end. No segment: none of them is in the chain.
  JournalPlace proved_end;
  Lsn proved_last;  // the newest of them; by the first Link if there is none
  SegmentId begin;  // in which the reader began
  // The window in doubt, (P, L].
  Lsn doubt_first;           // none: it is empty
  uint64_t doubt_bytes = 0;  // its batches, padded
  uint64_t doubt_records = 0;

  uint64_t records = 0;          // taken, those that a checkpoint holds not counted
  uint64_t record_bytes = 0;     // of their batches, padded
  uint64_t skipped_records = 0;  // of unknown types that may be skipped
  SegmentId skipped_in;          // the first segment with one of them
  uint64_t torn_bytes = 0;
  uint64_t ignored_groups = 0;
  uint64_t bytes = 0;
  // True after an unclean stop if something stands behind P, taken or torn: confirmed groups may
  // have been there too, and the disk could not tell them from torn ones.
  bool unproven_tail = false;
};

// Whether a checkpoint with this `from` can be replayed upon: no segment behind it is missing.
bool CanReplayFrom(const Evidence& evidence, Lsn from);

// Reads everything behind options.from once, from the segment on in which the record behind it
// stands; none: everything. What a checkpoint alone proves, and is not there, is told with its
// name.
// Needs:  CanReplayFrom(from), or none
// Errors: kDataLoss            damage; *damage (may be null) has the details
//         kFailedPrecondition  kNewerFormat: a record that must not be skipped
//         kUnavailable         a read failed
StatusOr<ReplayOutcome> Replay(Storage& storage, const StoreLayout& layout,
                               const Evidence& evidence, const StateMachines& machines,
                               const ReplayOptions& options,
                               std::optional<ChainDamage>* damage = nullptr);

// Reads the window in doubt again and hands over its batches, in order.
using BatchSink = std::function<Status(const BatchView&)>;
Status ReadDoubt(Storage& storage, const Evidence& evidence, const ReplayOutcome& outcome,
                 const BatchSink& sink);

// Decodes the records of one batch and applies each; returns how many were skipped.
// Errors: kDataLoss, kFailedPrecondition as Replay
StatusOr<uint64_t> ApplyBatch(const BatchView& batch, const RecordRef& ref,
                              const StateMachines* machines);

// The part of a report that reading alone can tell.
RecoveryReport ReportOf(const StoreLayout& layout, const ReplayOutcome& outcome);

}  // namespace holdfast
