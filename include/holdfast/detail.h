// Why a call failed, for programs. The status code says what to do, the message tells a person
// where to look, and the detail lets code tell two failures of one code apart.
#pragma once

#include "absl/status/status.h"

namespace holdfast {

enum class Detail : int {
  kNone = 0,
  // kFailedPrecondition
  kLocked = 1,       // another process (or another Engine of this one) has the directory
  kReadOnly = 2,     // opened read-only, or the file system became so
  kNotReady = 3,     // not yet: recovery is running
  kClosed = 4,       // the Engine was closed
  kNewerFormat = 5,  // written by a newer version; the message names it
  kForeign = 6,      // the directory holds something that is not a Holdfast store
  // kResourceExhausted
  kNotWritten = 7,  // refused before anything was written; it will never appear. Retry later.
  kDiskFull = 8,    // as kNotWritten, and the reason is the disk
  kLimit = 9,       // as kNotWritten, and the reason is a limit that the message names
  // kUnavailable
  kUnknownOutcome = 10,  // may appear after reopening the store, or not
  kPoisoned = 11,        // an earlier write or sync failed; reopen the store
  kIo = 12,              // a read failed; nothing is known to be damaged
  // kDataLoss
  kDamage = 13,  // bytes fail their check; run `holdfast verify`
  // kPermissionDenied
  kStaleOwner = 14,
  kWrongClient = 15,
  // kAborted
  kConflict = 16,
  // kFailedPrecondition, again
  kTerminal = 17,  // the task has reached a final state
};

// The detail that the library attached to `status`; kNone if there is none. Any thread.
Detail DetailOf(const absl::Status& status);

}  // namespace holdfast
