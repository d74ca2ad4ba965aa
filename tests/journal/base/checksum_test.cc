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
