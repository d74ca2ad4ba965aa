#include "tests/sim/sim_storage.h"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast {

const char* SimCallName(SimCall call) {
  switch (call) {
    case SimCall::kOpenFile:
      return "OpenFile";
    case SimCall::kList:
      return "List";
    case SimCall::kMakeFolder:
      return "MakeFolder";
    case SimCall::kRename:
      return "Rename";
    case SimCall::kRemove:
      return "Remove";
    case SimCall::kSyncFolder:
      return "SyncFolder";
    case SimCall::kReadAt:
      return "ReadAt";
    case SimCall::kWriteAt:
      return "WriteAt";
    case SimCall::kSyncData:
      return "SyncData";
    case SimCall::kWriteZeros:
      return "WriteZeros";
    case SimCall::kTruncate:
      return "Truncate";
    case SimCall::kSize:
      return "Size";
    case SimCall::kTryLock:
      return "TryLock";
    case SimCall::kSubmit:
      return "Submit";
    case SimCall::kWaitOne:
      return "WaitOne";
    case SimCall::kNewQueue:
      return "NewWriteQueue";
  }
  return "?";
}

bool Changes(SimCall call) {
  switch (call) {
    case SimCall::kList:
    case SimCall::kReadAt:
    case SimCall::kSize:
    case SimCall::kTryLock:
    case SimCall::kNewQueue:
      return false;
    default:
      return true;
  }
}

// --- One file
// --------------------------------------------------------------------------------------

class SimStorage::SimFile final : public File {
 public:
  SimFile(SimStorage& storage, std::string name, uint64_t inode, uint64_t handle, bool writable)
      : storage_(storage),
        name_(std::move(name)),
        inode_(inode),
        handle_(handle),
        writable_(writable) {}
  ~SimFile() override {
    MutexLock lock(storage_.mu_);
    for (const SimDisk::Flight& flight : storage_.disk_.flights()) {
      for (const SimDisk::FlightWrite& write : flight.writes) {
        // A file must outlive its batches, unless the power went off under them.
        CHECK(write.handle != handle_ || storage_.power_off_at_ != 0);
      }
    }
    storage_.disk_.Unlock(handle_);
  }

  StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) override {
    MutexLock lock(storage_.mu_);
    RETURN_IF_ERROR(storage_.Begin(SimCall::kReadAt, name_).status);
    const SimContent& cache = storage_.disk_.Cache(inode_);
    if (offset >= cache.size()) return size_t{0};
    const size_t count = std::min<uint64_t>(buffer.size(), cache.size() - offset);
    cache.Read(offset, buffer.first(count));
    return count;
  }

  Status WriteAt(uint64_t offset, ByteView bytes) override {
    MutexLock lock(storage_.mu_);
    const Verdict verdict = storage_.Begin(SimCall::kWriteAt, name_);
    RETURN_IF_ERROR(Writable());
    return storage_.Write(verdict, inode_, offset, bytes);
  }

  Status SyncData() override {
    MutexLock lock(storage_.mu_);
    const Verdict verdict = storage_.Begin(SimCall::kSyncData, name_);
    if (verdict.faulty && verdict.effect == SimFault::Effect::kUnsynced) {
      storage_.disk_.LoseUnsynced(inode_);
    }
    RETURN_IF_ERROR(verdict.status);
    if (!storage_.options_.lying_syncs) storage_.disk_.Sync(inode_);
    return absl::OkStatus();
  }

  Status WriteZeros(uint64_t bytes) override {
    MutexLock lock(storage_.mu_);
    const Verdict verdict = storage_.Begin(SimCall::kWriteZeros, name_);
    RETURN_IF_ERROR(Writable());
    if (verdict.faulty && verdict.effect == SimFault::Effect::kTorn) {
      Grow(storage_.disk_.Cache(inode_).size() + (bytes / 2));
    }
    RETURN_IF_ERROR(verdict.status);
    if (!Grow(bytes)) {
      Grow(storage_.disk_.Cache(inode_).size() + storage_.disk_.free_bytes());
      return storage_.Full(name_);
    }
    return Blank(bytes);
  }

  Status Truncate(uint64_t bytes) override {
    MutexLock lock(storage_.mu_);
    RETURN_IF_ERROR(storage_.Begin(SimCall::kTruncate, name_).status);
    RETURN_IF_ERROR(Writable());
    return storage_.disk_.Resize(inode_, bytes) ? absl::OkStatus() : storage_.Full(name_);
  }

  StatusOr<uint64_t> Size() override {
    MutexLock lock(storage_.mu_);
    RETURN_IF_ERROR(storage_.Begin(SimCall::kSize, name_).status);
    return storage_.disk_.Cache(inode_).size();
  }

  Status TryLock() override {
    MutexLock lock(storage_.mu_);
    RETURN_IF_ERROR(storage_.Begin(SimCall::kTryLock, name_).status);
    if (storage_.disk_.TryLock(inode_, handle_)) return absl::OkStatus();
    if (++storage_.lock_tries_ >= storage_.options_.late_after_tries) {
      storage_.disk_.LandLate(inode_);
    }
    return WrongState(Detail::kLocked, "{}: locked", name_);
  }

  uint64_t alignment() const override { return storage_.options_.alignment; }

  uint64_t inode() const { return inode_; }
  uint64_t handle() const { return handle_; }
  const std::string& name() const { return name_; }
  Status Writable() const {
    if (writable_) return absl::OkStatus();
    return WrongState(Detail::kReadOnly, "{}: opened for reading", name_);
  }

 private:
  // Zeros where something else stands below `bytes`.
  Status Blank(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(storage_.mu_) {
    constexpr std::array<std::byte, SimContent::kPageBytes> kZeros{};
    for (uint64_t at = 0; at < bytes; at += kZeros.size()) {
      const ByteView zeros = ByteView(kZeros).first(std::min<uint64_t>(kZeros.size(), bytes - at));
      if (storage_.disk_.Cache(inode_).Equals(at, zeros)) continue;
      if (!storage_.disk_.Write(inode_, at, zeros)) return storage_.Full(name_);
    }
    return absl::OkStatus();
  }
  bool Grow(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(storage_.mu_) {
    return bytes <= storage_.disk_.Cache(inode_).size() || storage_.disk_.Resize(inode_, bytes);
  }

  SimStorage& storage_;  // Borrowed; outlives this object.
  const std::string name_;
  const uint64_t inode_;
  const uint64_t handle_;
  const bool writable_;
};

// --- The queue
// -------------------------------------------------------------------------------------

class SimStorage::SimQueue final : public WriteQueue {
 public:
  explicit SimQueue(SimStorage& storage) : storage_(storage) {}
  ~SimQueue() override {
    MutexLock lock(storage_.mu_);
    ++storage_.operations_;
    if (storage_.power_is_off_locked()) return;
    for (const Out& out : out_) Finish(out);
  }

  Status Submit(const WriteBatch& batch) override {
    MutexLock lock(storage_.mu_);
    CHECK(!batch.writes.empty());
    const auto* first = static_cast<const SimFile*>(batch.writes.front().file);
    const Verdict verdict = storage_.Begin(SimCall::kSubmit, first->name());
    RETURN_IF_ERROR(verdict.status);
    if (out_.size() >= storage_.options_.depth_max) {
      return Exhausted(Detail::kLimit, "{} batches are out", out_.size());
    }
    const uint64_t shift =
        verdict.effect == SimFault::Effect::kMisdirect && verdict.faulty ? 4096 : 0;
    Out out{.id = batch.id, .flight = 0, .writes = {batch.writes.begin(), batch.writes.end()}};
    SimDisk::Flight flight{.kind = batch.kind};
    for (const WriteOp& op : batch.writes) {
      const auto* file = static_cast<const SimFile*>(op.file);
      RETURN_IF_ERROR(file->Writable());
      CheckAligned(op);
      CHECK(op.bytes.empty() == (batch.kind == WriteKind::kFlush));
      flight.writes.push_back(
          {file->inode(), file->handle(), op.offset + shift,
           std::make_shared<const std::vector<std::byte>>(op.bytes.begin(), op.bytes.end())});
    }
    out.copies = flight.writes;
    out.flight = storage_.disk_.Launch(std::move(flight));
    out.kind = batch.kind;
    if (out.flight == 0) return storage_.Full(first->name());
    out_.push_back(std::move(out));
    storage_.changed_.NotifyAll();
    return absl::OkStatus();
  }

  StatusOr<Completion> WaitOne(absl::Duration timeout) override {
    MutexLock lock(storage_.mu_);
    if (out_.empty() && storage_.options_.wait_really) {
      storage_.changed_.WaitFor(storage_.mu_, std::min(timeout, absl::Milliseconds(100)));
    }
    if (out_.empty()) {
      return MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone, "nothing is in flight");
    }
    const Verdict verdict = storage_.Begin(SimCall::kWaitOne, "");
    if (verdict.effect == SimFault::Effect::kQueueLost || storage_.power_is_off_locked()) {
      RETURN_IF_ERROR(verdict.status);
    }
    const size_t pick = storage_.rng_.Below(out_.size());
    const Out out = std::move(out_[pick]);
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(pick));
    if (!verdict.faulty) {
      Finish(out);
    } else if (verdict.effect == SimFault::Effect::kUnsynced) {
      storage_.disk_.LandUnsynced(out.flight);
      for (const SimDisk::FlightWrite& write : out.copies) {
        storage_.disk_.LoseUnsynced(write.inode);
      }
    } else {
      storage_.disk_.LandTorn(out.flight, storage_.rng_.Next());
    }
    return Completion{out.id, verdict.status};
  }

  size_t depth_max() const override { return storage_.options_.depth_max; }

 private:
  struct Out {
    uint64_t id = 0;
    uint64_t flight = 0;
    WriteKind kind = WriteKind::kPlain;
    std::vector<WriteOp> writes;
    std::vector<SimDisk::FlightWrite> copies;
  };

  void CheckAligned(const WriteOp& op) const {
    const uint64_t alignment = storage_.options_.alignment;
    CHECK(IsAligned(op.offset, alignment));
    CHECK(IsAligned(op.bytes.size(), alignment));
    CHECK(IsAligned(reinterpret_cast<uintptr_t>(op.bytes.data()), alignment));
  }

  void Finish(const Out& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(storage_.mu_) {
    for (size_t i = 0; i < out.writes.size(); ++i) {
      // The bytes are borrowed until the batch completes: nobody may have changed them.
      const ByteView bytes = out.writes[i].bytes;
      CHECK(std::equal(bytes.begin(), bytes.end(), out.copies[i].bytes->begin()));
    }
    if (storage_.options_.lying_syncs) {
      storage_.disk_.LandUnsynced(out.flight);
    } else {
      storage_.disk_.Land(out.flight);
    }
  }

  SimStorage& storage_;   // Borrowed; outlives this object.
  std::vector<Out> out_;  // Guarded by storage_.mu_.
};

