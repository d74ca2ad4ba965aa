#include "bench/store_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "bench/stopwatch.h"
#include "journal/io/aligned_buffer.h"

namespace holdfast::bench {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

Status Failed(const std::string& path, const char* action) {
  return Unavailable(Detail::kIo, "{}: {}: {}", path, action, std::strerror(errno));
}

std::vector<std::string> FilesBelow(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;  // What goes away meanwhile is left out.
  for (std::filesystem::recursive_directory_iterator it(directory, error), end; it != end;
       it.increment(error)) {
    if (error) break;
    if (it->is_regular_file(error)) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

StatusOr<uint64_t> CachedBytes(int fd, uint64_t bytes, const std::string& path) {
  if (bytes == 0) return uint64_t{0};
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return Failed(path, "mmap");
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  const int error = mincore(map, bytes, pages.data());
  munmap(map, bytes);
  if (error != 0) return Failed(path, "mincore");
  return page * static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(),
                                                    [](unsigned char in) { return in & 1; }));
}

StatusOr<uint64_t> DropFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed(path, "open");
  struct stat info{};
  StatusOr<uint64_t> cached = uint64_t{0};
  if (fsync(fd) != 0 || fstat(fd, &info) != 0) {
    cached = Failed(path, "fsync");
  } else if (const int error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); error != 0) {
    errno = error;
    cached = Failed(path, "posix_fadvise");
  } else {
    cached = CachedBytes(fd, static_cast<uint64_t>(info.st_size), path);
  }
  close(fd);
  return cached;
}

struct Piece {
  int fd = -1;
  uint64_t offset = 0;
};

}  // namespace

FolderSize SizeOf(const std::string& directory, const std::string& part) {
  FolderSize size;
  for (const std::string& path : FilesBelow(directory)) {
    struct stat info{};
    if (path.find(part, directory.size()) == std::string::npos) continue;
    if (stat(path.c_str(), &info) != 0) continue;
    size.disk_bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    ++size.files;
  }
  return size;
}

StatusOr<uint64_t> DropPageCache(const std::string& directory) {
  uint64_t stayed = 0;
  for (const std::string& path : FilesBelow(directory)) {
    ASSIGN_OR_RETURN(const uint64_t cached, DropFile(path));
    stayed += cached;
  }
  return stayed;
}

StatusOr<RawRead> ReadRaw(const std::string& directory, int depth) {
  std::vector<int> open_files;
  std::vector<Piece> pieces;
  for (const std::string& path : FilesBelow(directory)) {
    int fd = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info{};
    if (fd < 0 || fstat(fd, &info) != 0) continue;  // It went away.
    open_files.push_back(fd);
    for (uint64_t at = 0; at < static_cast<uint64_t>(info.st_size); at += kPieceBytes) {
      pieces.push_back({fd, at});
    }
  }
  std::atomic<size_t> next = 0;
  std::atomic<uint64_t> bytes = 0;
  std::atomic<int> failure = 0;
  const int64_t begin = NowNanos();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < depth; ++thread) {
    threads.emplace_back([&] {
      AlignedBuffer buffer(kHugePageBytes);  // as the journal's own, or the pieces cost more
      for (size_t index = next++; index < pieces.size(); index = next++) {
        const ssize_t got = pread(pieces[index].fd, buffer.data(), kPieceBytes,
                                  static_cast<off_t>(pieces[index].offset));
        if (got < 0) failure = errno;
        bytes += static_cast<uint64_t>(std::max<ssize_t>(got, 0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = static_cast<double>(NowNanos() - begin) * 1e-9;
  for (const int fd : open_files) close(fd);
  errno = failure;
  if (failure != 0) return Failed(directory, "read");
  return RawRead{.bytes = bytes, .seconds = seconds};
}

StatusOr<uint64_t> FreeBytes(const std::string& directory) {
  struct statvfs info{};
  if (statvfs(directory.c_str(), &info) != 0) return Failed(directory, "statvfs");
  return uint64_t{info.f_bavail} * info.f_frsize;
}

void RemoveStore(const std::string& directory) {
  std::error_code ignored;  // as promised: the next open tells
  std::filesystem::remove_all(directory, ignored);
}

Status CheckFreeBytes(const std::string& directory, uint64_t needed, const std::string& what,
                      const std::string& option) {
  ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(directory));
  if (free >= needed) return absl::OkStatus();
  return Exhausted(Detail::kDiskFull,
                   "{}: {} MB are free, and {} may take {} MB; give another --dir or fewer {}",
                   directory, free / 1'000'000, what, needed / 1'000'000, option);
}

}  // namespace holdfast::bench
