#include "meta/http/message.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(HttpMessageTest, NamesOfHeadersAreAlikeInBothCases) {
  const HttpHeaders headers = {{"X-First", "1"}, {"x-FIRST", "2"}, {"Second", "3"}};
  ASSERT_NE(FindHeader(headers, "x-first"), nullptr);
  EXPECT_EQ(*FindHeader(headers, "x-first"), "1");
  EXPECT_EQ(FindHeader(headers, "x-firs"), nullptr);
}

}  // namespace
}  // namespace holdfast