// --- The directory
// ---------------------------------------------------------------------------------

SimStorage::SimStorage(SimDisk disk, const SimStorageOptions& options)
    : options_(options), disk_(std::move(disk)), rng_(options.seed) {}

SimStorage::~SimStorage() = default;

SimDisk SimStorage::disk() const {
  MutexLock lock(mu_);
  return disk_;
}

uint64_t SimStorage::operations() const {
  MutexLock lock(mu_);
  return operations_;
}

uint64_t SimStorage::changes() const {
  MutexLock lock(mu_);
  return changes_;
}

void SimStorage::PowerOffAt(uint64_t number) {
  MutexLock lock(mu_);
  power_off_at_ = number;
}

bool SimStorage::power_is_off() const {
  MutexLock lock(mu_);
  return power_is_off_locked();
}

void SimStorage::SetFault(std::optional<SimFault> fault) {
  MutexLock lock(mu_);
  fault_ = std::move(fault);
  fault_met_ = false;
}

bool SimStorage::fault_was_met() const {
  MutexLock lock(mu_);
  return fault_met_;
}

void SimStorage::Damage(const std::string& name, uint64_t offset, ByteView bytes) {
  MutexLock lock(mu_);
  disk_.Damage(name, offset, bytes);
}

void SimStorage::SetObserver(Observer observer) {
  MutexLock lock(mu_);
  observer_ = std::move(observer);
}

