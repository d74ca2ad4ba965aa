#include "journal/base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

// The published values of XXH3-64: a library that gives others would not read our stores.
TEST(ChecksumTest, IsXxh3) {
  EXPECT_EQ(Checksum({}, 0), 0x2d06800538d394c2u);
  EXPECT_EQ(Checksum(AsBytes("a"), 0), 0xe6c632b61e964e1fu);
}

// The same ones where the bytes are many, and go through vectors as wide as the processor has.
TEST(ChecksumTest, IsXxh3OfManyBytes) {
  std::string bytes;
  for (int i = 0; i < 65'543; ++i) bytes += static_cast<char>('a' + i % 23);
  const auto first = [&](size_t count) { return Checksum(AsBytes(bytes).first(count), 42); };
  EXPECT_EQ(first(241), 0x440d5157e6d03690u);
  EXPECT_EQ(first(1'024), 0x9232f986406af199u);
  EXPECT_EQ(first(1'025), 0x87ee03c7952f8a5cu);
  EXPECT_EQ(first(65'543), 0x50f479c547055dau);
}

TEST(ChecksumTest, DependsOnSeedAndEveryByte) {
  std::string bytes(300, 'x');
  const uint64_t check = Checksum(AsBytes(bytes), 1);
  EXPECT_NE(check, Checksum(AsBytes(bytes), 2));
  for (char& byte : bytes) {
    byte = 'y';
    EXPECT_NE(check, Checksum(AsBytes(bytes), 1));
    byte = 'x';
  }
}

}  // namespace
}  // namespace holdfast
