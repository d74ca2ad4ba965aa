#include "index/page_array.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "journal/base/bytes.h"

namespace holdfast {

Pages::Pages(size_t bytes) {
  if (bytes >= kOwnPagesMin) {
    void* const pages =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED) {
      bytes_ = {static_cast<std::byte*>(pages), Release{.mapped = bytes, .region = nullptr}};
      return;
    }
  }
  bytes_ = {new std::byte[bytes](), Release{.mapped = 0, .region = nullptr}};
}

void Pages::Release::operator()(std::byte* bytes) const {
  if (region != nullptr) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const auto begin = AlignUp(reinterpret_cast<uintptr_t>(bytes), page);
    const auto end = AlignDown(reinterpret_cast<uintptr_t>(bytes) + mapped, page);
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  } else if (mapped > 0) {
    munmap(bytes, mapped);
  } else {
    delete[] bytes;
  }
}

Pages PageSpace::Take(size_t bytes) {
  constexpr size_t kCacheLine = 64;
  taken_ += bytes;
  if (bytes < Pages::kOwnPagesMin || taken_ <= kPlainBytes) return Pages(bytes);
  const size_t whole = AlignUp(bytes, kCacheLine);
  if (region_ == nullptr || region_->size() - used_ < whole) {
    auto region = std::make_shared<HugePages>(std::max(region_bytes_, whole));
    if (region->data() == nullptr) return Pages(bytes);
    region_ = std::move(region);
    used_ = 0;
  }
  std::byte* const begin = region_->data() + used_;
  used_ += whole;
  return Pages(region_, begin, bytes);
}

}  // namespace holdfast
