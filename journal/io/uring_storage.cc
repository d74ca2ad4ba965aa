// The io_uring backend, the only file that knows liburing: everything but the write queue is
// PosixStorage.
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "journal/io/file_size_signal.h"
#include "journal/io/open_storage.h"
#include "journal/io/posix_storage.h"
#include "journal/io/posix_write_queue.h"

namespace holdfast {
namespace {

constexpr size_t kDepthMax = 32;
// Requests in the ring at one time; the kernel makes the completion ring twice as large, so it
// cannot overflow.
constexpr unsigned kInFlightMax = 64;
constexpr int kSubmitRetriesMax = 1000;
// A sleeper looks this often whether the queue failed meanwhile: a ring that fails cannot wake it.
constexpr absl::Duration kLookAgain = absl::Seconds(1);

Status RingError(int error, std::string_view action) {
  return Unavailable(Detail::kIo, "io_uring: {}: {} (errno {})", action,
                     std::generic_category().message(error), error);
}

// Durable batches go out side by side as O_DIRECT writes with RWF_DSYNC, so that the device merges
// their flushes. A durable batch that is alone is written by the thread that waits for it, with
// pwrite and fdatasync, which saves the way through the ring.
//
// The submission side belongs to whoever holds mu_, the completion side to the one thread in
// WaitOne. So the ring is set up without the flags that bind it to one thread (SINGLE_ISSUER,
// DEFER_TASKRUN) or that let completions wait for the submitter's next system call (COOP_TASKRUN).
class UringWriteQueue final : public WriteQueue {
 public:
  // Sets the ring up and proves that this kernel does what is needed. Errors: kUnavailable
  static StatusOr<std::unique_ptr<UringWriteQueue>> Open();
  ~UringWriteQueue() override;
  UringWriteQueue(const UringWriteQueue&) = delete;
  UringWriteQueue& operator=(const UringWriteQueue&) = delete;

  Status Submit(const WriteBatch& batch) override ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<Completion> WaitOne(absl::Duration timeout) override ABSL_LOCKS_EXCLUDED(mu_);
  size_t depth_max() const override { return kDepthMax; }

 private:
  struct OpRef {
    uint32_t slot;
    uint32_t op;
  };
  struct Slot {
    QueuedBatch batch;
    std::vector<WriteProgress> progress;  // of each write; empty for a flush
    size_t unfinished = 0;                // operations that wait or are in flight
  };

  UringWriteQueue() = default;
  Status Probe();

