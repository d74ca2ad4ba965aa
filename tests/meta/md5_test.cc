#include "meta/md5.h"

#include <gtest/gtest.h>

#include "meta/backends/nacos.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Of RFC 1321.
TEST(Md5Test, IsThatOfTheStandard) {
  EXPECT_EQ(*Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(*Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(*Md5Hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
}

TEST(Md5Test, NoContentIsWhatAnAbsentConfigIsComparedWith) {
  EXPECT_EQ(*Md5Hex(""), kNacosAbsentMd5);
}

}  // namespace
}  // namespace holdfast
