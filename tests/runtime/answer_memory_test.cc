#include "runtime/answer_memory.h"

#include <gtest/gtest.h>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

TEST(AnswerMemoryTest, NothingIsKnownAtFirst) {
  AnswerMemory memory(2);
  EXPECT_FALSE(memory.Knows("", ""));
  EXPECT_FALSE(memory.Knows("id", "id"));
  EXPECT_EQ(memory.size(), 0u);
}

// Proves: A3
TEST(AnswerMemoryTest, KnowsAnIdWithItsOwnKeyOnly) {
  AnswerMemory memory(10);
  memory.Remember("id-1", "key-1");
  memory.Remember("id-2", "key-2");
  EXPECT_TRUE(memory.Knows("id-1", "key-1"));
  EXPECT_TRUE(memory.Knows("id-2", "key-2"));
  EXPECT_FALSE(memory.Knows("id-1", "key-2"));
  EXPECT_FALSE(memory.Knows("id-1", ""));
  EXPECT_FALSE(memory.Knows("id-1", "key-"));
  EXPECT_FALSE(memory.Knows("key-1", "id-1"));
  EXPECT_FALSE(memory.Knows("id-", "key-1"));
}

TEST(AnswerMemoryTest, IdsAndKeysAreBytes) {
  AnswerMemory memory(10);
  const std::string nul(1, '\0'), two(2, '\0');
  memory.Remember("", "empty");
  memory.Remember(nul, "");
  memory.Remember(two, "\xff/#|");
  EXPECT_TRUE(memory.Knows("", "empty"));
  EXPECT_TRUE(memory.Knows(nul, ""));
  EXPECT_FALSE(memory.Knows(nul, nul));
  EXPECT_TRUE(memory.Knows(two, "\xff/#|"));
  EXPECT_EQ(memory.size(), 3u);
}

TEST(AnswerMemoryTest, TheFirstKeyOfAnIdStays) {
  AnswerMemory memory(2);
  memory.Remember("a", "first");
  memory.Remember("a", "second");
  EXPECT_EQ(memory.size(), 1u);
  EXPECT_TRUE(memory.Knows("a", "first"));
  EXPECT_FALSE(memory.Knows("a", "second"));
  // It took the room of one, and a repeated one makes it no newer.
  memory.Remember("b", "");
  memory.Remember("a", "first");
  EXPECT_TRUE(memory.Knows("a", "first"));
  EXPECT_TRUE(memory.Knows("b", ""));
  memory.Remember("c", "");
  EXPECT_FALSE(memory.Knows("a", "first"));
  EXPECT_TRUE(memory.Knows("b", ""));
  EXPECT_TRUE(memory.Knows("c", ""));
  EXPECT_EQ(memory.size(), 2u);
}

TEST(AnswerMemoryTest, WhatWasForgottenCanBeRememberedAgain) {
  AnswerMemory memory(1);
  memory.Remember("a", "1");
  memory.Remember("b", "2");
  memory.Remember("a", "3");
  EXPECT_TRUE(memory.Knows("a", "3"));
  EXPECT_FALSE(memory.Knows("a", "1"));
  EXPECT_FALSE(memory.Knows("b", "2"));
}

TEST(AnswerMemoryTest, WhoMayRememberNothingKnowsNothing) {
  AnswerMemory memory(0);
  for (int i = 0; i < 3; ++i) {
    memory.Remember("a", "a");
    EXPECT_FALSE(memory.Knows("a", "a"));
    EXPECT_EQ(memory.size(), 0u);
  }
}

TEST(AnswerMemoryTest, TheNewestAreKnownAndNoMore) {
  for (const uint64_t seed : Seeds(10)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    const uint64_t answers_max = 1 + rng.Below(40);
    AnswerMemory memory(answers_max);
    std::deque<std::pair<std::string, std::string>> model;  // newest last
    const auto knows = [&](const std::string& id) {
      return std::any_of(model.begin(), model.end(),
                         [&](const auto& one) { return one.first == id; });
    };
    for (int i = 0; i < 2'000; ++i) {
      const std::string id = std::to_string(rng.Below(60)), key = std::to_string(rng.Below(3));
      memory.Remember(id, key);
      if (!knows(id)) model.emplace_back(id, key);
      if (model.size() > answers_max) model.pop_front();
      ASSERT_EQ(memory.size(), model.size());
      for (const auto& [known, with] : model) {
        ASSERT_TRUE(memory.Knows(known, with)) << known;
        ASSERT_FALSE(memory.Knows(known, with + "0")) << known;
      }
      const std::string other = std::to_string(rng.Below(60));
      const bool any =
          memory.Knows(other, "0") || memory.Knows(other, "1") || memory.Knows(other, "2");
      ASSERT_EQ(any, knows(other)) << other;
    }
  }
}

}  // namespace
}  // namespace holdfast