SimStorage::Verdict SimStorage::Begin(SimCall call, const std::string& name) {
  ++operations_;
  if (power_is_off_locked()) return {Unavailable(Detail::kIo, "{}: the power is off", name)};
  if (observer_) observer_({operations_, call, name}, disk_);
  if (operations_ >= options_.late_after_operations) disk_.LandLate(0);
  if (!fault_ || operations_ < fault_->at || (fault_->only && *fault_->only != call) ||
      (fault_met_ && !fault_->for_ever)) {
    changes_ += Changes(call);
    return {};
  }
  fault_met_ = true;
  Verdict verdict{fault_->status, fault_->effect, true};
  if (verdict.effect == SimFault::Effect::kMisdirect) verdict.status = absl::OkStatus();
  changes_ += Changes(call) && verdict.effect != SimFault::Effect::kNothing;
  return verdict;
}

Status SimStorage::Full(const std::string& name) const {
  return Exhausted(Detail::kDiskFull, "{}: no space left on the simulated disk", name);
}

Status SimStorage::Write(const Verdict& verdict, uint64_t inode, uint64_t offset, ByteView bytes) {
  if (verdict.faulty && verdict.effect == SimFault::Effect::kTorn) {
    const uint64_t sector_bytes = disk_.options().sector_bytes;
    for (uint64_t at = 0; at < bytes.size(); at += sector_bytes) {
      const uint64_t count = std::min<uint64_t>(sector_bytes, bytes.size() - at);
      if (rng_.OneIn(2))
        (void)disk_.Write(inode, offset + at, bytes.subspan(at, count));  // Fails anyway.
    }
  }
  RETURN_IF_ERROR(verdict.status);
  const uint64_t shift =
      verdict.faulty ? 4096 : 0;  // Only a misdirected write gets here as faulty.
  return disk_.Write(inode, offset + shift, bytes) ? absl::OkStatus() : Full("write");
}

StatusOr<std::unique_ptr<File>> SimStorage::OpenFile(const std::string& name, OpenMode mode,
                                                     FileUse) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin(SimCall::kOpenFile, name).status);
  uint64_t inode = disk_.Find(name);
  if (inode == 0) {
    if (mode != OpenMode::kCreate) return NotFound("{}: no such file", name);
    const size_t slash = name.rfind('/');
    if (!disk_.HasFolder(slash == std::string::npos ? "" : name.substr(0, slash))) {
      return NotFound("{}: no such folder", name);
    }
    inode = disk_.Create(name);
  }
  return std::make_unique<SimFile>(*this, name, inode, disk_.NewHandle(),
                                   mode != OpenMode::kReadOnly);
}

StatusOr<std::vector<std::string>> SimStorage::List(const std::string& folder) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin(SimCall::kList, folder).status);
  if (!disk_.HasFolder(folder)) return NotFound("{}: no such folder", folder);
  return disk_.List(folder);
}

Status SimStorage::MakeFolder(const std::string& folder) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin(SimCall::kMakeFolder, folder).status);
  disk_.MakeFolder(folder);
  return absl::OkStatus();
}

Status SimStorage::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin(SimCall::kRename, from + " to " + to).status);
  if (disk_.Find(from) == 0) return NotFound("{}: no such file", from);
  disk_.Rename(from, to);
  return absl::OkStatus();
}

Status SimStorage::Remove(const std::string& name) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin(SimCall::kRemove, name).status);
  if (disk_.Find(name) == 0) return NotFound("{}: no such file", name);
  disk_.Remove(name);
  return absl::OkStatus();
}

Status SimStorage::SyncFolder(const std::string& folder) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin(SimCall::kSyncFolder, folder).status);
  if (!disk_.HasFolder(folder)) return NotFound("{}: no such folder", folder);
  if (!options_.lying_syncs) disk_.SyncFolder(folder);
  return absl::OkStatus();
}

StatusOr<uint64_t> SimStorage::FreeBytes() {
  MutexLock lock(mu_);
  return disk_.free_bytes();
}

StatusOr<std::unique_ptr<WriteQueue>> SimStorage::NewWriteQueue() {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin(SimCall::kNewQueue, "").status);
  return std::make_unique<SimQueue>(*this);
}

std::string SimStorage::host_boot_id() {
  MutexLock lock(mu_);
  return "simulated-boot-" + std::to_string(disk_.boot());
}

}  // namespace holdfast
