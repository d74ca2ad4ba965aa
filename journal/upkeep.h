// Upkeep: what a journal needs now and then: the next segment ahead of need, MARK, the heartbeat,
// and segments that nobody needs taken away.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "journal/engine_clock.h"
#include "journal/group_committer.h"
#include "journal/mark.h"
#include "journal/segment.h"
#include "journal/space_limit.h"

namespace holdfast {

struct UpkeepParts {
  Storage& storage;
  Clock& clock;
  EngineClock& engine_clock;
  GroupCommitter& committer;
  std::unique_ptr<MarkWriter> mark;
  StoreIdentity identity;
  SegmentId oldest;
};

// Does its work in a thread of its own or, without threads, in Tick() and MakeSegments().
// Threads: any, for Wake; the others as they say.
class Upkeep {
 public:
  Upkeep(UpkeepParts parts, bool threads);
  // Needs: Stop() was called.
  ~Upkeep();
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  // Tells the analysis that the sequencer, which goes by several names, is held.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(committer_.mu()) {}

  // An append came: after an idle time there will be something to mark again.
  void OnAppend() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu()) {
    if (asleep_) wake_.NotifyOne();
  }
  // The segments made ahead of need are too few: has more made, or makes them now where there are
  // no threads. Releases the lock meanwhile.
  void MakeSegments() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  // See Journal::SetSpaceLimit and Recheck.
  void SetSpaceLimit(SpaceLimit* limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  void Recheck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu()) { wake_.NotifyOne(); }
  // The oldest segment that is needed: what Links and MARK say.
  SegmentId oldest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu()) { return oldest_; }
  // See Journal::RetireBelow. Calls `retired` without the lock as soon as MARK says durably that
  // nobody needs the segments below the one that it is given.
  Status RetireBelow(SegmentId keep_from, const std::function<void(SegmentId)>& retired)
      ABSL_LOCKS_EXCLUDED(committer_.mu());
  // See Journal::GiveUpReserve.
  Status GiveUpReserve() ABSL_LOCKS_EXCLUDED(committer_.mu());
  // Without threads: does what is due.
  void Tick() ABSL_LOCKS_EXCLUDED(committer_.mu());
  // Ends the thread.
  void Stop() ABSL_LOCKS_EXCLUDED(committer_.mu());
  // Says durably that nothing was written after S.
  // Needs: Stop(), everything is synced.
  Status WriteCleanMark() ABSL_LOCKS_EXCLUDED(committer_.mu());

 private:
  enum class Duty { kNone, kSegment, kMark, kHeartbeat };

  Duty NextDuty(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  bool MayMakeSegment() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  absl::Duration DueAt(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  void Perform(Duty duty) ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  void MakeSegment() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  Status WriteMark() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  void AwaitMarkFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  Status TakeAwayBelow(const std::function<void(SegmentId)>& retired)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  void Beat() ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  Mark MarkOf(const CommitPositions& positions, bool clean)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(committer_.mu());
  void Loop() ABSL_LOCKS_EXCLUDED(committer_.mu());

  GroupCommitter& committer_;  // Its mutex is never held across a call of the storage.
  UpkeepParts parts_;
  const bool threads_;
  SpaceLimit* limit_ ABSL_GUARDED_BY(committer_.mu()) = nullptr;  // none: no limit
  SegmentId oldest_ ABSL_GUARDED_BY(committer_.mu());
  CommitPositions marked_ ABSL_GUARDED_BY(committer_.mu());
  absl::Duration last_beat_ ABSL_GUARDED_BY(committer_.mu());
  bool making_ ABSL_GUARDED_BY(committer_.mu()) = false;
  bool marking_ ABSL_GUARDED_BY(committer_.mu()) = false;   // somebody has parts_.mark
  bool retiring_ ABSL_GUARDED_BY(committer_.mu()) = false;  // one at a time
  bool stopping_ ABSL_GUARDED_BY(committer_.mu()) = false;
  bool asleep_ ABSL_GUARDED_BY(committer_.mu()) = false;  // for longer than an append allows
  CondVar wake_;
  CondVar mark_free_;
  std::thread thread_;
};

}  // namespace holdfast
