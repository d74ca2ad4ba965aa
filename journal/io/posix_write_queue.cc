#include "journal/io/posix_write_queue.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "holdfast/clock.h"

namespace holdfast {
namespace {

void SyncFile(PosixFile& file, std::span<QueuedBatch> batches) {
  const Status synced = file.SyncData();
  if (synced.ok()) return;
  for (QueuedBatch& batch : batches) {
    for (const QueuedBatch::Op& op : batch.ops) {
      if (op.file == &file && batch.status.ok()) batch.status = synced;
    }
  }
}

}  // namespace

QueuedBatch::QueuedBatch(const WriteBatch& batch) : id(batch.id), kind(batch.kind) {
  CHECK(!batch.writes.empty());
  if (kind == WriteKind::kFlush) CHECK(batch.writes.size() == 1);
  ops.reserve(batch.writes.size());
  for (const WriteOp& op : batch.writes) {
    auto* file = dynamic_cast<PosixFile*>(op.file);
    CHECK(file != nullptr);
    CHECK(file->writable());
    CHECK(op.bytes.empty() == (kind == WriteKind::kFlush));
    CHECK(IsAligned(op.offset, kIoAlignment));
    CHECK(IsAligned(op.bytes.size(), kIoAlignment));
    CHECK(IsAligned(reinterpret_cast<uintptr_t>(op.bytes.data()), kIoAlignment));
    ops.push_back({file, op.offset, op.bytes});
  }
}

void PerformBatches(std::span<QueuedBatch> batches) {
  std::vector<PosixFile*> unsynced;
  for (QueuedBatch& batch : batches) {
    for (const QueuedBatch::Op& op : batch.ops) {
      if (batch.kind != WriteKind::kFlush)
        batch.status = op.file->WriteAligned(op.offset, op.bytes);
      if (!batch.status.ok()) break;
      const bool noted = std::find(unsynced.begin(), unsynced.end(), op.file) != unsynced.end();
      if (batch.kind != WriteKind::kPlain && !noted) unsynced.push_back(op.file);
    }
  }
  for (PosixFile* file : unsynced) SyncFile(*file, batches);
}

ProcessGuard::ProcessGuard() : owner_(getpid()) {}

bool ProcessGuard::is_owner() const { return getpid() == owner_; }

Status ProcessGuard::Check() const {
  if (is_owner()) return absl::OkStatus();
  return WrongState(Detail::kLocked,
                    "the store belongs to process {}; a forked child has to open another one",
                    owner_);
}

Status PosixWriteQueue::Submit(const WriteBatch& batch) {
  QueuedBatch queued(batch);
  RETURN_IF_ERROR(process_.Check());
  MutexLock lock(mu_);
  if (out_ == kDepthMax) return Exhausted(Detail::kLimit, "{} batches are out", out_);
  ++out_;
  queued_.push_back(std::move(queued));
  submitted_.NotifyOne();
  return absl::OkStatus();
}

StatusOr<Completion> PosixWriteQueue::WaitOne(absl::Duration timeout) {
  std::vector<QueuedBatch> work;
  {
    MutexLock lock(mu_);
    if (done_.empty()) work = TakeWork(timeout);
  }
  PerformBatches(work);
  MutexLock lock(mu_);
  for (QueuedBatch& batch : work) done_.push_back({batch.id, std::move(batch.status)});
  if (done_.empty()) return absl::DeadlineExceededError("no batch was submitted in time");
  Completion completion = std::move(done_.front());
  done_.pop_front();
  --out_;
  return completion;
}

// The oldest batch and, if it is durable, those right behind it that can share its sync.
std::vector<QueuedBatch> PosixWriteQueue::TakeWork(absl::Duration timeout) {
  const absl::Duration deadline = RealClock().Now() + timeout;
  while (queued_.empty()) {
    const absl::Duration left = deadline - RealClock().Now();
    if (left <= absl::ZeroDuration()) return {};
    if (left == absl::InfiniteDuration()) {
      submitted_.Wait(mu_);
    } else {
      submitted_.WaitFor(mu_, left);
    }
  }
  std::vector<QueuedBatch> work;
  do {
    work.push_back(std::move(queued_.front()));
    queued_.pop_front();
  } while (!queued_.empty() && work.back().kind == WriteKind::kDurable &&
           queued_.front().kind == WriteKind::kDurable);
  return work;
}

}  // namespace holdfast
