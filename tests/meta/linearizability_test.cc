// The checker itself: it must see what is wrong.
#include "tests/meta/linearizability.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using Kind = KeyOperation::Kind;
using Outcome = KeyOperation::Outcome;

KeyOperation Read(std::optional<std::string> seen, uint64_t called, uint64_t answered) {
  return {.kind = Kind::kRead, .seen = std::move(seen), .called = called, .answered = answered};
}
KeyOperation Write(std::string made, uint64_t called, uint64_t answered) {
  return {.kind = Kind::kWrite, .made = std::move(made), .called = called, .answered = answered};
}
KeyOperation WriteIf(std::optional<std::string> expected, std::string made, Outcome outcome,
                     uint64_t called, uint64_t answered) {
  return {.kind = Kind::kWriteIfAt,
          .outcome = outcome,
          .made = std::move(made),
          .expected = std::move(expected),
          .called = called,
          .answered = answered};
}
KeyOperation Delete(Outcome outcome, uint64_t called, uint64_t answered) {
  return {.kind = Kind::kDelete, .outcome = outcome, .called = called, .answered = answered};
}
KeyOperation Unknown(KeyOperation operation) {
  operation.outcome = Outcome::kUnknown;
  return operation;
}

TEST(LinearizabilityTest, OneAfterTheOther) {
  EXPECT_TRUE(IsLinearizable({}));
  EXPECT_TRUE(IsLinearizable({Read(std::nullopt, 1, 2), Write("a", 3, 4), Read("a", 5, 6)}));
  EXPECT_FALSE(IsLinearizable({Write("a", 1, 2), Read(std::nullopt, 3, 4)}));
  EXPECT_FALSE(IsLinearizable({Write("a", 1, 2), Write("b", 3, 4), Read("a", 5, 6)}));
  EXPECT_FALSE(IsLinearizable({Read("a", 1, 2)}));
  EXPECT_TRUE(IsLinearizable({Read("a", 1, 2)}, "a"));
}

TEST(LinearizabilityTest, WhatOverlapsMayComeInAnyOrder) {
  EXPECT_TRUE(IsLinearizable({Write("a", 1, 10), Read(std::nullopt, 2, 3), Read("a", 4, 5)}));
  // Once it was seen, it stays.
  EXPECT_FALSE(IsLinearizable({Write("a", 1, 10), Read("a", 2, 3), Read(std::nullopt, 4, 5)}));
  EXPECT_TRUE(IsLinearizable({Write("a", 1, 4), Write("b", 2, 3), Read("a", 5, 6)}));
  EXPECT_TRUE(IsLinearizable({Write("a", 1, 4), Write("b", 2, 3), Read("b", 5, 6)}));
  // Two readers may not disagree for ever.
  EXPECT_FALSE(
      IsLinearizable({Write("a", 1, 4), Write("b", 2, 3), Read("a", 5, 6), Read("b", 7, 8)}));
}

TEST(LinearizabilityTest, OfTwoThatCompareOneWins) {
  const auto won = Outcome::kDone, lost = Outcome::kRefused;
  EXPECT_TRUE(IsLinearizable(
      {WriteIf(std::nullopt, "a", won, 1, 4), WriteIf(std::nullopt, "b", lost, 2, 3)}));
  EXPECT_FALSE(IsLinearizable(
      {WriteIf(std::nullopt, "a", won, 1, 4), WriteIf(std::nullopt, "b", won, 2, 3)}));
  // Nobody else was there who could have been in the way.
  EXPECT_FALSE(IsLinearizable({WriteIf(std::nullopt, "a", lost, 1, 2)}));
  EXPECT_FALSE(IsLinearizable({Write("x", 1, 2), WriteIf("x", "a", lost, 3, 4)}));
  EXPECT_TRUE(IsLinearizable(
      {Write("x", 1, 2), Delete(won, 3, 4), WriteIf("x", "a", lost, 5, 6), Delete(lost, 7, 8)}));
  EXPECT_FALSE(IsLinearizable({Write("x", 1, 2), Delete(lost, 3, 4)}));
}

TEST(LinearizabilityTest, WhatIsUnknownMayHappenLateOnceOrNever) {
  const KeyOperation unknown = Unknown(Write("a", 1, 0));
  EXPECT_TRUE(IsLinearizable({unknown, Read(std::nullopt, 2, 3)}));
  EXPECT_TRUE(IsLinearizable({unknown, Read(std::nullopt, 2, 3), Read("a", 4, 5)}));
  EXPECT_FALSE(IsLinearizable({unknown, Read("a", 2, 3), Read(std::nullopt, 4, 5)}));
  // It was sent twice, and happened twice.
  EXPECT_FALSE(IsLinearizable(
      {unknown, Read("a", 2, 3), Write("b", 4, 5), Read("b", 6, 7), Read("a", 8, 9)}));
  // Before it was called it cannot have happened.
  EXPECT_FALSE(IsLinearizable({Read("a", 1, 2), Unknown(Write("a", 3, 0))}));
}

}  // namespace
}  // namespace holdfast
