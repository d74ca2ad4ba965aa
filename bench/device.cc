#include "bench/device.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "bench/stopwatch.h"
#include "bench/written_file.h"

namespace holdfast::bench {
namespace {

constexpr size_t kBlockBytes = 4096;
constexpr uint64_t kFileBytes = uint64_t{64} << 20;
constexpr int kTurn = 20;

bool WriteDurably(int fd, const iovec& block, uint64_t offset, bool flush) {
  const auto at = static_cast<off_t>(offset);
  if (pwritev2(fd, &block, 1, at, flush ? 0 : RWF_DSYNC) != static_cast<ssize_t>(kBlockBytes)) {
    return false;
  }
  return !flush || fdatasync(fd) == 0;
}

}  // namespace

StatusOr<DeviceResult> MeasureDevice(const std::string& file, double seconds) {
  ASSIGN_OR_RETURN(const int fd, OpenWrittenFile(file, kFileBytes));
  std::unique_ptr<void, decltype(&free)> block(std::aligned_alloc(kBlockBytes, kBlockBytes), &free);
  std::memset(block.get(), 2, kBlockBytes);
  const iovec piece{block.get(), kBlockBytes};
  DeviceResult result;
  uint64_t offset = 0;
  bool ok = true;
  // Short turns of each, so that a slow moment of the device meets both.
  const int64_t until = NowNanos() + static_cast<int64_t>(seconds * 1e9);
  do {
    for (bool flush : {true, false}) {
      for (int count = 0; ok && count < kTurn; ++count) {
        const int64_t begin = NowNanos();
        ok = WriteDurably(fd, piece, offset, flush);
        (flush ? result.flushed : result.durable).Add(NowNanos() - begin);
        offset = (offset + kBlockBytes) % kFileBytes;
      }
    }
  } while (ok && NowNanos() < until);
  const int error = errno;
  close(fd);
  if (!ok) return Unavailable(Detail::kIo, "{}: {}", file, std::strerror(error));
  return result;
}

}  // namespace holdfast::bench
