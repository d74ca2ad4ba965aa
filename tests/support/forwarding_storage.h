// A Storage that forwards every call, so that a test double overrides only what it cares about.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/io/storage.h"

namespace holdfast {

class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> inner) : inner_(std::move(inner)) {}
  StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) override {
    return inner_->ReadAt(offset, buffer);
  }
  Status WriteAt(uint64_t offset, ByteView bytes) override {
    return inner_->WriteAt(offset, bytes);
  }
  Status SyncData() override { return inner_->SyncData(); }
  Status WriteZeros(uint64_t bytes) override { return inner_->WriteZeros(bytes); }
  Status Truncate(uint64_t bytes) override { return inner_->Truncate(bytes); }
  StatusOr<uint64_t> Size() override { return inner_->Size(); }
  Status TryLock() override { return inner_->TryLock(); }
  uint64_t alignment() const override { return inner_->alignment(); }
  File& inner() { return *inner_; }

 private:
  std::unique_ptr<File> inner_;
};

// Its batches name ForwardingFiles; the ones that it submits name what those wrap.
class ForwardingQueue : public WriteQueue {
 public:
  explicit ForwardingQueue(std::unique_ptr<WriteQueue> inner) : inner_(std::move(inner)) {}
  Status Submit(const WriteBatch& batch) override {
    std::vector<WriteOp> ops(batch.writes.begin(), batch.writes.end());
    for (WriteOp& op : ops) op.file = &static_cast<ForwardingFile*>(op.file)->inner();
    return inner_->Submit({batch.id, batch.kind, ops});
  }
  StatusOr<Completion> WaitOne(absl::Duration timeout) override { return inner_->WaitOne(timeout); }
  size_t depth_max() const override { return inner_->depth_max(); }
  WriteQueue& inner() { return *inner_; }

 private:
  std::unique_ptr<WriteQueue> inner_;
};

// `inner` is borrowed and outlives it.
class ForwardingStorage : public Storage {
 public:
  explicit ForwardingStorage(Storage& inner) : inner_(inner) {}
  using Storage::OpenFile;
  StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name, OpenMode mode,
                                           FileUse use) override {
    ASSIGN_OR_RETURN(std::unique_ptr<File> file, inner_.OpenFile(name, mode, use));
    return Wrap(std::move(file));
  }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return inner_.List(folder);
  }
  Status MakeFolder(const std::string& folder) override { return inner_.MakeFolder(folder); }
  Status Rename(const std::string& from, const std::string& to) override {
    return inner_.Rename(from, to);
  }
  Status Remove(const std::string& name) override { return inner_.Remove(name); }
  Status SyncFolder(const std::string& folder) override { return inner_.SyncFolder(folder); }
  StatusOr<uint64_t> FreeBytes() override { return inner_.FreeBytes(); }
  StatusOr<std::unique_ptr<WriteQueue>> NewWriteQueue() override {
    ASSIGN_OR_RETURN(std::unique_ptr<WriteQueue> queue, inner_.NewWriteQueue());
    return WrapQueue(std::move(queue));
  }
  std::string host_boot_id() override { return inner_.host_boot_id(); }
  std::string backend() const override { return inner_.backend(); }
  std::string backend_reason() const override { return inner_.backend_reason(); }
  std::string display_path() const override { return inner_.display_path(); }

 protected:
  // A double of files or of the queue comes in here; it is a ForwardingFile or a queue that
  // forwards.
  virtual std::unique_ptr<File> Wrap(std::unique_ptr<File> file) {
    return std::make_unique<ForwardingFile>(std::move(file));
  }
  virtual std::unique_ptr<WriteQueue> WrapQueue(std::unique_ptr<WriteQueue> queue) {
    return std::make_unique<ForwardingQueue>(std::move(queue));
  }
  Storage& inner() { return inner_; }

 private:
  Storage& inner_;
};

}  // namespace holdfast
