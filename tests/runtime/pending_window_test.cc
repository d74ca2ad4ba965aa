#include "runtime/pending_window.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

TEST(PendingWindowTest, NothingIsPendingAtFirst) {
  PendingWindow window;
  EXPECT_EQ(window.lowest(), std::nullopt);
  EXPECT_FALSE(window.Has(0));
  window.Remove(0);
  window.Remove(UINT64_MAX);
  EXPECT_EQ(window.lowest(), std::nullopt);
}

TEST(PendingWindowTest, TheLowestIsKnownWhateverEndsAboveIt) {
  PendingWindow window;
  for (uint64_t offset = 11; offset <= 200; ++offset) window.Add(offset);
  for (uint64_t offset = 12; offset <= 200; ++offset) {
    window.Remove(offset);
    ASSERT_EQ(window.lowest(), 11u);
  }
  window.Remove(11);
  EXPECT_EQ(window.lowest(), std::nullopt);
}

TEST(PendingWindowTest, TheLowestMovesOnOverWhatHasEnded) {
  PendingWindow window;
  for (uint64_t offset = 0; offset < 1'000; offset += 3) window.Add(offset);
  for (uint64_t offset = 0; offset < 1'000; offset += 3) {
    ASSERT_EQ(window.lowest(), offset);
    window.Remove(offset + 1);  // never pending
    window.Remove(offset);
  }
  EXPECT_EQ(window.lowest(), std::nullopt);
}

TEST(PendingWindowTest, AddingTwiceIsAddingOnce) {
  PendingWindow window;
  window.Add(64);
  window.Add(64);
  window.Remove(64);
  EXPECT_FALSE(window.Has(64));
  EXPECT_EQ(window.lowest(), std::nullopt);
}

// Offsets come in runs, and runs may lie anywhere.
TEST(PendingWindowTest, RandomOperationsDoWhatASetDoes) {
  constexpr uint64_t kHighest = (uint64_t{1} << 63) - 2;
  const std::vector<uint64_t> runs{0,        1'000'000,      (uint64_t{1} << 32) - 50,
                                   kHighest, kHighest - 500, UINT64_MAX};
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    PendingWindow window;
    std::set<uint64_t> model;
    const uint64_t length = 1 + rng.Below(300);
    for (int i = 0; i < 5'000; ++i) {
      const uint64_t run = runs[rng.Below(runs.size())];
      const uint64_t near = run < length ? rng.Below(length) : run - rng.Below(length);
      const uint64_t offset = rng.OneIn(50) ? rng.Below(kHighest + 1) : near;
      // Phases that fill and phases that empty.
      const bool add = rng.Below(10) < (i / 500 % 2 == 0 ? 7u : 2u);
      if (add) {
        window.Add(offset);
        model.insert(offset);
      } else {
        const bool lowest = rng.OneIn(2) && !model.empty();
        const uint64_t ended = lowest ? *model.begin() : offset;
        window.Remove(ended);
        model.erase(ended);
        ASSERT_FALSE(window.Has(ended));
      }
      ASSERT_EQ(window.Has(offset), model.contains(offset)) << offset;
      ASSERT_EQ(window.Has(near ^ 1), model.contains(near ^ 1)) << near;
      ASSERT_EQ(window.lowest(),
                model.empty() ? std::nullopt : std::optional<uint64_t>(*model.begin()));
    }
    for (const uint64_t offset : model) {
      ASSERT_EQ(window.lowest(), offset);
      window.Remove(offset);
    }
    ASSERT_EQ(window.lowest(), std::nullopt);
  }
}

}  // namespace
}  // namespace holdfast
