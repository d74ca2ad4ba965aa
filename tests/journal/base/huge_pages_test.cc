#include "journal/base/huge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "journal/base/bytes.h"

namespace holdfast {
namespace {

TEST(HugePagesTest, AreZeroedWholePages) {
  const HugePages pages(kHugePageBytes + 1);
  ASSERT_EQ(pages.size(), 2 * kHugePageBytes);
  EXPECT_TRUE(IsAligned(reinterpret_cast<uintptr_t>(pages.data()), kHugePageBytes));
  EXPECT_TRUE(std::all_of(pages.data(), pages.data() + pages.size(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
  std::fill_n(pages.data(), pages.size(), std::byte{1});
}

TEST(HugePagesTest, AreNullWhereThereIsNoMemory) {
  EXPECT_EQ(HugePages().data(), nullptr);
  EXPECT_EQ(HugePages(0).data(), nullptr);
  EXPECT_EQ(HugePages(uint64_t{1} << 60).data(), nullptr);
  EXPECT_EQ(HugePages(UINT64_MAX).data(), nullptr);
}

TEST(HugePagesTest, MoveWithTheirBytes) {
  HugePages from(1);
  std::byte* const data = from.data();
  *data = std::byte{7};
  HugePages to(1);
  to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(*to.data(), std::byte{7});
  to = HugePages();
  EXPECT_EQ(to.size(), 0u);
}

}  // namespace
}  // namespace holdfast
