// KeyArena: many short byte strings, each named by 32 bits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "index/page_array.h"
#include "journal/base/bytes.h"

namespace holdfast {

// A key takes its length + 2 bytes, rounded up to 4. Space of removed keys is used again for keys
// of the same rounded length; it is given back when the arena goes.
// Threads: one at a time.
class KeyArena {
 public:
  using Handle = uint32_t;
  static constexpr size_t kKeyBytesMax = 65'535;
  // Where a cautious owner stops adding: every handle can still be made for one more batch.
  static constexpr uint64_t kBytesMax = uint64_t{15} << 30;

  // For who is about to add so many keys of `key_bytes` each.
  void Reserve(uint64_t keys, size_t key_bytes) {
    space_.Reserve(keys * GranulesFor(key_bytes) * kGranuleBytes);
  }

  // Copies `key`.
  // Needs: key.size() <= kKeyBytesMax, bytes() < kBytesMax
  Handle Add(std::string_view key);
  void Remove(Handle handle);
  std::string_view Get(Handle handle) const {
    const std::byte* place = At(handle);
    uint16_t size;
    std::memcpy(&size, place, sizeof size);
    return {reinterpret_cast<const char*>(place + sizeof size), size};
  }

  // Taken from the system so far.
  uint64_t bytes() const {
    return chunks_.empty() ? 0 : (chunks_.size() - 1) * kChunkBytes + used_ * kGranuleBytes;
  }

 private:
  static constexpr size_t kGranuleBytes = 4;
  static constexpr size_t kGranulesPerChunk = 524'288;  // its pages are taken as they are used
  static constexpr size_t kChunkBytes = kGranulesPerChunk * kGranuleBytes;
  static_assert(kKeyBytesMax + sizeof(uint16_t) + kGranuleBytes <= kChunkBytes);

  static size_t GranulesFor(size_t key_bytes) {
    return (key_bytes + sizeof(uint16_t) + kGranuleBytes - 1) / kGranuleBytes;
  }
  std::byte* At(Handle handle) const {
    return chunks_[handle / kGranulesPerChunk].get() + (handle % kGranulesPerChunk) * kGranuleBytes;
  }

  PageSpace space_{16 * kChunkBytes};
  std::vector<PageArray<std::byte>> chunks_;
  size_t used_ =
      kGranulesPerChunk;        // granules of the newest chunk; a first one is made when needed
  std::vector<uint32_t> free_;  // by size in granules: first free handle + 1; 0: none
};

}  // namespace holdfast
