// A file in memory that several threads may read at a time, for tests of who reads it how: it
// counts, fails where it is told to, and can hold reads back.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/io/storage.h"

namespace holdfast {

class MemoryFile final : public File {
 public:
  // Byte n of it is Expected(n).
  MemoryFile(uint64_t bytes, size_t read_depth) : bytes_(bytes), read_depth_(read_depth) {}

  static std::byte Expected(uint64_t offset) {
    return static_cast<std::byte>((offset * 0x9e3779b97f4a7c15) >> 56);
  }

  StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) override ABSL_LOCKS_EXCLUDED(mu_) {
    uint64_t end = 0;
    {
      MutexLock lock(mu_);
      ++reads_;
      ++reading_;
      reading_max_ = std::max(reading_max_, reading_);
      changed_.NotifyAll();
      while (reading_ < gathering_) changed_.Wait(mu_);
      gathering_ = 0;  // They met once; nobody is held back again.
      changed_.NotifyAll();
      --reading_;
      if (bad_.has_value() && *bad_ >= offset && *bad_ < offset + buffer.size()) {
        return Unavailable(Detail::kIo, "bad block at {}", *bad_);
      }
      end = std::min<uint64_t>(bytes_, offset + buffer.size());
    }
    for (uint64_t at = offset; at < end; ++at) buffer[at - offset] = Expected(at);
    return end > offset ? static_cast<size_t>(end - offset) : size_t{0};
  }
  StatusOr<uint64_t> Size() override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return bytes_;
  }
  Status Truncate(uint64_t bytes) override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    bytes_ = bytes;
    return absl::OkStatus();
  }
  Status WriteAt(uint64_t, ByteView) override { return absl::OkStatus(); }
  Status SyncData() override { return absl::OkStatus(); }
  Status WriteZeros(uint64_t) override { return absl::OkStatus(); }
  Status TryLock() override { return absl::OkStatus(); }
  uint64_t alignment() const override { return 4096; }
  size_t read_depth() const override { return read_depth_; }

  void SetBad(std::optional<uint64_t> offset) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    bad_ = offset;
  }
  // The next reads wait until so many of them are in flight.
  void Gather(int reads) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    gathering_ = reads;
  }
  int reads() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return reads_;
  }
  int reading_max() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return reading_max_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  uint64_t bytes_ ABSL_GUARDED_BY(mu_);
  const size_t read_depth_;
  std::optional<uint64_t> bad_ ABSL_GUARDED_BY(mu_);
  int reads_ ABSL_GUARDED_BY(mu_) = 0;
  int reading_ ABSL_GUARDED_BY(mu_) = 0;
  int reading_max_ ABSL_GUARDED_BY(mu_) = 0;
  int gathering_ ABSL_GUARDED_BY(mu_) = 0;
};

// Whether `bytes` are those of a MemoryFile from `offset` on.
inline bool AreBytesAt(uint64_t offset, ByteView bytes) {
  for (size_t index = 0; index < bytes.size(); ++index) {
    if (bytes[index] != MemoryFile::Expected(offset + index)) return false;
  }
  return true;
}

}  // namespace holdfast
