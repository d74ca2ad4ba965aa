#include "journal/base/escape.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

std::string EveryByte() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

TEST(EscapeTest, PlainBytesStandForThemselves) {
  EXPECT_EQ(Escape("aZ9-._~", '%', kUnreserved), "aZ9-._~");
  EXPECT_EQ(Escape("a/b", '%', {"/"}), "a/b");
  EXPECT_EQ(Escape("", '%', kUnreserved), "");
}

TEST(EscapeTest, OthersAreTheirNumbers) {
  EXPECT_EQ(Escape(std::string_view("\0 %\xff", 4), '%', kUnreserved), "%00%20%25%FF");
  EXPECT_EQ(Escape("a_b", '-', {"."}), "a-5Fb");
}

TEST(EscapeTest, WhatWasWrittenIsRead) {
  for (const char mark : {'%', '-'}) {
    const PlainBytes plain{"._"};
    EXPECT_EQ(Unescape(Escape(EveryByte(), mark, plain), mark, plain), EveryByte());
  }
}

TEST(EscapeTest, ThereIsOneSpellingOnly) {
  for (const std::string_view text : {"%61", "%2", "%", "%2f", "%zz", "a b", "%-1", "+"}) {
    EXPECT_EQ(Unescape(text, '%', kUnreserved), std::nullopt) << text;
  }
  EXPECT_EQ(Unescape("%2F", '%', kUnreserved), "/");
}

}  // namespace
}  // namespace holdfast
