// SharedBytes: immutable bytes with a count of their readers, in one allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "journal/base/bytes.h"

namespace holdfast {

// A reader copies it under the owner's lock and decodes without it; the last one frees the bytes.
// Threads: any, for different objects.
class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(ByteView bytes) {
    void* memory = ::operator new(sizeof(Block) + bytes.size());
    block_ = new (memory) Block{.readers = 1, .size = bytes.size()};
    if (!bytes.empty()) std::memcpy(Data(), bytes.data(), bytes.size());
  }
  SharedBytes(const SharedBytes& other) : block_(other.block_) {
    if (block_ != nullptr) block_->readers.fetch_add(1, std::memory_order_relaxed);
  }
  SharedBytes(SharedBytes&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  SharedBytes& operator=(SharedBytes other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedBytes() {
    if (block_ != nullptr && block_->readers.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      block_->~Block();
      ::operator delete(block_);
    }
  }

  // False if it holds nothing (which is not the same as holding no bytes).
  explicit operator bool() const { return block_ != nullptr; }
  ByteView view() const {
    if (block_ == nullptr) return {};
    return {Data(), block_->size};
  }

 private:
  struct Block {
    std::atomic<uint64_t> readers;
    uint64_t size;  // of the bytes that follow
  };
  std::byte* Data() const { return reinterpret_cast<std::byte*>(block_) + sizeof(Block); }

  Block* block_ = nullptr;
};

}  // namespace holdfast
