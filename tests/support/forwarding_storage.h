// A storage that hands every call on to another: a test double overrides only what it cares about.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/io/storage.h"

namespace holdfast {

class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> target) : target_(std::move(target)) {}

  StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) override {
    return target_->ReadAt(offset, buffer);
  }
  Status WriteAt(uint64_t offset, ByteView bytes) override {
    return target_->WriteAt(offset, bytes);
  }
  Status SyncData() override { return target_->SyncData(); }
  Status WriteZeros(uint64_t bytes) override { return target_->WriteZeros(bytes); }
  Status Truncate(uint64_t bytes) override { return target_->Truncate(bytes); }
  StatusOr<uint64_t> Size() override { return target_->Size(); }
  Status TryLock() override { return target_->TryLock(); }
  uint64_t alignment() const override { return target_->alignment(); }

  File& target() { return *target_; }

 private:
  std::unique_ptr<File> target_;
};

// Its batches name files of the forwarding storage; the queue behind gets their targets.
class ForwardingQueue : public WriteQueue {
 public:
  explicit ForwardingQueue(std::unique_ptr<WriteQueue> target) : target_(std::move(target)) {}

  Status Submit(const WriteBatch& batch) override {
    std::vector<WriteOp> ops(batch.writes.begin(), batch.writes.end());
    for (WriteOp& op : ops) {
      auto* file = dynamic_cast<ForwardingFile*>(op.file);
      CHECK(file != nullptr);
      op.file = &file->target();
    }
    return target_->Submit({.id = batch.id, .kind = batch.kind, .writes = ops});
  }
  StatusOr<Completion> WaitOne(absl::Duration timeout) override {
    return target_->WaitOne(timeout);
  }
  size_t depth_max() const override { return target_->depth_max(); }

 private:
  std::unique_ptr<WriteQueue> target_;
};

// The target is borrowed and outlives it.
class ForwardingStorage : public Storage {
 public:
  explicit ForwardingStorage(Storage& target) : target_(target) {}

  using Storage::OpenFile;
  StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name, OpenMode mode,
                                           FileUse use) override {
    ASSIGN_OR_RETURN(auto file, target_.OpenFile(name, mode, use));
    return WrapFile(name, std::move(file));
  }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return target_.List(folder);
  }
  Status MakeFolder(const std::string& folder) override { return target_.MakeFolder(folder); }
  Status Rename(const std::string& from, const std::string& to) override {
    return target_.Rename(from, to);
  }
  Status Remove(const std::string& name) override { return target_.Remove(name); }
  Status SyncFolder(const std::string& folder) override { return target_.SyncFolder(folder); }
  StatusOr<uint64_t> FreeBytes() override { return target_.FreeBytes(); }
  StatusOr<std::unique_ptr<WriteQueue>> NewWriteQueue() override {
    ASSIGN_OR_RETURN(auto queue, target_.NewWriteQueue());
    return WrapQueue(std::move(queue));
  }
  std::string host_boot_id() override { return target_.host_boot_id(); }
  std::string backend() const override { return target_.backend(); }
  std::string backend_reason() const override { return target_.backend_reason(); }
  std::string display_path() const override { return target_.display_path(); }

 protected:
  // A double with a file or queue of its own returns it here; a file must be a ForwardingFile.
  virtual std::unique_ptr<File> WrapFile(const std::string& /*name*/, std::unique_ptr<File> file) {
    return std::make_unique<ForwardingFile>(std::move(file));
  }
  virtual std::unique_ptr<WriteQueue> WrapQueue(std::unique_ptr<WriteQueue> queue) {
    return std::make_unique<ForwardingQueue>(std::move(queue));
  }
  Storage& target() { return target_; }

 private:
  Storage& target_;
};

}  // namespace holdfast
