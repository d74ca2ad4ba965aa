// SimContent: the bytes of one simulated file.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "journal/base/bytes.h"

namespace holdfast {

// The bytes of one file in one view. Bytes beyond the size are zero.
class SimContent {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  uint64_t size() const { return size_; }
  // Zeros the bytes that a shrink cuts off; what a growth adds stays as written (see TrimToSize).
  void SetSize(uint64_t bytes);
  // Fills the whole buffer, with zeros where nothing was written.
  void Read(uint64_t offset, ByteSpan buffer) const;
  // Does not change the size.
  void Write(uint64_t offset, ByteView bytes);
  bool Equals(uint64_t offset, ByteView bytes) const;
  void TrimToSize();

 private:
  using Page = std::array<std::byte, kPageBytes>;
  std::vector<std::shared_ptr<Page>> pages_;  // Null: zeros. Shared with copies until one writes.
  uint64_t size_ = 0;
};

}  // namespace holdfast
