#include "recovery/lock_taker.h"

#include <algorithm>
#include <utility>

#include "journal/base/mutex.h"
#include "recovery/store_layout.h"

namespace holdfast {
namespace {
// Unsynced bytes are at most half a segment, and few segments are made ahead: writes in flight
// reach the newest ones only. More are locked than that takes.
constexpr size_t kLockedSegments = 8;
constexpr absl::Duration kPause = absl::Milliseconds(5);
}  // namespace

LockTaker::LockTaker(Storage& storage, Clock& clock, absl::Duration wait_max)
    : storage_(storage),
      clock_(clock),
      deadline_(clock.Now() + wait_max),
      pauses_left_(wait_max / kPause) {}

StatusOr<std::unique_ptr<File>> LockTaker::Take(const std::string& name, OpenMode mode) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, storage_.OpenFile(name, mode));
  for (;;) {
    const Status status = file->TryLock();
    if (status.ok()) return file;
    if (DetailOf(status) != Detail::kLocked) return status;
    if (pauses_left_ <= 0 || clock_.Now() >= deadline_) {
      return WrongState(
          Detail::kLocked,
          "{}/{}: another process, or another Engine of this one, has the store open, or "
          "writes of a killed one are still in flight; close it, or wait longer (lock_wait)",
          storage_.display_path(), name);
    }
    Pause();
  }
}

StatusOr<std::map<SegmentId, std::unique_ptr<File>>> LockTaker::TakeSegments() {
  ASSIGN_OR_RETURN(const StoreNames names, ListStore(storage_));
  std::map<SegmentId, std::unique_ptr<File>> locks;
  const size_t count = std::min(names.segments.size(), kLockedSegments);
  for (size_t i = names.segments.size() - count; i < names.segments.size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<File> lock,
                     Take(SegmentFileName(names.segments[i]), OpenMode::kReadWrite));
    locks[names.segments[i]] = std::move(lock);
  }
  return locks;
}

void LockTaker::Pause() {
  --pauses_left_;
  const absl::Duration left = clock_.Until(std::min(deadline_, clock_.Now() + kPause));
  if (left <= absl::ZeroDuration()) return;
  // A wait that nobody ends early: the only way to let time pass that keeps to the given clock.
  Mutex mu;  // Guards nothing.
  CondVar never;
  MutexLock lock(mu);
  never.WaitFor(mu, left);
}

}  // namespace holdfast
