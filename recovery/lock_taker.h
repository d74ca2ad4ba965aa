// LockTaker: takes the locks of a store within one bounded wait. A killed predecessor keeps its
// locks until the last of its writes has landed, so a lock that is free also says that nothing is
// in flight.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/io/storage.h"

namespace holdfast {

class LockTaker {
 public:
  // The wait begins now, and is one for all locks. Both are borrowed.
  LockTaker(Storage& storage, Clock& clock, absl::Duration wait_max);

  // Opens the file and locks it. Bounded also if the clock stands still.
  // Errors: kFailedPrecondition  kLocked: somebody still has it
  StatusOr<std::unique_ptr<File>> Take(const std::string& name, OpenMode mode);
  // The newest segments: a predecessor that was killed, or one that lives on behind a LOCK that
  // somebody removed, still has those locked that it writes.
  StatusOr<std::map<SegmentId, std::unique_ptr<File>>> TakeSegments();

 private:
  void Pause();

  Storage& storage_;
  Clock& clock_;
  const absl::Duration deadline_;
  int64_t pauses_left_;
};

}  // namespace holdfast
