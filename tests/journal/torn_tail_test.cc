#include "journal/torn_tail.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace holdfast {
namespace {

constexpr bool kBools[] = {false, true};
constexpr Standing kStandings[] = {Standing::kLive, Standing::kBeyondEnd, Standing::kUnchained};
constexpr Found kFounds[] = {Found::kExpected, Found::kOtherLsn, Found::kStampedBad,
                             Found::kNoStamp};
constexpr AgainstMark kAgainst[] = {AgainstMark::kBefore, AgainstMark::kAt, AgainstMark::kBeyond};

// Every combination of facts there is.
std::vector<PlaceFacts> AllFacts() {
  std::vector<PlaceFacts> all;
  for (const bool read_error : kBools) {
    for (const Standing standing : kStandings) {
      for (const Found found : kFounds) {
        for (const bool proved : kBools) {
          for (const bool valid_behind : kBools) {
            for (const bool mark_clean : kBools) {
              for (const AgainstMark against_mark : kAgainst) {
                all.push_back({.read_error = read_error,
                               .standing = standing,
                               .found = found,
                               .proved = proved,
                               .valid_behind = valid_behind,
                               .mark_clean = mark_clean,
                               .against_mark = against_mark});
              }
            }
          }
        }
      }
    }
  }
  return all;
}

std::string Print(const PlaceFacts& facts) {
  return "read_error " + std::to_string(facts.read_error) + " standing " +
         std::to_string(static_cast<int>(facts.standing)) + " found " +
         std::to_string(static_cast<int>(facts.found)) + " proved " + std::to_string(facts.proved) +
         " valid_behind " + std::to_string(facts.valid_behind) + " mark_clean " +
         std::to_string(facts.mark_clean) + " against_mark " +
         std::to_string(static_cast<int>(facts.against_mark));
}

// The rule, written a second time: each statement says all that it needs, none leans on an order.
struct Statement {
  Verdict verdict;
  bool (*holds)(const PlaceFacts&);
};

bool Readable(const PlaceFacts& f) { return !f.read_error && f.standing == Standing::kLive; }
bool Bad(const PlaceFacts& f) {
  return f.found == Found::kStampedBad || f.found == Found::kNoStamp;
}
bool ContradictsMark(const PlaceFacts& f) {
  return f.mark_clean && f.against_mark != AgainstMark::kBefore;
}
bool Nothing(const PlaceFacts& f) {
  return Readable(f) && f.found == Found::kNoStamp && !f.proved && !f.valid_behind;
}

const Statement kStatements[] = {
    {Verdict::kReadError, [](const PlaceFacts& f) { return f.read_error; }},
    {Verdict::kDead,
     [](const PlaceFacts& f) {
       return !f.read_error &&
              (f.standing == Standing::kBeyondEnd || f.standing == Standing::kUnchained);
     }},
    {Verdict::kTaken,
     [](const PlaceFacts& f) {
       return Readable(f) && f.found == Found::kExpected && !ContradictsMark(f);
     }},
    {Verdict::kMixedCopies,
     [](const PlaceFacts& f) {
       return Readable(f) && ContradictsMark(f) &&
              (f.found == Found::kExpected ||
               (!f.proved &&
                (f.found == Found::kStampedBad || (f.found == Found::kNoStamp && f.valid_behind))));
     }},
    {Verdict::kDamage,
     [](const PlaceFacts& f) {
       return Readable(f) && (f.found == Found::kOtherLsn || (Bad(f) && f.proved));
     }},
    {Verdict::kTorn,
     [](const PlaceFacts& f) {
       return Readable(f) && f.found == Found::kStampedBad && !f.proved && !ContradictsMark(f);
     }},
    {Verdict::kTornHole,
     [](const PlaceFacts& f) {
       return Readable(f) && f.found == Found::kNoStamp && !f.proved && f.valid_behind &&
              !ContradictsMark(f);
     }},
    {Verdict::kEnd,
     [](const PlaceFacts& f) {
       return Nothing(f) && !(f.mark_clean && f.against_mark == AgainstMark::kAt);
     }},
    {Verdict::kEndClean,
     [](const PlaceFacts& f) {
       return Nothing(f) && f.mark_clean && f.against_mark == AgainstMark::kAt;
     }},
};

// Proves: G2, G5
TEST(TornTailTest, EveryCombinationOfFactsHasExactlyOneVerdict) {
  std::set<Verdict> given;
  for (const PlaceFacts& facts : AllFacts()) {
    SCOPED_TRACE(Print(facts));
    std::vector<Verdict> holding;
    for (const Statement& statement : kStatements) {
      if (statement.holds(facts)) holding.push_back(statement.verdict);
    }
    EXPECT_EQ(holding, std::vector<Verdict>{Judge(facts)});
    given.insert(Judge(facts));
  }
  EXPECT_EQ(given.size(), std::size(kStatements));  // and no verdict is out of reach
}

// Proves: G2
TEST(TornTailTest, NothingThatMayBeConfirmedIsEverCut) {
  for (const PlaceFacts& facts : AllFacts()) {
    if (!facts.proved || facts.standing != Standing::kLive) continue;
    const Verdict verdict = Judge(facts);
    EXPECT_TRUE(verdict == Verdict::kTaken || verdict == Verdict::kDamage ||
                verdict == Verdict::kMixedCopies || verdict == Verdict::kReadError)
        << Print(facts);
  }
}

// Proves: G7
TEST(TornTailTest, WhatAPowerCutCanLeaveBehindTheHorizonNeverRefusesTheOpen) {
  for (const PlaceFacts& facts : AllFacts()) {
    if (facts.proved || facts.read_error || facts.mark_clean || facts.found == Found::kOtherLsn) {
      continue;
    }
    const Verdict verdict = Judge(facts);
    EXPECT_NE(verdict, Verdict::kDamage) << Print(facts);
    EXPECT_NE(verdict, Verdict::kMixedCopies) << Print(facts);
  }
}

// Proves: G4
TEST(TornTailTest, OnlyTheValidBatchWithTheNextLsnIsTaken) {
  for (const PlaceFacts& facts : AllFacts()) {
    if (Judge(facts) != Verdict::kTaken) continue;
    EXPECT_EQ(facts.found, Found::kExpected);
    EXPECT_EQ(facts.standing, Standing::kLive);
    EXPECT_FALSE(facts.read_error);
  }
}

TEST(TornTailTest, EveryVerdictHasItsOwnName) {
  std::set<std::string> names;
  for (const Statement& statement : kStatements) names.insert(VerdictName(statement.verdict));
  EXPECT_EQ(names.size(), std::size(kStatements));
}

TEST(HorizonTest, IsTheHighestThatAnyEvidenceGives) {
  EXPECT_EQ(Proved({}), Lsn());
  EXPECT_EQ(Horizon({}), Lsn());
  const TailEvidence evidence{.group_synced = Lsn(4),
                              .mark_synced = Lsn(3),
                              .checkpoint = Lsn(2),
                              .copied_through = Lsn(1),
                              .promised = Lsn(9)};
  EXPECT_EQ(Proved(evidence), Lsn(4));
  EXPECT_EQ(Horizon(evidence), Lsn(9));
  EXPECT_EQ(Proved({.mark_synced = Lsn(7), .promised = Lsn(5)}), Lsn(7));
  EXPECT_EQ(Horizon({.mark_synced = Lsn(7), .promised = Lsn(5)}), Lsn(7));
  EXPECT_EQ(Proved({.checkpoint = Lsn(7)}), Lsn(7));
  EXPECT_EQ(Proved({.copied_through = Lsn(7)}), Lsn(7));
}

// Proves: G2
TEST(NextLsnTest, JumpsOverAllThatTheKilledBootMayHaveGivenOut) {
  for (const uint64_t seen : {uint64_t{0}, uint64_t{1}, kLsnJump - 1, kLsnJump, kLsnJump + 1,
                              7 * kLsnJump + 12'345, ~uint64_t{0} - 3 * kLsnJump}) {
    const Lsn next = NextAfterUnclean(Lsn(seen));
    EXPECT_EQ(next.value() % kLsnJump, 0u);
    EXPECT_GT(next.value(), seen + kUnsyncedLsnsMax) << seen;
  }
}

TEST(NextLsnTest, RefusesInsteadOfWrapping) {
  EXPECT_EQ(NextAfterUnclean(Lsn(~uint64_t{0})), Lsn());
  EXPECT_EQ(NextAfterUnclean(Lsn(~uint64_t{0} - 2 * kLsnJump + 1)), Lsn());
}

}  // namespace
}  // namespace holdfast
