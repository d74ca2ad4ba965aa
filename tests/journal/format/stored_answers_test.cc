#include "journal/format/stored_answers.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "journal/base/seeded_rng.h"

namespace holdfast {
namespace {

using Listed = std::vector<std::pair<uint64_t, uint64_t>>;

Listed ListOf(const StoredAnswers& answers) {
  Listed listed;
  ForEachAnswer(answers, [&](Lsn lsn, uint64_t hash) { listed.emplace_back(lsn.value(), hash); });
  return listed;
}

TEST(StoredAnswersTest, WhatIsWrittenIsRead) {
  AnswersWriter writer;
  EXPECT_TRUE(ListOf(writer.stored()).empty());
  writer.Add(Lsn(1), 7);
  writer.Add(Lsn(2), 0);
  writer.Add(Lsn(std::numeric_limits<uint64_t>::max()), ~uint64_t{0});
  const Listed want{{1, 7}, {2, 0}, {std::numeric_limits<uint64_t>::max(), ~uint64_t{0}}};
  EXPECT_EQ(ListOf(writer.stored()), want);
  EXPECT_EQ(writer.stored().count, 3u);
  writer.Clear();
  writer.Add(Lsn(1), 9);
  EXPECT_EQ(ListOf(writer.stored()), (Listed{{1, 9}}));
}

TEST(StoredAnswersTest, ManyTakeAboutNineBytesEach) {
  SeededRng rng(3);
  AnswersWriter writer;
  Lsn lsn(uint64_t{1} << 40);
  Listed want;
  for (int i = 0; i < 1'000; ++i) {
    lsn = lsn + 1 + rng.Below(100);
    want.emplace_back(lsn.value(), rng.Next());
    writer.Add(lsn, want.back().second);
  }
  EXPECT_EQ(ListOf(writer.stored()), want);
  EXPECT_LE(writer.stored().bytes.size(), 9'010u);
}

// Every cut, a distance of zero, and one that goes past the last number.
TEST(StoredAnswersTest, BytesThatAreNoAnswersAreRefused) {
  AnswersWriter writer;
  for (uint64_t lsn = 1; lsn < 6; ++lsn) writer.Add(Lsn(lsn * 300), lsn);
  const auto ok = [](std::string_view bytes, uint64_t count) {
    Decoder in(AsBytes(bytes));
    TakeAnswers(in, count, [](Lsn, uint64_t) {});
    return in.ok();
  };
  const std::string_view bytes = writer.stored().bytes;
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(ok(bytes.substr(0, size), 5));
  EXPECT_TRUE(ok(bytes, 5));
  EXPECT_FALSE(ok(bytes, 6));
  EXPECT_FALSE(ok(bytes, ~uint64_t{0}));
  EXPECT_FALSE(ok(std::string(9, '\0'), 1));
  std::string over;
  Encoder out(over);
  out.Varint(~uint64_t{0});
  out.Fixed(uint64_t{1});
  EXPECT_TRUE(ok(over, 1));
  out.Varint(1);
  out.Fixed(uint64_t{1});
  EXPECT_FALSE(ok(over, 2));
}

}  // namespace
}  // namespace holdfast
