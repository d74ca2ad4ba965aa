#include "index/page_array.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "journal/base/bytes.h"

namespace holdfast {
namespace {

// Leaves every byte as it is, whoever writes there meanwhile. A system that knows no such call does
// nothing.
void TouchBackwards(std::byte* begin, std::byte* end, const std::stop_token& stop) {
  const size_t pages = AlignUp(end - begin, kHugePageBytes) / kHugePageBytes;
  for (size_t left = pages; left > 0 && !stop.stop_requested(); --left) {
    std::byte* const page = begin + (left - 1) * kHugePageBytes;
    madvise(page, std::min<size_t>(kHugePageBytes, end - page), MADV_POPULATE_WRITE);
  }
}

}  // namespace

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

bool PageSpace::MakeRoom(size_t bytes) {
  if (region_ != nullptr && region_->size() - used_ >= bytes) return true;
  auto region = std::make_shared<HugePages>(std::max(region_bytes_, bytes));
  if (region->data() == nullptr) return false;
  region_ = std::move(region);
  used_ = 0;
  return true;
}

void PageSpace::Reserve(size_t bytes) {
  if (bytes <= kPlainBytes || !MakeRoom(bytes)) return;
  taken_ = std::max<uint64_t>(taken_, kPlainBytes);
  std::byte* const begin = region_->data() + AlignDown(used_, kHugePageBytes);
  std::byte* const end = region_->data() + used_ + bytes;
  try {
    toucher_ = std::jthread([region = region_, begin, end](const std::stop_token& stop) {
      TouchBackwards(begin, end, stop);
    });
  } catch (const std::system_error&) {
    return;  // No more threads to be had: who uses the pages first waits for them.
  }
}

Pages PageSpace::Take(size_t bytes) {
  taken_ += bytes;
  if (bytes < Pages::kOwnPagesMin || taken_ <= kPlainBytes) return Pages(bytes);
  const size_t whole = AlignUp(bytes, kCacheLine);
  if (!MakeRoom(whole)) return Pages(bytes);
  std::byte* const begin = region_->data() + used_;
  used_ += whole;
  return Pages(region_, begin, bytes);
}

}  // namespace holdfast
