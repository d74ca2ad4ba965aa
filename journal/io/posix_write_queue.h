// The write queue of a system without io_uring: Submit only notes the batch, the thread that waits
// for it does the work.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/io/posix_file.h"
#include "journal/io/storage.h"

namespace holdfast {

// A batch with its files resolved and its shape checked: what a queue keeps of a WriteBatch.
struct QueuedBatch {
  struct Op {
    PosixFile* file = nullptr;
    uint64_t offset = 0;
    ByteView bytes;
  };
  explicit QueuedBatch(const WriteBatch& batch);

  uint64_t id = 0;
  WriteKind kind = WriteKind::kPlain;
  std::vector<Op> ops;
  Status status;
};

// Refuses what a forked child tries with its parent's queue: the lock of the store is the parent's.
class ProcessGuard {
 public:
  ProcessGuard();
  bool is_owner() const;
  Status Check() const;

 private:
  int owner_;
};

// Does the work of `batches` in the calling thread and sets their statuses: all writes, then one
// fdatasync for each file that needs one. A failed sync fails every batch that wrote to the file.
void PerformBatches(std::span<QueuedBatch> batches);

// Durable batches that queue up share their sync. What was never waited for is never written.
class PosixWriteQueue final : public WriteQueue {
 public:
  Status Submit(const WriteBatch& batch) override ABSL_LOCKS_EXCLUDED(mu_);
  // `timeout` bounds the wait for a batch, not the system calls that carry it out.
  StatusOr<Completion> WaitOne(absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mu_);
  size_t depth_max() const override { return kDepthMax; }
  bool overlaps() const override { return false; }

 private:
  static constexpr size_t kDepthMax = 8;

  std::vector<QueuedBatch> TakeWork(absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ProcessGuard process_;
  Mutex mu_;  // Never held across a system call on a file.
  CondVar submitted_;
  size_t out_ ABSL_GUARDED_BY(mu_) = 0;  // submitted and not yet handed back
  std::deque<QueuedBatch> queued_ ABSL_GUARDED_BY(mu_);
  std::deque<Completion> done_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
