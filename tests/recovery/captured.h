// Checkpoints of a small store, for the tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "recovery/checkpoint.h"
#include "tests/recovery/boot.h"

namespace holdfast {

// What a store holds, read from its whole journal beside the writer.
inline void ReadAll(Storage& storage, RecordingMachine& machine) {
  CHECK_OK(OpenReadOnly(storage, machine.machines(), {.ignore_checkpoints = true}).status());
}

// A capture of the store of a boot, which goes on meanwhile.
class BootCapture {
 public:
  explicit BootCapture(Boot& boot) : boot_(boot) { Look(); }

  // The machine has what was appended since.
  void Look() { ReadAll(*boot_.storage, machine_); }
  Status Begin() {
    const StoreIdentity& identity = boot_.store().start().identity;
    ASSIGN_OR_RETURN(
        capture_, CheckpointCapture::Begin({.storage = *boot_.storage,
                                            .sequencer = sequencer_,
                                            .machines = machine_.machines(),
                                            .appended = [this] { return boot_.store().last(); },
                                            .wait_synced = [this](Lsn lsn) { return Synced(lsn); }},
                                           {.store_id = identity.store_id,
                                            .salt = identity.salt,
                                            .epoch = identity.epoch,
                                            .engine_time = absl::Seconds(3)}));
    return absl::OkStatus();
  }
  StatusOr<bool> Step() { return capture_->Step(); }
  StatusOr<KeptCheckpoint> Finish() {
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, Step());
      if (!more) return capture_->result();
    }
  }
  // S will never get further.
  void Poison() { poisoned_ = true; }
  void Drop() { capture_.reset(); }
  RecordingMachine& machine() { return machine_; }

 private:
  Status Synced(Lsn lsn) const {
    if (lsn <= boot_.store().synced()) return absl::OkStatus();
    return poisoned_ ? Unavailable(Detail::kPoisoned, "poisoned")
                     : MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone, "not yet");
  }

  Boot& boot_;
  RecordingMachine machine_;
  Mutex sequencer_;
  bool poisoned_ = false;
  std::unique_ptr<CheckpointCapture> capture_;
};

inline StatusOr<KeptCheckpoint> TakeCheckpoint(Boot& boot) {
  BootCapture capture(boot);
  RETURN_IF_ERROR(capture.Begin());
  return capture.Finish();
}

inline std::vector<std::string> CheckpointNames(const SimDisk& disk) {
  return disk.List(kCheckpointFolder);
}

// Two segments and two checkpoints: 4 records, behind the first 2 more, behind the second 3 more in
// the next segment. All synced, not clean.
struct TwoCheckpoints {
  TwoCheckpoints() {
    Boot boot{SimDisk()};
    CHECK_OK(boot.status);
    boot.store().AppendSynced({1, 2});
    boot.store().AppendSynced({1});
    const auto older_taken = TakeCheckpoint(boot);
    CHECK_OK(older_taken.status());
    older = *older_taken;
    boot.store().AppendSynced({2});
    const auto newer_taken = TakeCheckpoint(boot);
    CHECK_OK(newer_taken.status());
    newer = *newer_taken;
    boot.store().Rotate(*boot.storage);
    boot.store().AppendSynced({1, 2});
    disk = boot.Killed();
  }
  SimDisk disk;
  KeptCheckpoint older, newer;  // from LSN 4, 6
};

}  // namespace holdfast
