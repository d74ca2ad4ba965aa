// Memory that O_DIRECT accepts.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "journal/base/status.h"

namespace holdfast {

// Strictest alignment that any file of any storage asks for.
inline constexpr uint64_t kIoAlignment = 4096;

// Zeroed bytes at a multiple of kIoAlignment; the size is rounded up to one. Every page is written
// once, so a device never waits for the first touch.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Without memory for it the process ends: for where nothing could be told or undone.
  explicit AlignedBuffer(uint64_t bytes) {
    Allocate(bytes);
    CHECK(size_ == 0 || data_ != nullptr);
  }
  // Errors: kResourceExhausted  kLimit: no memory for it
  static StatusOr<AlignedBuffer> Make(uint64_t bytes) {
    AlignedBuffer buffer;
    buffer.Allocate(bytes);
    if (buffer.size_ == 0 || buffer.data_ != nullptr) return buffer;
    return Exhausted(Detail::kLimit, "no memory for a buffer of {} bytes", bytes);
  }

  std::byte* data() { return data_.get(); }
  uint64_t size() const { return size_; }
  ByteSpan span() { return {data_.get(), size_}; }
  ByteView view() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  void Allocate(uint64_t bytes) {
    size_ = AlignUp(bytes, kIoAlignment);
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kIoAlignment, size_)));
    if (size_ > 0 && data_ != nullptr) std::memset(data_.get(), 0, size_);
  }

  uint64_t size_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace holdfast
