#include "journal/base/huge_pages.h"

#include <sys/mman.h>

#include "journal/base/bytes.h"

namespace holdfast {

// The system maps from any page on: what stands out at both ends goes back.
HugePages::HugePages(uint64_t bytes) {
  if (bytes == 0 || bytes > UINT64_MAX / 2) return;
  const uint64_t size = AlignUp(bytes, kHugePageBytes);
  void* const mapped = mmap(nullptr, size + kHugePageBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return;
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uint64_t before = AlignUp(address, kHugePageBytes) - address;
  data_ = begin + before;
  size_ = size;
  if (before > 0) munmap(begin, before);
  munmap(data_ + size, kHugePageBytes - before);
  (void)madvise(data_, size, MADV_HUGEPAGE);  // a wish: the memory is there without
}

HugePages::~HugePages() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace holdfast
