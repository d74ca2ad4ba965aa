#include "journal/base/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace holdfast {
namespace {

TEST(BytesTest, AlignmentAtTheEdges) {
  EXPECT_EQ(AlignUp(0, 8), 0u);
  EXPECT_EQ(AlignUp(1, 8), 8u);
  EXPECT_EQ(AlignUp(8, 8), 8u);
  EXPECT_EQ(AlignDown(7, 8), 0u);
  EXPECT_EQ(AlignDown(8, 8), 8u);
  EXPECT_TRUE(IsAligned(0, 4096));
  EXPECT_FALSE(IsAligned(4095, 4096));
}

TEST(BytesTest, TextAndBytesAreTheSameMemory) {
  const std::string_view text("a\0b", 3);
  EXPECT_EQ(AsBytes(text).size(), 3u);
  EXPECT_EQ(AsText(AsBytes(text)), text);
  EXPECT_EQ(AsText(AsBytes(text)).data(), text.data());
}

TEST(BytesTest, NarrowKeepsTheValue) {
  EXPECT_EQ(Narrow<uint8_t>(255), 255);
  EXPECT_EQ(Narrow<int8_t>(-128), -128);
  EXPECT_EQ(Narrow<uint32_t>(uint64_t{0xffffffff}), 0xffffffffu);
}

TEST(BytesDeathTest, NarrowNeverLosesAValue) {
  EXPECT_DEATH(Narrow<uint8_t>(256), "CHECK");
  EXPECT_DEATH(Narrow<uint8_t>(-1), "CHECK");
  EXPECT_DEATH(Narrow<uint64_t>(int64_t{-1}), "CHECK");
  EXPECT_DEATH(Narrow<int64_t>(~uint64_t{0}), "CHECK");
}

}  // namespace
}  // namespace holdfast
