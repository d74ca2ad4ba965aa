// What every test of this folder asks of a disk that a crash left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/power/crash_run.h"

namespace holdfast {

struct RecoveryCheckOptions {
  uint64_t seed = 1;      // of the new boot
  bool cut_again = true;  // after the open a power cut that keeps nothing: the state must stay
  bool go_on = false;     // append, close cleanly, open again
  SimStorageOptions storage;
  // Given each operation of the recovery, before it, with the disk as it then is.
  SimStorage::Observer observer;
};

struct RecoveryOutcome {
  std::string complaint;  // empty: fine
  absl::Status opened;    // what the open said
  size_t count = 0;       // calls that came back
  uint64_t operations = 0;
};

// Opens `disk` and judges what is there against the history: at least the first `required` calls,
// at most expect.begun, as one prefix; no number and no id handed out twice; the next boot's epoch
// higher.
RecoveryOutcome CheckRecovery(const CrashWitness& run, const CrashExpectation& expect,
                              size_t required, const SimDisk& disk,
                              const RecoveryCheckOptions& options);

}  // namespace holdfast
