// Floor: the bare maps, and the least that makes them durable. It encodes, checksums, groups and
// writes the bytes of every cycle, and that is all: no recovery, no judging, no rotation, no
// reading back. What the journal stores take beyond it is the price of being stores.
//
// Synced: a writer thread writes what has gathered as one O_DIRECT write with RWF_DSYNC over blocks
// that were written before; after a group it waits up to 40 µs for the callers just released to
// come back. One request is out at a time, which costs the same through io_uring and through
// pwritev2, and the latter needs no library.
// Batched: groups of up to 1 MiB go out unsynced, and one fdatasync each interval confirms them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "bench/maps.h"
#include "bench/subject.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct FloorOptions {
  std::string ring_file;  // made, written once and kept for the next run if it is missing
  uint64_t ring_bytes = uint64_t{256} << 20;
  absl::Duration interval = absl::ZeroDuration();  // zero: synced
};

class Floor final : public Subject, public CommitSource {
 public:
  static StatusOr<std::unique_ptr<Floor>> Open(const FloorOptions& options);
  ~Floor() override;

  Commit Run(const Cycle& cycle) override ABSL_LOCKS_EXCLUDED(mu_);
  SubjectCounters counters() override { return {written_bytes_.load(), flushes_.load()}; }
  Status Close() override ABSL_LOCKS_EXCLUDED(mu_);
  std::string io() override { return "O_DIRECT, pwritev2"; }

  Status WaitFor(uint64_t number) override ABSL_LOCKS_EXCLUDED(mu_);
  void CallWhenReached(uint64_t number, std::function<void(Status)> callback) override
      ABSL_LOCKS_EXCLUDED(mu_);
  bool Reached(uint64_t number) const override { return synced_.load() >= number; }

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  static constexpr size_t kBuffers = 24;

  struct FreeDeleter {
    void operator()(std::byte* bytes) const { free(bytes); }
  };
  struct Buffer {
    std::unique_ptr<std::byte, FreeDeleter> bytes;
    size_t used = 0;
    uint64_t last = 0;  // number of the newest cycle in it
  };
  struct Waiter {
    uint64_t number = 0;
    std::function<void(Status)> callback;
  };

  Floor(int fd, const FloorOptions& options);
  std::byte* RoomFor(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteGroups() ABSL_LOCKS_EXCLUDED(mu_);
  bool AwaitWork(int64_t due_nanos) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitRejoin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Write(Buffer& buffer);
  void Confirm(uint64_t number, bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int fd_;
  const FloorOptions options_;
  const int64_t interval_nanos_;
  uint64_t ring_offset_ = 0;  // writer thread only
  std::atomic<uint64_t> written_bytes_ = 0;
  std::atomic<uint64_t> flushes_ = 0;

  Mutex mu_;
  CondVar work_;   // for the writer: something to write
  CondVar space_;  // for callers: a free buffer
  uint64_t appended_ ABSL_GUARDED_BY(mu_) = 0;
  Buffer open_ ABSL_GUARDED_BY(mu_);
  std::deque<Buffer> full_ ABSL_GUARDED_BY(mu_);
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mu_);
  Maps maps_ ABSL_GUARDED_BY(mu_);
  std::deque<Waiter> callbacks_ ABSL_GUARDED_BY(mu_);
  uint64_t rejoin_at_ ABSL_GUARDED_BY(mu_) =
      0;  // all callers of the last group are back at this number
  bool writer_waits_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;

  std::atomic<uint64_t> synced_ = 0;
  std::atomic<uint32_t> generation_ = 0;  // futex: changes with every confirmation
  std::atomic<bool> failed_ = false;
  std::thread writer_;
};

}  // namespace holdfast::bench
