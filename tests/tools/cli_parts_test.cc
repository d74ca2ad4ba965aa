#include "tools/cli_parts.h"

#include <gtest/gtest.h>

#include <limits>

namespace holdfast {
namespace {

TEST(CliPartsTest, ANameIsItselfOrBase64) {
  EXPECT_EQ(ParseName("orders"), "orders");
  EXPECT_EQ(ParseName(""), "");
  EXPECT_EQ(ParseName("base64:AP8="), std::string("\0\xff", 2));
  EXPECT_EQ(ParseName("base64:"), "");
  EXPECT_EQ(ParseName("base64:?"), std::nullopt);
}

TEST(CliPartsTest, ANumberIsWholeAndFits) {
  EXPECT_EQ(ParseNumber("0"), 0u);
  EXPECT_EQ(ParseNumber("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  for (const char* word : {"", "-1", "+1", " 1", "1 ", "1.5", "x", "18446744073709551616"}) {
    EXPECT_EQ(ParseNumber(word), std::nullopt) << word;
  }
}

TEST(CliPartsTest, AnAgeHasAUnitAndMayBeInDays) {
  EXPECT_EQ(ParseAge("90s"), absl::Seconds(90));
  EXPECT_EQ(ParseAge("1h30m"), absl::Minutes(90));
  EXPECT_EQ(ParseAge("7d"), absl::Hours(168));
  EXPECT_EQ(ParseAge("1000000d"), absl::Hours(24'000'000));
  EXPECT_EQ(ParseAge("0"), absl::ZeroDuration());
  for (const char* word : {"", "7", "d", "-1h", "-1d", "1.5d", "1000001d", "1d12h", "soon"}) {
    EXPECT_EQ(ParseAge(word), std::nullopt) << word;
  }
}

TEST(CliPartsTest, AWriterIsOpenedAsTheEngineWouldByDefault) {
  const WriterOptions writer = WriterArguments().Fetch();
  EXPECT_EQ(writer.io, EngineOptions().io);
  EXPECT_EQ(writer.durability, EngineOptions().durability);
  EXPECT_EQ(writer.commit_interval, EngineOptions().commit_interval);
  EXPECT_EQ(writer.segment_bytes, EngineOptions().segment_bytes);
  EXPECT_EQ(writer.lock_wait, EngineOptions().lock_wait);
}

}  // namespace
}  // namespace holdfast
