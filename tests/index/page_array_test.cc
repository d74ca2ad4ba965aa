#include "index/page_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

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

}  // namespace
}  // namespace holdfast
