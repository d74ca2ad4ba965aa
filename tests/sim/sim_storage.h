// SimStorage: one process's view of a SimDisk. Every call is an operation with a number, so that a
// test can look at the disk before each, stop the world at one, or make one fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "journal/io/storage.h"
#include "tests/sim/sim_disk.h"

namespace holdfast {

enum class SimCall {
  kOpenFile,
  kList,
  kMakeFolder,
  kRename,
  kRemove,
  kSyncFolder,
  kReadAt,
  kWriteAt,
  kSyncData,
  kWriteZeros,
  kTruncate,
  kSize,
  kTryLock,
  kSubmit,
  kWaitOne,
  kNewQueue,
};
const char* SimCallName(SimCall call);
// Whether the call can change what a crash leaves.
bool Changes(SimCall call);

struct SimOperation {
  uint64_t number = 0;  // from 1
  SimCall call = SimCall::kList;
  std::string name;  // of the file or folder
};

// What operation number `at`, or the first one from there on that `only` names, does instead.
struct SimFault {
  enum class Effect {
    kNothing,    // fails, and nothing happened
    kTorn,       // fails after some of its sectors were written
    kUnsynced,   // a sync, flush or durable write fails and will never cover what it should have
                 // (F16)
    kQueueLost,  // WaitOne itself fails: what is in flight will never be known
    kMisdirect,  // a write succeeds, 4 KiB beyond its place
  };
  uint64_t at = 0;
  bool for_ever = false;  // all that follow too (of the kind in `only`)
  Effect effect = Effect::kNothing;
  std::optional<SimCall> only;
  Status status = Unavailable(Detail::kIo, "simulated: EIO");
};

struct SimStorageOptions {
  uint64_t seed = 1;  // order of completions, torn sectors
  size_t depth_max = 32;
  uint64_t alignment = 4096;
  bool lying_syncs = false;  // every sync says OK and does nothing (F08)
  bool wait_really = false;  // WaitOne blocks, for engines with threads
  // Late batches of a killed predecessor land when a TryLock met their pin this often, or when this
  // many operations have passed.
  uint64_t late_after_tries = 2;
  uint64_t late_after_operations = 1'000'000;
};

// Threads: any.
class SimStorage final : public Storage {
 public:
  explicit SimStorage(SimDisk disk = SimDisk(), const SimStorageOptions& options = {});
  ~SimStorage() override;

  // --- The test's side
  // ----------------------------------------------------------------------------- The state now, as
  // a copy.
  SimDisk disk() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t operations() const ABSL_LOCKS_EXCLUDED(mu_);
  // How many operations changed the cache view or the disk view.
  uint64_t changes() const ABSL_LOCKS_EXCLUDED(mu_);
  // Operation `number` and all later ones fail, and nothing changes any more. 0: never.
  void PowerOffAt(uint64_t number) ABSL_LOCKS_EXCLUDED(mu_);
  // From now on.
  void PowerOff() ABSL_LOCKS_EXCLUDED(mu_) { PowerOffAt(1); }
  bool power_is_off() const ABSL_LOCKS_EXCLUDED(mu_);
  void SetFault(std::optional<SimFault> fault) ABSL_LOCKS_EXCLUDED(mu_);
  bool fault_was_met() const ABSL_LOCKS_EXCLUDED(mu_);
  // Bytes decay, or somebody writes over them, while the file is open.
  void Damage(const std::string& name, uint64_t offset, ByteView bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Called before each operation, with the disk as it then is. Must not call back.
  using Observer = std::function<void(const SimOperation&, const SimDisk&)>;
  void SetObserver(Observer observer) ABSL_LOCKS_EXCLUDED(mu_);

  // --- Storage
  // -------------------------------------------------------------------------------------
  using Storage::OpenFile;
  StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name, OpenMode mode,
                                           FileUse use) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeFolder(const std::string& folder) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& name) override;
  Status SyncFolder(const std::string& folder) override;
  StatusOr<uint64_t> FreeBytes() override;
  StatusOr<std::unique_ptr<WriteQueue>> NewWriteQueue() override;
  std::string host_boot_id() override;
  std::string backend() const override { return "simulated"; }
  std::string backend_reason() const override { return ""; }
  std::string display_path() const override { return "(simulated)"; }

 private:
  class SimFile;
  class SimQueue;

  // What became of the fault for the operation that begins now.
  struct Verdict {
    Status status;  // not OK: fail with it
    SimFault::Effect effect = SimFault::Effect::kNothing;
    bool faulty = false;
  };
  bool power_is_off_locked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return power_off_at_ != 0 && operations_ >= power_off_at_;
  }
  Verdict Begin(SimCall call, const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Write(const Verdict& verdict, uint64_t inode, uint64_t offset, ByteView bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Full(const std::string& name) const;

  const SimStorageOptions options_;
  mutable Mutex mu_;
  CondVar changed_;
  SimDisk disk_ ABSL_GUARDED_BY(mu_);
  SeededRng rng_ ABSL_GUARDED_BY(mu_);
  uint64_t operations_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t changes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t power_off_at_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t lock_tries_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<SimFault> fault_ ABSL_GUARDED_BY(mu_);
  bool fault_met_ ABSL_GUARDED_BY(mu_) = false;
  Observer observer_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
