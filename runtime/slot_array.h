// SlotArray: values that keep their place until they are given back, named by small numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace holdfast {

using Slot = uint32_t;  // given out again after it was given back
inline constexpr uint32_t kNone = ~uint32_t{0};

// Memory is taken in pieces of a thousand values and goes with the array. Threads: one at a time.
template <typename Value>
class SlotArray {
 public:
  // A slot whose value is as its last owner left it, or new.
  Slot Take() {
    if (!free_.empty()) {
      const Slot slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (used_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<Value[]>(kChunk));
    return static_cast<Slot>(used_++);
  }
  // Needs: it was taken, and not given back since.
  void GiveBack(Slot slot) { free_.push_back(slot); }

  // Slots that were ever taken: all that may hold a value are below.
  size_t size() const { return used_; }

  Value& operator[](Slot slot) { return chunks_[slot / kChunk][slot % kChunk]; }
  const Value& operator[](Slot slot) const { return chunks_[slot / kChunk][slot % kChunk]; }

 private:
  static constexpr size_t kChunk = 1'024;

  std::vector<std::unique_ptr<Value[]>> chunks_;
  size_t used_ = 0;
  std::vector<Slot> free_;
};

}  // namespace holdfast
