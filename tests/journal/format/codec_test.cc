#include "journal/format/codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace holdfast {
namespace {

std::string VarintOf(uint64_t value) {
  std::string out;
  Encoder(out).Varint(value);
  return out;
}

std::vector<uint64_t> Edges() {
  std::vector<uint64_t> edges{0};
  for (int bits = 0; bits < 64; ++bits) {
    const uint64_t power = uint64_t{1} << bits;
    edges.insert(edges.end(), {power - 1, power, power + 1});
  }
  edges.push_back(~uint64_t{0});
  return edges;
}

TEST(CodecTest, VarintsRoundTripAtEveryEdge) {
  for (const uint64_t value : Edges()) {
    const std::string bytes = VarintOf(value);
    Decoder in(AsBytes(bytes));
    EXPECT_EQ(in.Varint(), value);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.remaining(), 0u);
  }
  EXPECT_EQ(VarintOf(127).size(), 1u);
  EXPECT_EQ(VarintOf(128).size(), 2u);
  EXPECT_EQ(VarintOf(~uint64_t{0}).size(), 10u);
}

TEST(CodecTest, SignedRoundTripsAtEveryEdge) {
  for (const uint64_t raw : Edges()) {
    const int64_t value = static_cast<int64_t>(raw);
    std::string bytes;
    Encoder(bytes).Signed(value);
    Decoder in(AsBytes(bytes));
    EXPECT_EQ(in.Signed(), value);
    EXPECT_TRUE(in.ok());
  }
}

TEST(CodecTest, ACutVarintFails) {
  for (const uint64_t value : Edges()) {
    const std::string bytes = VarintOf(value);
    for (size_t size = 0; size < bytes.size(); ++size) {
      Decoder in(AsBytes(std::string_view(bytes).substr(0, size)));
      EXPECT_EQ(in.Varint(), 0u);
      EXPECT_FALSE(in.ok());
    }
  }
}

TEST(CodecTest, OnlyTheShortestVarintIsTaken) {
  const std::string_view padded[] = {
      std::string_view("\x80\x00", 2), std::string_view("\xff\x80\x00", 3),
      std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10),
      std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11),
      std::string_view("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12)};
  for (const std::string_view bytes : padded) {
    Decoder in(AsBytes(bytes));
    EXPECT_EQ(in.Varint(), 0u);
    EXPECT_FALSE(in.ok());
  }
}

TEST(CodecTest, BytesNeverReachBeyondTheirInput) {
  for (const uint64_t size : {uint64_t{4}, uint64_t{1} << 32, ~uint64_t{0}}) {
    const std::string bytes = VarintOf(size) + "abc";
    Decoder in(AsBytes(bytes));
    EXPECT_TRUE(in.Bytes().empty());
    EXPECT_FALSE(in.ok());
  }
}

TEST(CodecTest, AfterAFailureNothingIsRead) {
  std::string bytes;
  Encoder out(bytes);
  out.Fixed(uint32_t{7});
  Decoder in(AsBytes(bytes));
  EXPECT_EQ(in.Fixed<uint64_t>(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.Fixed<uint32_t>(), 0u);
  EXPECT_TRUE(in.Take(0).empty());
  EXPECT_FALSE(in.ok());
}

TEST(CodecTest, FixedIsLittleEndian) {
  std::string bytes;
  Encoder(bytes).Fixed(uint32_t{0x01020304});
  EXPECT_EQ(bytes, "\x04\x03\x02\x01");
}

}  // namespace
}  // namespace holdfast
