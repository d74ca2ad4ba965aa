#include "index/page_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

// On both sides of where an array gets pages of its own.
TEST(PageArrayTest, EveryArrayBeginsWithZerosAndKeepsWhatIsWritten) {
  for (const size_t count : {size_t{1}, size_t{100}, Pages::kOwnPagesMin / 8 - 1,
                             Pages::kOwnPagesMin / 8, size_t{100'000}}) {
    SCOPED_TRACE(count);
    for (int round = 0; round < 3; ++round) {  // what was given back does not come back as it was
      const PageArray<uint64_t> array(count);
      ASSERT_TRUE(std::all_of(array.get(), array.get() + count, [](uint64_t v) { return v == 0; }));
      for (size_t at = 0; at < count; ++at) array[at] = ~at;
      for (size_t at = 0; at < count; ++at) ASSERT_EQ(array[at], ~at);
    }
  }
}

TEST(PageArrayTest, AnArrayThatIsMovedKeepsItsPlace) {
  for (const size_t count : {size_t{16}, size_t{100'000}}) {
    PageArray<uint64_t> from(count);
    from[count - 1] = 7;
    const uint64_t* const place = from.get();
    PageArray<uint64_t> to(1);
    to = std::move(from);
    EXPECT_EQ(to.get(), place);
    EXPECT_EQ(to[count - 1], 7u);
  }
}

// On both sides of where a space begins with huge pages, and of the end of a region.
TEST(PageSpaceTest, ArraysBeginWithZerosAndDoNotMeet) {
  constexpr size_t kCount = Pages::kOwnPagesMin / 8 + 1;
  PageSpace space(size_t{4} << 20);
  for (int round = 0; round < 2; ++round) {  // what was given back does not come back as it was
    std::vector<PageArray<uint64_t>> arrays;
    for (uint64_t number = 0; number < 400; ++number) {
      const PageArray<uint64_t>& array = arrays.emplace_back(kCount, space);
      ASSERT_TRUE(
          std::all_of(array.get(), array.get() + kCount, [](uint64_t v) { return v == 0; }));
      std::fill_n(array.get(), kCount, number + 1);
    }
    for (uint64_t number = 0; number < 400; ++number) {
      const uint64_t* const array = arrays[number].get();
      ASSERT_TRUE(std::all_of(array, array + kCount, [&](uint64_t v) { return v == number + 1; }));
    }
  }
}

TEST(PageSpaceTest, WhatGoesTakesNothingOfItsNeighbours) {
  constexpr size_t kCount = Pages::kOwnPagesMin / 8 + 1;
  PageSpace space(size_t{4} << 20);
  std::vector<PageArray<uint64_t>> arrays;
  for (uint64_t number = 0; number < 400; ++number) {
    std::fill_n(arrays.emplace_back(kCount, space).get(), kCount, number + 1);
  }
  for (uint64_t number = 0; number < 400; number += 2) arrays[number] = PageArray<uint64_t>();
  for (uint64_t number = 1; number < 400; number += 2) {
    const uint64_t* const array = arrays[number].get();
    ASSERT_TRUE(std::all_of(array, array + kCount, [&](uint64_t v) { return v == number + 1; }));
  }
}

TEST(PageSpaceTest, LargeArraysLieOneBehindTheOtherOnceThereAreMany) {
  constexpr size_t kCount = size_t{100} << 10;
  PageSpace space(size_t{16} << 20);
  const PageArray<std::byte> plain(PageSpace::kPlainBytes, space);
  const PageArray<std::byte> first(kCount, space), second(kCount, space);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.get()) % kHugePageBytes, 0u);
  EXPECT_EQ(second.get(), first.get() + kCount);
  const PageArray<std::byte> larger(size_t{20} << 20, space);
  larger[(size_t{20} << 20) - 1] = std::byte{1};
}

// The thread that touches pages must leave alone what is written there meanwhile, and may outlast
// neither the space nor the memory.
TEST(PageSpaceTest, WhatWasReservedIsTouchedWhileItIsUsed) {
  constexpr size_t kBytes = size_t{20} << 20, kCount = size_t{100} << 10;
  for (const bool all : {true, false}) {
    PageSpace space(size_t{4} << 20);
    space.Reserve(PageSpace::kPlainBytes);  // not worth it
    space.Reserve(kBytes);
    std::vector<PageArray<uint64_t>> arrays;
    for (uint64_t number = 0; number < (all ? kBytes / kCount : 1); ++number) {
      const PageArray<uint64_t>& array = arrays.emplace_back(kCount / 8, space);
      if (number > 0) {
        EXPECT_EQ(array.get(), arrays[number - 1].get() + kCount / 8);
      }
      ASSERT_TRUE(
          std::all_of(array.get(), array.get() + kCount / 8, [](uint64_t v) { return v == 0; }));
      std::fill_n(array.get(), kCount / 8, number + 1);
    }
    space.Reserve(2 * kBytes);  // the first thread ends
    space = PageSpace(size_t{4} << 20);
    for (uint64_t number = 0; number < arrays.size(); ++number) {
      const uint64_t* const array = arrays[number].get();
      ASSERT_TRUE(
          std::all_of(array, array + kCount / 8, [&](uint64_t v) { return v == number + 1; }));
    }
  }
}

TEST(PageSpaceTest, AnArrayOutlivesItsSpace) {
  PageArray<uint64_t> array;
  {
    PageSpace space(size_t{4} << 20);
    const PageArray<uint64_t> plain(PageSpace::kPlainBytes / 8, space);
    array = PageArray<uint64_t>(100'000, space);
  }
  array[99'999] = 7;
  EXPECT_EQ(array[99'999], 7u);
}

}  // namespace
}  // namespace holdfast
