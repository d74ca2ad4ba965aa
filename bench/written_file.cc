#include "bench/written_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace holdfast::bench {
namespace {

Status WriteOnce(int fd, uint64_t bytes) {
  const std::vector<char> ones(size_t{1} << 20, 1);
  for (uint64_t offset = 0; offset < bytes;) {
    const size_t length = std::min<uint64_t>(ones.size(), bytes - offset);
    const ssize_t count = pwrite(fd, ones.data(), length, static_cast<off_t>(offset));
    if (count <= 0) return Unavailable(Detail::kIo, "pwrite: {}", std::strerror(errno));
    offset += static_cast<uint64_t>(count);
  }
  if (fsync(fd) != 0) return Unavailable(Detail::kIo, "fsync: {}", std::strerror(errno));
  return absl::OkStatus();
}

}  // namespace

StatusOr<int> OpenWrittenFile(const std::string& path, uint64_t bytes) {
  const int plain = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (plain < 0) return Unavailable(Detail::kIo, "{}: {}", path, std::strerror(errno));
  struct stat info{};
  if (fstat(plain, &info) != 0 || static_cast<uint64_t>(info.st_size) < bytes) {
    if (Status written = WriteOnce(plain, bytes); !written.ok()) {
      close(plain);
      return Annotate(written, path);
    }
  }
  const int direct = open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  if (direct < 0) return plain;
  close(plain);
  return direct;
}

}  // namespace holdfast::bench
