// Memory that O_DIRECT accepts.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "journal/base/huge_pages.h"
#include "journal/base/status.h"

namespace holdfast {

// Strictest alignment that any file of any storage asks for.
inline constexpr uint64_t kIoAlignment = 4096;

// Bytes at a multiple of kIoAlignment; the size is rounded up to one. They are zeros, and every
// page was written once, so a device never waits for the first touch. From 2 MiB on they lie in
// huge pages.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Without memory for it the process ends: for where nothing could be told or undone.
  explicit AlignedBuffer(uint64_t bytes) {
    Allocate(bytes);
    CHECK(size_ == 0 || Data() != nullptr);
  }
  // For who writes all that a device gets: with any bytes in it, and pages take memory only when
  // they are written. Without memory for it the process ends.
  static AlignedBuffer Untouched(uint64_t bytes) {
    AlignedBuffer buffer;
    buffer.Map(bytes);
    CHECK(buffer.size_ == 0 || buffer.Data() != nullptr);
    return buffer;
  }
  // Errors: kResourceExhausted  kLimit: no memory for it
  static StatusOr<AlignedBuffer> Make(uint64_t bytes) {
    AlignedBuffer buffer;
    buffer.Allocate(bytes);
    if (buffer.size_ == 0 || buffer.Data() != nullptr) return buffer;
    return Exhausted(Detail::kLimit, "no memory for a buffer of {} bytes", bytes);
  }

  std::byte* data() { return Data(); }
  uint64_t size() const { return size_; }
  ByteSpan span() { return {Data(), size_}; }
  ByteView view() const { return {Data(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  void Allocate(uint64_t bytes) {
    Map(bytes);
    if (size_ > 0 && Data() != nullptr) std::memset(Data(), 0, size_);
  }
  void Map(uint64_t bytes) {
    size_ = AlignUp(bytes, kIoAlignment);
    if (size_ >= kHugePageBytes) {
      large_ = HugePages(size_);
    } else {
      small_.reset(static_cast<std::byte*>(std::aligned_alloc(kIoAlignment, size_)));
    }
  }
  std::byte* Data() const { return small_ != nullptr ? small_.get() : large_.data(); }

  uint64_t size_ = 0;
  std::unique_ptr<std::byte, Free> small_;  // one of the two
  HugePages large_;
};

}  // namespace holdfast
