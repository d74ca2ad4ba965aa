#include "meta/mvcc_types.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using namespace std::string_literals;

TEST(MvccTypesTest, ARefusalIsFoundInItsStatus) {
  for (int i = 1; i <= static_cast<int>(MvccRefusal::kLeaseGiven); ++i) {
    const auto refusal = static_cast<MvccRefusal>(i);
    const Status status = Refuse(refusal);
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(Message(status).empty());
    EXPECT_EQ(RefusalOf(status), refusal);
  }
  EXPECT_EQ(RefusalOf(NotFound("something else")), MvccRefusal::kNone);
  EXPECT_EQ(RefusalOf(absl::OkStatus()), MvccRefusal::kNone);
}

TEST(MvccTypesTest, ARangeHoldsWhatItSays) {
  EXPECT_TRUE(KeyRange::Only("a").Holds("a"));
  EXPECT_FALSE(KeyRange::Only("a").Holds("a\0"s));
  EXPECT_TRUE(KeyRange::Prefix("a").Holds("a"));
  EXPECT_TRUE(KeyRange::Prefix("a").Holds("a\xff\xff"));
  EXPECT_FALSE(KeyRange::Prefix("a").Holds("b"));
  EXPECT_TRUE(KeyRange::Prefix("a\xff").Holds("a\xff\xff"));
  EXPECT_FALSE(KeyRange::Prefix("a\xff").Holds("b"));
  EXPECT_TRUE(KeyRange::Prefix("\xff\xff").Holds("\xff\xff\xff"));
  EXPECT_FALSE(KeyRange::Prefix("\xff\xff").Holds("\xff\xfe"));
  EXPECT_EQ(KeyRange::Prefix(""), KeyRange::All());
  EXPECT_TRUE(KeyRange::All().Holds("\xff"));
}

}  // namespace
}  // namespace holdfast
