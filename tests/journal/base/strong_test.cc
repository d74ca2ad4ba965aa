#include "journal/base/strong.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace holdfast {
namespace {

static_assert(!std::is_convertible_v<uint64_t, Lsn>);
static_assert(!std::is_constructible_v<Lsn, SegmentId>);
static_assert(sizeof(Lsn) == sizeof(uint64_t));

TEST(StrongTest, MovesAlongItsSequence) {
  EXPECT_FALSE(Lsn());
  EXPECT_TRUE(Lsn(1));
  EXPECT_EQ(Lsn(5) + 2, Lsn(7));
  EXPECT_EQ(Lsn(5) - 2, Lsn(3));
  EXPECT_EQ(Lsn(5) - Lsn(2), 3u);
  EXPECT_LT(Lsn(5), Lsn(6));
}

TEST(StrongTest, PrintsAndHashesAsItsNumber) {
  EXPECT_EQ(fmt::format("{} {:04}", Lsn(7), SegmentId(8)), "7 0008");
  const std::unordered_set<Lsn> lsns{Lsn(1), Lsn(1), Lsn(2)};
  EXPECT_EQ(lsns.size(), 2u);
}

}  // namespace
}  // namespace holdfast
