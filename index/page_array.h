// PageArray: a zeroed array of plain values with pages of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace holdfast {

// Bytes that are all zero. From kOwnPagesMin on they have pages of the system to themselves:
// exactly so many, taken when they are first written, and given back with the object, whatever else
// lies in the heap. Below, and where the system has no more mappings to give, they come from the
// heap.
class Pages {
 public:
  static constexpr size_t kOwnPagesMin = size_t{32} << 10;

  Pages() = default;
  explicit Pages(size_t bytes);
  std::byte* data() const { return bytes_.get(); }

 private:
  struct Release {
    size_t mapped;  // bytes; 0: of the heap
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Release> bytes_;
};

// Threads: as an array.
template <typename Value>
class PageArray {
  static_assert(std::is_trivially_copyable_v<Value> && std::is_trivially_destructible_v<Value>);

 public:
  PageArray() = default;
  explicit PageArray(size_t count) : pages_(count * sizeof(Value)) {}
  Value* get() const { return reinterpret_cast<Value*>(pages_.data()); }
  Value& operator[](size_t at) const { return get()[at]; }

 private:
  Pages pages_;
};

}  // namespace holdfast
