#include "runtime/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

Holdings Free(uint64_t partitions) {
  Holdings now;
  for (uint64_t partition = 0; partition < partitions; ++partition) {
    now[{"orders", 1, partition}] = "";
  }
  return now;
}

std::map<std::string, size_t> CountsOf(const Holdings& plan) {
  std::map<std::string, size_t> counts;
  for (const auto& [partition, instance] : plan) ++counts[instance];
  return counts;
}

// Shares of those named differ by one at most, and nobody else has any.
void ExpectFair(const Holdings& plan, const std::vector<std::string>& instances, size_t all) {
  EXPECT_EQ(plan.size(), all);
  const auto counts = CountsOf(plan);
  size_t counted = 0;
  for (const std::string& instance : instances) {
    const size_t count = counts.contains(instance) ? counts.at(instance) : 0;
    EXPECT_GE(count, all / instances.size()) << instance;
    EXPECT_LE(count, (all + instances.size() - 1) / instances.size()) << instance;
    counted += count;
  }
  EXPECT_EQ(counted, all);
}

size_t Moved(const Holdings& from, const Holdings& to) {
  return static_cast<size_t>(std::count_if(from.begin(), from.end(), [&](const auto& held) {
    return to.at(held.first) != held.second;
  }));
}

TEST(BalanceTest, NobodyGetsAnythingWhereNobodyLives) {
  EXPECT_TRUE(Balance({}, Free(3)).empty());
  EXPECT_TRUE(Balance({"a"}, {}).empty());
}

TEST(BalanceTest, TheOrderOfTheInstancesDoesNotMatter) {
  EXPECT_EQ(Balance({"a", "b", "c"}, Free(20)), Balance({"c", "a", "b"}, Free(20)));
}

TEST(BalanceTest, APlanThatIsCarriedOutIsThePlan) {
  const Holdings plan = Balance({"a", "b", "c"}, Free(20));
  ExpectFair(plan, {"a", "b", "c"}, 20);
  EXPECT_EQ(Balance({"a", "b", "c"}, plan), plan);
}

TEST(BalanceTest, WhoJoinsGetsItsShareAndNothingElseMoves) {
  const Holdings two = Balance({"a", "b"}, Free(12));
  const Holdings three = Balance({"a", "b", "c"}, two);
  ExpectFair(three, {"a", "b", "c"}, 12);
  EXPECT_EQ(Moved(two, three), 4u);
  EXPECT_EQ(CountsOf(three).at("c"), 4u);
}

TEST(BalanceTest, WhatAnInstanceHadIsSharedAndNothingElseMoves) {
  const Holdings three = Balance({"a", "b", "c"}, Free(12));
  const Holdings two = Balance({"a", "c"}, three);
  ExpectFair(two, {"a", "c"}, 12);
  EXPECT_EQ(Moved(three, two), 4u);
}

TEST(BalanceTest, FewerPartitionsThanInstancesStayWhereTheyAre) {
  const Holdings one = Balance({"b"}, Free(1));
  EXPECT_EQ(Balance({"a", "b", "c"}, one), one);
}

// Each instance does its part of the plan that it sees, in any order, on pictures that are as old
// as they like; once pictures are new, everything stands still, and shares are fair.
TEST(BalanceTest, PartsOfPlansInAnyOrderLeadToAFairOneThatStays) {
  for (const uint64_t seed : Seeds(300)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::vector<std::string> instances;
    for (uint64_t i = 0; i <= rng.Next() % 5; ++i) instances.push_back("i" + std::to_string(i));
    const uint64_t partitions = rng.Next() % 17;
    Holdings now = Free(partitions);
    for (auto& [partition, holder] : now) {
      holder = "i" + std::to_string(rng.Next() % 7);  // some of them do not live
    }
    const auto lives = [&](const std::string& name) {
      return std::find(instances.begin(), instances.end(), name) != instances.end();
    };
    // What `name` does for one partition, as it knows of `seen`. True: something.
    const auto act = [&](const std::string& name, const Holdings& seen) {
      bool acted = false;
      for (const auto& [partition, wanted] : Balance(instances, seen)) {
        std::string& holder = now.at(partition);
        if (holder == name && wanted != name) {
          holder.clear();
          acted = true;
        } else if (wanted == name && !lives(holder)) {
          holder = name;
          acted = true;
        }
        if (acted && rng.Next() % 2 == 0) return true;
      }
      return acted;
    };
    std::vector<Holdings> pictures{now};
    for (int turn = 0; turn < 20; ++turn) {
      act(instances[rng.Next() % instances.size()], pictures[rng.Next() % pictures.size()]);
      pictures.push_back(now);
    }
    int turns = 0;
    for (bool acted = true; acted && turns < 100; ++turns) {
      acted = false;
      for (const std::string& name : instances) acted = act(name, Holdings(now)) || acted;
    }
    EXPECT_LT(turns, 100);
    ExpectFair(now, instances, partitions);
  }
}

}  // namespace
}  // namespace holdfast
