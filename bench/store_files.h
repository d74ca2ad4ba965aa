// The files of a store that nobody has open: how large they are, out of the page cache, and read as
// fast as the device goes.
#pragma once

#include <cstdint>
#include <string>

#include "journal/base/status.h"

namespace holdfast::bench {

struct FolderSize {
  uint64_t disk_bytes = 0;  // allocated
  uint64_t files = 0;
};
// Of everything below `directory`; what goes away meanwhile is not counted. Of names that contain
// `part` only, unless it is empty.
FolderSize SizeOf(const std::string& directory, const std::string& part = "");

// Syncs every file below `directory` and asks the kernel to forget its pages (fsync, then
// posix_fadvise DONTNEED). Returns how many bytes stayed in the page cache all the same (mincore).
StatusOr<uint64_t> DropPageCache(const std::string& directory);

// Reads every file below `directory` past the page cache in pieces of 1 MiB, so many at a time, and
// nothing else. Where O_DIRECT is refused the figure is that of the page cache.
struct RawRead {
  uint64_t bytes = 0;
  double seconds = 0;
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};
StatusOr<RawRead> ReadRaw(const std::string& directory, int depth);

// Removes `directory` and everything below it. What is left is overwritten or refused by the next
// open, which then tells.
void RemoveStore(const std::string& directory);

// Whether `needed` bytes are free there for `what`, which `option` makes smaller.
// Errors: kResourceExhausted  kDiskFull: they are not; the message says what to do
Status CheckFreeBytes(const std::string& directory, uint64_t needed, const std::string& what,
                      const std::string& option);
// Bytes that an unprivileged process may still use there.
StatusOr<uint64_t> FreeBytes(const std::string& directory);

}  // namespace holdfast::bench
