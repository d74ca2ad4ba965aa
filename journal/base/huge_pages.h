// HugePages: large memory straight from the system, in pages of 2 MiB where it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace holdfast {

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// Zeroed bytes from a multiple of 2 MiB on. In pages of 4 KiB nearly every look at a large table
// misses the TLB, and a read or write of 1 MiB is cut into 256 pieces, which costs some devices
// more than the bytes do. Where the system has no large pages it is memory like any other.
// Memory: what was touched, in whole pages; given back to the system in the end.
class HugePages {
 public:
  HugePages() = default;
  // `bytes` is rounded up to whole pages. Null if there is no memory for them.
  explicit HugePages(uint64_t bytes);
  HugePages(HugePages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  HugePages& operator=(HugePages other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~HugePages();

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace holdfast
