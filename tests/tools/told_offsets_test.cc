#include "tools/told_offsets.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(ToldOffsetsTest, KnowsWhatItWasTold) {
  ToldOffsets told;
  EXPECT_FALSE(told.Has(0));
  for (const uint64_t offset : {3, 0, 5, 3}) told.Add(offset);
  for (uint64_t offset = 0; offset < 8; ++offset) {
    EXPECT_EQ(told.Has(offset), offset == 0 || offset == 3 || offset == 5) << offset;
  }
}

TEST(ToldOffsetsTest, GoesThroughItsText) {
  ToldOffsets told;
  EXPECT_EQ(told.Text(), "0");
  for (const uint64_t offset : {0, 1, 2}) told.Add(offset);
  EXPECT_EQ(told.Text(), "3");
  for (const uint64_t offset : {4, 7}) told.Add(offset);
  EXPECT_EQ(told.Text(), "8:3,5,6");
  for (const char* text : {"0", "3", "8:3,5,6"}) {
    ASSERT_OK_AND_ASSIGN(const ToldOffsets parsed, ToldOffsets::Parse(text));
    EXPECT_EQ(parsed.Text(), text);
  }
  ASSERT_OK_AND_ASSIGN(const ToldOffsets parsed, ToldOffsets::Parse(told.Text()));
  EXPECT_EQ(parsed, told);
}

TEST(ToldOffsetsTest, NonsenseIsRefused) {
  for (const char* text : {"", "x", "3,1", "3:", "3:1;2", "3:1,", "-1", "3:1:2"}) {
    EXPECT_FALSE(ToldOffsets::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace holdfast
