// Checkpoint files as a reader finds them: which are whole, by header and footer, and loading one.
#pragma once

#include <string>
#include <vector>

#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/checkpoint_header.h"
#include "journal/io/storage.h"
#include "journal/state_machine.h"

namespace holdfast {

struct CheckpointFile {
  Lsn from;  // by its name
  uint64_t bytes = 0;
  // OK: header and footer pass, so the file was completed, and S had reached `footer.through`. Its
  // blocks are judged by LoadCheckpoint.
  // kDataLoss            they do not; or the file is of another store
  // kFailedPrecondition  kNewerFormat
  // kUnavailable         they could not be read
  Status status;
  CheckpointHeader header;  // both only if OK
  CheckpointFooter footer;
  std::string name() const { return CheckpointFileName(from); }
};

// The named files, in order; those that are gone by now are left out.
std::vector<CheckpointFile> ReadCheckpointFiles(Storage& storage, const std::vector<Lsn>& names,
                                                const StoreId& store_id, uint64_t salt);

// Reads the whole of `file`, verifies every check, and hands the entries of each section to its
// machine; all of the machines hold nothing yet. Null: verifies only.
// Needs:  file.status.ok()
// Errors: kDataLoss            a check fails, or the entries do not decode
//         kFailedPrecondition  kNewerFormat: it has a section that no machine takes
//                              kNone: a machine has no section in it, an earlier version wrote it
//         kUnavailable, kNotFound  it could not be read, for want of memory too, or is gone
//         In every case the machines are to be Reset.
Status LoadCheckpoint(Storage& storage, const CheckpointFile& file, uint64_t salt,
                      const StateMachines* machines);

}  // namespace holdfast
