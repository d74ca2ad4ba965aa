// A file of the operating system, O_DIRECT where it is wanted and the file system allows it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "holdfast/log_sink.h"
#include "journal/base/mutex.h"
#include "journal/io/aligned_buffer.h"
#include "journal/io/storage.h"

namespace holdfast {

// Remembers for a whole storage that direct I/O was refused, and says so once.
// Threads: any.
class DirectRefusal {
 public:
  explicit DirectRefusal(LogSink* log) : log_(log) {}
  void Tell(const std::string& path, int error) ABSL_LOCKS_EXCLUDED(mu_);
  // Empty while nothing was refused.
  std::string reason() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  LogSink* const log_;  // Borrowed from the host; may be null.
  Mutex mu_;
  std::string reason_ ABSL_GUARDED_BY(mu_);
};

class PosixFile final : public File {
 public:
  struct Options {
    bool writable = false;
    bool direct = false;
    std::string path;  // for messages
  };
  // Owns `fd` from here on. The refusal is shared by a storage and its files; whichever goes last
  // frees it.
  PosixFile(int fd, Options options, std::shared_ptr<DirectRefusal> refusal);
  ~PosixFile() override;
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) override;
  Status WriteAt(uint64_t offset, ByteView bytes) override;
  Status SyncData() override;
  Status WriteZeros(uint64_t bytes) override;
  Status Truncate(uint64_t bytes) override;
  StatusOr<uint64_t> Size() override;
  Status TryLock() override;
  uint64_t alignment() const override { return kIoAlignment; }
  // Three reads of half a MiB reach what the measured devices stream; more of them lose again.
  size_t read_depth() const override { return 3; }

  // As WriteAt, for what is aligned already: no copy.
  Status WriteAligned(uint64_t offset, ByteView bytes);

  // For a write queue that talks to the kernel itself.
  int fd() const { return fd_; }
  bool writable() const { return options_.writable; }
  bool direct() const { return direct_.load(std::memory_order_relaxed); }
  // The kernel refused an aligned direct request with EINVAL: from now on the file is buffered.
  void DropDirect();
  Status Failed(int error, std::string_view action) const;

 private:
  StatusOr<size_t> ReadSome(uint64_t offset, ByteSpan buffer);
  StatusOr<size_t> ReadThroughBounce(uint64_t offset, ByteSpan buffer, AlignedBuffer& bounce);
  Status WriteThroughBounce(uint64_t offset, ByteView bytes);
  Status RefuseIfNotWritable() const;
  Status ReserveBlocks(uint64_t bytes);

  const int fd_;
  const Options options_;
  const std::shared_ptr<DirectRefusal> refusal_;
  std::atomic<bool> direct_;
};

// One write on its way to the disk: what is left of it after each answer of the kernel.
class WriteProgress {
 public:
  // Borrows file and bytes.
  WriteProgress(PosixFile& file, uint64_t offset, ByteView bytes)
      : file_(&file), offset_(offset), bytes_(bytes) {}

  struct Request {
    uint64_t offset = 0;
    ByteView bytes;
  };
  bool done() const { return done_ == bytes_.size(); }
  // What to ask the kernel for next.
  Request Next();
  // Takes its answer, a count of bytes or -errno. An error is final; else go on until done().
  Status Advance(int64_t result);

 private:
  PosixFile* file_;
  uint64_t offset_;
  ByteView bytes_;
  size_t done_ = 0;
  int retries_ = 0;  // since the last progress
  bool sent_direct_ = false;
};

}  // namespace holdfast
