// PageArray: a zeroed array of plain values with pages of its own, or in huge pages with others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>

#include "journal/base/huge_pages.h"

namespace holdfast {

inline constexpr size_t kCacheLine = 64;

// Bytes that are all zero. From kOwnPagesMin on they have pages of the system to themselves:
// exactly so many, taken when they are first written, and given back with the object, whatever else
// lies in the heap. Below, and where the system has no more mappings to give, they come from the
// heap.
class Pages {
 public:
  static constexpr size_t kOwnPagesMin = size_t{32} << 10;

  Pages() = default;
  explicit Pages(size_t bytes);
  // A part of `region` that nothing else was given.
  Pages(std::shared_ptr<HugePages> region, std::byte* begin, size_t bytes)
      : bytes_(begin, Release{.mapped = bytes, .region = std::move(region)}) {}
  std::byte* data() const { return bytes_.get(); }

 private:
  struct Release {
    size_t mapped;                      // bytes; 0: of the heap
    std::shared_ptr<HugePages> region;  // goes with the last of its parts, and its space
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte, Release> bytes_;
};

// Where arrays that are used together and end together get their memory. What is beyond
// kPlainBytes lies one behind the other in regions of huge pages: a look at a table of many
// megabytes costs no miss of the TLB then, and its first use no fault for every 4 KiB. A region
// goes when all that lies in it has gone; until then whole pages of what has gone are given back.
// Below, arrays have memory by themselves: a small store is not to take pages of 2 MiB. Threads:
// one at a time.
class PageSpace {
 public:
  static constexpr size_t kPlainBytes = size_t{4} << 20;  // of all that was taken

  // What does not fill the end of a region is left free, so it is many times what is taken.
  explicit PageSpace(size_t region_bytes) : region_bytes_(region_bytes) {}
  Pages Take(size_t bytes);
  // For who is about to take and use so many bytes, one array after the other. Where that is much,
  // they lie in one region, and a thread touches its pages, from the last to the first: the system
  // clears one page there while another is used here. Ends with the space, or at the next call.
  void Reserve(size_t bytes);

 private:
  // The newest region has so many bytes left then: a new one is made where it has not. False: there
  // is no memory for one.
  bool MakeRoom(size_t bytes);

  size_t region_bytes_;
  uint64_t taken_ = 0;
  std::shared_ptr<HugePages> region_;  // the newest; the arrays in it hold it too
  size_t used_ = 0;                    // of it
  std::jthread toucher_;               // holds the region too
};

// Threads: as an array.
template <typename Value>
class PageArray {
  static_assert(std::is_trivially_copyable_v<Value> && std::is_trivially_destructible_v<Value>);

 public:
  PageArray() = default;
  explicit PageArray(size_t count) : pages_(count * sizeof(Value)) {}
  PageArray(size_t count, PageSpace& space) : pages_(space.Take(count * sizeof(Value))) {}
  Value* get() const { return reinterpret_cast<Value*>(pages_.data()); }
  Value& operator[](size_t at) const { return get()[at]; }

 private:
  Pages pages_;
};

}  // namespace holdfast
