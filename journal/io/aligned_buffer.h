// Memory that O_DIRECT accepts.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "journal/base/bytes.h"

namespace holdfast {

// Strictest alignment that any file of any storage asks for.
inline constexpr uint64_t kIoAlignment = 4096;

// Zeroed bytes at a multiple of kIoAlignment; the size is rounded up to one. Every page is written
// once, so a device never waits for the first touch.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(uint64_t bytes)
      : size_(AlignUp(bytes, kIoAlignment)),
        data_(static_cast<std::byte*>(std::aligned_alloc(kIoAlignment, size_))) {
    CHECK(size_ == 0 || data_ != nullptr);
    if (size_ > 0) std::memset(data_.get(), 0, size_);
  }

  std::byte* data() { return data_.get(); }
  uint64_t size() const { return size_; }
  ByteSpan span() { return {data_.get(), size_}; }
  ByteView view() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  uint64_t size_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace holdfast
