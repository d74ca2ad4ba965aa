#include "meta/meta_text.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Proves: K2
TEST(MetaTextTest, VersionOneIsReadAsItWasWritten) {
  EXPECT_EQ(EncodeMetaText({}, "10.0.0.1:80"), "1 10.0.0.1:80");
  EXPECT_EQ(EncodeMetaText({7, UINT64_MAX}, "a b"), "1 7 18446744073709551615 a b");
  EXPECT_EQ(EncodeMetaText({0}), "1 0 ");
  const MetaText text = *DecodeMetaText({.key = "k", .value = "1 7 18446744073709551615 a b"}, 2);
  EXPECT_EQ(text.numbers, (std::vector<uint64_t>{7, UINT64_MAX}));
  EXPECT_EQ(text.text, "a b");
  EXPECT_EQ(DecodeMetaText({.key = "k", .value = "1 "}, 0)->text, "");
}

// Proves: K2
TEST(MetaTextTest, ANewerVersionAndDamageAreToldApart) {
  for (const std::string value :
       {"", "1", "x 5 ", "1 5", "1 5x ", "1 18446744073709551616 ", "1  5 ", "1 -5 ", "15"}) {
    EXPECT_FAILS(DecodeMetaText({.key = "k", .value = value}, 1), kDataLoss, kDamage) << value;
  }
  EXPECT_FAILS(DecodeMetaText({.key = "k", .value = "2 5 x"}, 1), kUnimplemented, kNone);
}

}  // namespace
}  // namespace holdfast
