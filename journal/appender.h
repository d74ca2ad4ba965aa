// Appender: makes room for a batch, numbers its records and applies them.
#pragma once

#include "journal/group_committer.h"
#include "journal/record_sink.h"
#include "journal/segment.h"
#include "journal/state_machine.h"
#include "journal/upkeep.h"

namespace holdfast {

struct AppenderOptions {
  uint64_t batch_bytes_max = 0;
  uint64_t unsynced_bytes_max = 0;
};

struct AppenderParts {
  Clock& clock;
  GroupCommitter& committer;
  Upkeep& upkeep;
  const StateMachines& machines;
  StoreIdentity identity;
  Lsn next;  // the first to give out
};

// Threads: the sequencer is held in every call; Reserve may release it meanwhile.
class Appender {
 public:
  Appender(const AppenderOptions& options, AppenderParts parts)
      : options_(options), committer_(parts.committer), parts_(std::move(parts)) {}

  // Tells the analysis that the sequencer, which goes by several names, is held.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(committer_.mu()) {}

  // See RecordSink.
  Status Reserve(uint64_t batch_bytes, Claim claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  bool HasRoom(uint64_t batch_bytes, Claim claim) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  Lsn Append(const BatchDraft& draft) ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  // How often a batch waited for the next segment, and for how long in all.
  uint64_t segment_waits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu()) {
    return segment_waits_;
  }
  absl::Duration segment_wait_time() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu()) {
    return segment_wait_time_;
  }

 private:
  bool UnsyncedFits(uint64_t batch_bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  Status MakeRoom(uint64_t batch_bytes, Claim claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  Status AwaitSegments(Claim claim, bool rotating) ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  bool MayUse(Claim claim, bool rotating) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  void Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());

  const AppenderOptions options_;
  GroupCommitter& committer_;  // Borrowed, as all in parts_.
  AppenderParts parts_;        // `next` moves on with each append
  uint64_t segment_waits_ ABSL_GUARDED_BY(committer_.mu()) = 0;
  absl::Duration segment_wait_time_ ABSL_GUARDED_BY(committer_.mu());
};

}  // namespace holdfast
