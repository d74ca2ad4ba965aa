#include "stores/answer_window.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

RememberedAnswer Of(uint64_t lsn, uint64_t hash) {
  return {.lsn = Lsn(lsn), .hash = hash, .basis = Lsn(lsn), .segment = 1};
}
std::vector<uint64_t> NumbersFrom(const AnswerWindow& window, uint64_t from) {
  std::vector<uint64_t> numbers;
  window.ForEachFrom(Lsn(from), [&](const RememberedAnswer& answer) {
    numbers.push_back(answer.lsn.value());
    return true;
  });
  return numbers;
}

// Proves: A3
TEST(AnswerHashTest, EachPartCounts) {
  std::set<uint64_t> hashes;
  const std::string nul(1, '\0');
  size_t asked = 0;
  for (const std::string& id : {std::string(), std::string("a"), std::string("ab"), nul}) {
    for (const uint64_t epoch : {0u, 1u, 2u}) {
      for (const std::string& client : {std::string(), std::string("b"), nul}) {
        for (const std::string& key : {std::string(), std::string("b"), nul + nul}) {
          hashes.insert(AnswerHash(id, epoch, client, key));
          ++asked;
        }
      }
    }
  }
  EXPECT_EQ(hashes.size(), asked);
  // It stands in journals, so it stays as it is.
  EXPECT_EQ(AnswerHash("1-a-1", 1, "billing", "key"), 9342577283922906854u);
}

TEST(AnswerWindowTest, TheNewestStayInWhateverOrderTheyCome) {
  std::vector<uint64_t> order{5, 2, 9, 1, 7};
  std::sort(order.begin(), order.end());
  do {
    AnswerWindow window(3);
    std::multiset<uint64_t> left;
    for (const uint64_t lsn : order) {
      if (const auto out = window.Add(Of(lsn, lsn * 10))) left.insert(out->lsn.value());
    }
    ASSERT_EQ(NumbersFrom(window, 0), (std::vector<uint64_t>{5, 7, 9}));
    ASSERT_EQ(left, (std::multiset<uint64_t>{1, 2}));
    ASSERT_EQ(window.FindHash(70), Lsn(7));
    ASSERT_EQ(window.FindHash(20), Lsn());
    ASSERT_EQ(window.Find(Lsn(2)), nullptr);
    ASSERT_EQ(window.Find(Lsn(9))->hash, 90u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(AnswerWindowTest, OneOfNoneHoldsNothing) {
  AnswerWindow window(0);
  EXPECT_EQ(window.Add(Of(3, 30))->lsn, Lsn(3));
  EXPECT_EQ(window.size(), 0u);
  EXPECT_EQ(window.FindHash(30), Lsn());
}

TEST(AnswerWindowTest, TwoOfOneHashAreTwo) {
  AnswerWindow window(2);
  EXPECT_FALSE(window.Add(Of(1, 7)));
  EXPECT_FALSE(window.Add(Of(2, 7)));
  EXPECT_EQ(window.FindHash(7), Lsn(2));
  EXPECT_EQ(window.Add(Of(3, 8))->lsn, Lsn(1));
  EXPECT_EQ(window.FindHash(7), Lsn(2));
  EXPECT_EQ(window.Add(Of(4, 9))->lsn, Lsn(2));
  EXPECT_EQ(window.FindHash(7), Lsn());
}

TEST(AnswerWindowTest, AWalkBeginsAndEndsWhereItIsTold) {
  AnswerWindow window(10);
  for (const uint64_t lsn : {10, 20, 5, 15, 30}) (void)window.Add(Of(lsn, lsn));  // none leaves
  EXPECT_EQ(NumbersFrom(window, 11), (std::vector<uint64_t>{15, 20, 30}));
  EXPECT_EQ(NumbersFrom(window, 15), (std::vector<uint64_t>{15, 20, 30}));
  EXPECT_TRUE(NumbersFrom(window, 31).empty());
  int seen = 0;
  window.ForEachFrom(Lsn(), [&](const RememberedAnswer&) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
}

TEST(AnswerWindowTest, ItIsAMapOfTheHighestNumbers) {
  for (const uint64_t seed : Seeds(30)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    const uint64_t answers_max = rng.Below(60);
    AnswerWindow window(answers_max);
    std::map<uint64_t, uint64_t> model;  // number to hash
    uint64_t newest = 0;
    for (int i = 0; i < 3'000; ++i) {
      const uint64_t lsn = rng.OneIn(4) ? 1 + rng.Below(newest + 1) : newest += 1 + rng.Below(3);
      newest = std::max(newest, lsn);
      if (model.contains(lsn)) {
        ASSERT_NE(window.Find(Lsn(lsn)), nullptr);
        continue;
      }
      model[lsn] = rng.Next();
      const auto out = window.Add(Of(lsn, model[lsn]));
      ASSERT_EQ(out.has_value(), model.size() > answers_max);
      if (out.has_value()) {
        ASSERT_EQ(out->lsn.value(), model.begin()->first);
        ASSERT_EQ(window.FindHash(out->hash), Lsn());
        model.erase(model.begin());
      }
      if (model.empty()) continue;
      const auto some = model.lower_bound(1 + rng.Below(newest));
      if (some == model.end()) continue;
      ASSERT_EQ(window.Find(Lsn(some->first))->hash, some->second);
      ASSERT_EQ(window.FindHash(some->second), Lsn(some->first));
    }
    ASSERT_EQ(window.size(), model.size());
    std::vector<uint64_t> numbers;
    for (const auto& [lsn, hash] : model) numbers.push_back(lsn);
    ASSERT_EQ(NumbersFrom(window, 0), numbers);
    window.Clear();
    EXPECT_EQ(window.size(), 0u);
  }
}

// Whoever acknowledges twice with different removals in between gets the answer of the newest.
TEST(AnswerWindowTest, OfThoseWithOneHashTheNewestIsFound) {
  for (const uint64_t seed : Seeds(30)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    AnswerWindow window(1 + rng.Below(40));
    std::map<uint64_t, uint64_t> model;  // number to hash
    uint64_t newest = 0;
    for (int i = 0; i < 2'000; ++i) {
      const uint64_t lsn = rng.OneIn(4) ? 1 + rng.Below(newest + 1) : newest += 1 + rng.Below(3);
      newest = std::max(newest, lsn);
      if (model.contains(lsn)) continue;
      model[lsn] = rng.Below(20);
      if (window.Add(Of(lsn, model[lsn]))) model.erase(model.begin());
      for (uint64_t hash = 0; hash < 20; ++hash) {
        uint64_t expected = 0;
        for (const auto& [number, of] : model) expected = of == hash ? number : expected;
        ASSERT_EQ(window.FindHash(hash), Lsn(expected));
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