  uint32_t NewSlot(QueuedBatch batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Start(uint32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FillRing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Prepare(OpRef ref, io_uring_sqe& sqe) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SubmitRing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Reap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnResult(OpRef ref, int result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishOp(uint32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<Completion> TakeDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PerformLoneBatch(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  int WaitForRing(absl::Duration timeout);

  const ProcessGuard process_;
  io_uring ring_{};
  bool ring_is_set_up_ = false;

  Mutex mu_;  // Never held across a system call that waits.
  std::vector<std::optional<Slot>> slots_ ABSL_GUARDED_BY(mu_) =
      std::vector<std::optional<Slot>>(kDepthMax);
  std::deque<OpRef> ready_ ABSL_GUARDED_BY(mu_);  // wait for a place in the ring
  std::deque<Completion> done_ ABSL_GUARDED_BY(mu_);
  std::optional<uint32_t> lone_ ABSL_GUARDED_BY(mu_);  // left to the thread that waits
  size_t out_ ABSL_GUARDED_BY(mu_) = 0;                // submitted and not yet handed back
  unsigned in_flight_ ABSL_GUARDED_BY(mu_) = 0;        // in the ring
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;          // somebody sleeps in the kernel
  Status failure_ ABSL_GUARDED_BY(mu_);                // of the queue itself
};

StatusOr<std::unique_ptr<UringWriteQueue>> UringWriteQueue::Open() {
  std::unique_ptr<UringWriteQueue> queue(new UringWriteQueue);
  const int error = -io_uring_queue_init(kInFlightMax, &queue->ring_, 0);
  if (error != 0) return RingError(error, "the system refused to set up a ring");
  queue->ring_is_set_up_ = true;
  RETURN_IF_ERROR(queue->Probe());
  return queue;
}

Status UringWriteQueue::Probe() {
  constexpr unsigned kNeeded = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
  if ((ring_.features & kNeeded) != kNeeded) {
    return Unavailable(Detail::kIo, "io_uring: the kernel is too old (needs 5.11)");
  }
  const std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> probe(
      io_uring_get_probe_ring(&ring_), io_uring_free_probe);
  for (const int operation : {IORING_OP_WRITE, IORING_OP_FSYNC}) {
    if (probe == nullptr || io_uring_opcode_supported(probe.get(), operation) == 0) {
      return Unavailable(Detail::kIo, "io_uring: the kernel does not offer operation {}",
                         operation);
    }
  }
  // A child of fork() must never submit into this ring.
  if (const int error = -io_uring_ring_dontfork(&ring_); error != 0) {
    return RingError(error, "keeping the ring from children");
  }
  // A filter may allow the set-up and refuse the use.
  io_uring_prep_nop(io_uring_get_sqe(&ring_));
  if (const int taken = io_uring_submit(&ring_); taken != 1) {
    return RingError(-taken, "the system refused a first request");
  }
  io_uring_cqe* cqe = nullptr;
  int error = EINTR;
  while (error == EINTR) error = -io_uring_wait_cqe(&ring_, &cqe);
  if (error == 0) io_uring_cqe_seen(&ring_, cqe);
  return error == 0 ? absl::OkStatus() : RingError(error, "waiting for a first request");
}

// The memory of what is in flight is borrowed, so it has to land first; a forked child has nothing
// in flight and must leave the shared ring alone.
UringWriteQueue::~UringWriteQueue() {
  if (!ring_is_set_up_) return;
  if (!process_.is_owner()) {
    close(ring_.ring_fd);
    return;
  }
  MutexLock lock(mu_);
  for (Reap(); in_flight_ > 0; Reap()) {
    const int error = WaitForRing(absl::InfiniteDuration());
    if (error != 0 && error != EINTR) break;
  }
  io_uring_queue_exit(&ring_);
}

Status UringWriteQueue::Submit(const WriteBatch& batch) {
  QueuedBatch queued(batch);
  RETURN_IF_ERROR(process_.Check());
  MutexLock lock(mu_);
  if (!failure_.ok()) return failure_;
  if (out_ == kDepthMax) return Exhausted(Detail::kLimit, "{} batches are out", out_);
  const bool lone = out_ == 0 && !waiting_ && batch.kind == WriteKind::kDurable;
  ++out_;
  const uint32_t slot = NewSlot(std::move(queued));
  if (lone) {
    lone_ = slot;
    return absl::OkStatus();
  }
  if (lone_.has_value()) Start(*std::exchange(lone_, std::nullopt));
  Start(slot);
  FillRing();
  return failure_;
}

uint32_t UringWriteQueue::NewSlot(QueuedBatch batch) {
  uint32_t slot = 0;
  while (slots_[slot].has_value()) ++slot;
  slots_[slot] = Slot{.batch = std::move(batch)};
  return slot;
}

void UringWriteQueue::Start(uint32_t slot) {
  Slot& started = *slots_[slot];
  const std::vector<QueuedBatch::Op>& ops = started.batch.ops;
  started.unfinished = ops.size();
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (started.batch.kind != WriteKind::kFlush) {
      started.progress.emplace_back(*ops[op].file, ops[op].offset, ops[op].bytes);
    }
    ready_.push_back({slot, op});
  }
}

void UringWriteQueue::FillRing() {
  if (!failure_.ok()) return;
  while (!ready_.empty() && in_flight_ < kInFlightMax) {
    const OpRef ref = ready_.front();
    ready_.pop_front();
    if (!slots_[ref.slot]->batch.status.ok()) {  // a sibling failed: the rest is not written
      FinishOp(ref.slot);
      continue;
    }
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
    CHECK(sqe != nullptr);
    Prepare(ref, *sqe);
    ++in_flight_;
  }
  if (io_uring_sq_ready(&ring_) > 0) SubmitRing();
}

void UringWriteQueue::Prepare(OpRef ref, io_uring_sqe& sqe) {
  Slot& slot = *slots_[ref.slot];
  const int fd = slot.batch.ops[ref.op].file->fd();
  if (slot.batch.kind == WriteKind::kFlush) {
    io_uring_prep_fsync(&sqe, fd, IORING_FSYNC_DATASYNC);
  } else {
    const WriteProgress::Request next = slot.progress[ref.op].Next();
    io_uring_prep_write(&sqe, fd, next.bytes.data(), static_cast<unsigned>(next.bytes.size()),
                        next.offset);
    if (slot.batch.kind == WriteKind::kDurable) sqe.rw_flags = RWF_DSYNC;
  }
  io_uring_sqe_set_data64(&sqe, uint64_t{ref.slot} << 32 | ref.op);
}

void UringWriteQueue::SubmitRing() {
  const FileSizeSignalBlock no_signal;
  int retries = 0;
  while (io_uring_sq_ready(&ring_) > 0) {
    const int taken = io_uring_submit(&ring_);
    if (taken > 0) continue;
    const bool again = taken == 0 || taken == -EINTR || taken == -EAGAIN || taken == -EBUSY;
    if (again && ++retries <= kSubmitRetriesMax) {
      std::this_thread::yield();
      continue;
    }
    in_flight_ -= io_uring_sq_ready(&ring_);  // These never left.
    failure_ = RingError(-taken, "submitting writes");
    return;
  }
}

StatusOr<Completion> UringWriteQueue::WaitOne(absl::Duration timeout) {
  const absl::Duration deadline = RealClock().Now() + timeout;
  for (absl::Duration left = timeout;; left = deadline - RealClock().Now()) {
    PerformLoneBatch(left);
    {
      MutexLock lock(mu_);
      Reap();
      FillRing();
      if (std::optional<Completion> done = TakeDone()) return *std::move(done);
      if (!failure_.ok()) return failure_;
      if (lone_.has_value()) continue;  // It came while nobody held the lock.
      waiting_ = true;                  // From here on a batch goes to the ring, which wakes us.
    }
    const int error = WaitForRing(std::clamp(left, absl::ZeroDuration(), kLookAgain));
    MutexLock lock(mu_);
    waiting_ = false;
    if (error == 0 || error == EINTR || (error == ETIME && left > kLookAgain)) continue;
    if (error == ETIME) return absl::DeadlineExceededError("no batch completed in time");
    failure_ = RingError(error, "waiting for writes");
  }
}

// A caller that does not want to wait gets it started in the ring instead.
void UringWriteQueue::PerformLoneBatch(absl::Duration timeout) {
  uint32_t slot = 0;
  QueuedBatch* batch = nullptr;
  {
    MutexLock lock(mu_);
    if (!lone_.has_value()) return;
    slot = *std::exchange(lone_, std::nullopt);
    if (timeout <= absl::ZeroDuration()) {
      Start(slot);
      return;
    }
    slots_[slot]->unfinished = 1;
    batch = &slots_[slot]->batch;
  }
  PerformBatches({batch, 1});
  MutexLock lock(mu_);
  FinishOp(slot);
}

// 0, or an errno; ETIME when the time is over.
int UringWriteQueue::WaitForRing(absl::Duration timeout) {
  io_uring_cqe* cqe = nullptr;
  if (timeout == absl::InfiniteDuration()) return -io_uring_wait_cqe(&ring_, &cqe);
  const timespec limit = absl::ToTimespec(timeout);
  __kernel_timespec ring_limit{.tv_sec = limit.tv_sec, .tv_nsec = limit.tv_nsec};
  return -io_uring_wait_cqe_timeout(&ring_, &cqe, &ring_limit);
}

void UringWriteQueue::Reap() {
  unsigned head = 0;
  unsigned count = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    const uint64_t data = io_uring_cqe_get_data64(cqe);
    OnResult({static_cast<uint32_t>(data >> 32), static_cast<uint32_t>(data)}, cqe->res);
    ++count;
  }
  io_uring_cq_advance(&ring_, count);
  if (*ring_.cq.koverflow != 0) failure_ = RingError(EOVERFLOW, "completions were lost");
}

void UringWriteQueue::OnResult(OpRef ref, int result) {
  CHECK(in_flight_ > 0);
  --in_flight_;
  Slot& slot = *slots_[ref.slot];
  bool again = false;
  Status status;
  if (slot.batch.kind == WriteKind::kFlush) {
    again = result == -ECANCELED;  // It never ran. Any other failure of a sync is final.
    if (result < 0 && !again) status = slot.batch.ops[ref.op].file->Failed(-result, "fdatasync");
  } else {
    WriteProgress& progress = slot.progress[ref.op];
    status = progress.Advance(result);
    again = status.ok() && !progress.done();
  }
  if (slot.batch.status.ok()) slot.batch.status = status;
  if (again) {
    ready_.push_back(ref);
  } else {
    FinishOp(ref.slot);
  }
}

void UringWriteQueue::FinishOp(uint32_t slot) {
  Slot& finished = *slots_[slot];
  CHECK(finished.unfinished > 0);
  if (--finished.unfinished > 0) return;
  done_.push_back({finished.batch.id, std::move(finished.batch.status)});
  slots_[slot].reset();
}

std::optional<Completion> UringWriteQueue::TakeDone() {
  if (done_.empty()) return std::nullopt;
  Completion completion = std::move(done_.front());
  done_.pop_front();
  --out_;
  return completion;
}

class UringStorage final : public PosixStorage {
 public:
  UringStorage(Parts parts, std::unique_ptr<WriteQueue> first_queue)
      : PosixStorage(std::move(parts)), first_queue_(std::move(first_queue)) {}

  std::string backend() const override { return "io_uring"; }
  // The queue that proved the backend goes to whoever asks first.
  StatusOr<std::unique_ptr<WriteQueue>> NewWriteQueue() override {
    {
      MutexLock lock(mu_);
      if (first_queue_ != nullptr) return std::move(first_queue_);
    }
    return UringWriteQueue::Open();
  }

 private:
  friend StatusOr<std::unique_ptr<Storage>> holdfast::OpenUringStorage(
      const std::string& directory, const OpenStorageOptions& options);

  Mutex mu_;
  std::unique_ptr<WriteQueue> first_queue_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

StatusOr<std::unique_ptr<Storage>> OpenUringStorage(const std::string& directory,
                                                    const OpenStorageOptions& options) {
  ASSIGN_OR_RETURN(auto queue, UringWriteQueue::Open());
  ASSIGN_OR_RETURN(auto parts, UringStorage::OpenParts(directory, options, "the kernel offers it"));
  return std::make_unique<UringStorage>(std::move(parts), std::move(queue));
}

}  // namespace holdfast
