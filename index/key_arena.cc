#include "index/key_arena.h"

namespace holdfast {

KeyArena::Handle KeyArena::Add(std::string_view key) {
  CHECK(key.size() <= kKeyBytesMax);
  const size_t granules = GranulesFor(key.size());
  Handle handle;
  if (granules < free_.size() && free_[granules] != 0) {
    handle = free_[granules] - 1;
    std::memcpy(&free_[granules], At(handle), sizeof(uint32_t));  // The next free one.
  } else {
    if (used_ + granules > kGranulesPerChunk) {
      chunks_.emplace_back(kChunkBytes, space_);
      CHECK(chunks_.size() < UINT32_MAX / kGranulesPerChunk);
      used_ = 0;
    }
    handle = static_cast<Handle>((chunks_.size() - 1) * kGranulesPerChunk + used_);
    used_ += granules;
  }
  std::byte* place = At(handle);
  const uint16_t size = static_cast<uint16_t>(key.size());
  std::memcpy(place, &size, sizeof size);
  if (!key.empty()) std::memcpy(place + sizeof size, key.data(), key.size());
  return handle;
}

void KeyArena::Remove(Handle handle) {
  const size_t granules = GranulesFor(Get(handle).size());
  if (granules >= free_.size()) free_.resize(granules + 1);
  std::memcpy(At(handle), &free_[granules], sizeof(uint32_t));
  free_[granules] = handle + 1;
}

}  // namespace holdfast
