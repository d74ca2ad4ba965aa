#include "runtime/pending_window.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

TEST(PendingWindowTest, NothingIsPendingAtFirst) {
  PendingWindow window;
  EXPECT_EQ(window.lowest(), std::nullopt);
  EXPECT_EQ(window.lowest_pending(), std::nullopt);
  EXPECT_EQ(window.Find(0), kNone);
  for (const uint64_t offset : {uint64_t{0}, UINT64_MAX}) {
    window.BeginEnd(offset);
    window.AbandonEnd(offset);
    window.Remove(offset);
  }
  EXPECT_EQ(window.lowest(), std::nullopt);
  EXPECT_EQ(window.lowest_pending(), std::nullopt);
}

TEST(PendingWindowTest, TheLowestIsKnownWhateverEndsAboveIt) {
  PendingWindow window;
  for (Slot slot = 11; slot <= 200; ++slot) window.Add(slot, slot);
  for (uint64_t offset = 12; offset <= 200; ++offset) {
    window.Remove(offset);
    ASSERT_EQ(window.lowest_pending(), 11u);
    ASSERT_EQ(window.lowest(), 11u);
  }
  window.Remove(11);
  EXPECT_EQ(window.lowest_pending(), std::nullopt);
  EXPECT_EQ(window.lowest(), std::nullopt);
}

TEST(PendingWindowTest, TheLowestMovesOnOverWhatHasEnded) {
  PendingWindow window;
  for (Slot slot = 0; slot < 1'000; slot += 3) window.Add(slot, slot);
  for (uint64_t offset = 0; offset < 1'000; offset += 3) {
    ASSERT_EQ(window.lowest(), offset);
    window.Remove(offset + 1);  // there is none
    window.Remove(offset);
  }
  EXPECT_EQ(window.lowest(), std::nullopt);
}

TEST(PendingWindowTest, WhatIsEndingIsNotPendingAndStillThere) {
  PendingWindow window;
  for (Slot slot = 0; slot < 100; ++slot) window.Add(slot, slot);
  for (uint64_t offset = 0; offset < 99; ++offset) {
    window.BeginEnd(offset);
    ASSERT_EQ(window.lowest_pending(), offset + 1);
    ASSERT_EQ(window.lowest(), 0u);
    ASSERT_EQ(window.Find(offset), offset);
  }
  window.AbandonEnd(40);
  EXPECT_EQ(window.lowest_pending(), 40u);
  window.Remove(40);
  window.AbandonEnd(40);  // it is gone
  EXPECT_EQ(window.lowest_pending(), 99u);
  EXPECT_EQ(window.Find(40), kNone);
}

// Offsets come in runs, and runs may lie anywhere.
TEST(PendingWindowTest, RandomOperationsDoWhatAMapDoes) {
  constexpr uint64_t kHighest = (uint64_t{1} << 63) - 2;
  const std::vector<uint64_t> runs{0,        1'000'000,      (uint64_t{1} << 32) - 50,
                                   kHighest, kHighest - 500, UINT64_MAX};
  struct Known {
    Slot slot;
    bool pending = true;
  };
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    PendingWindow window;
    std::map<uint64_t, Known> model;
    const uint64_t length = 1 + rng.Below(300);
    for (Slot step = 0; step < 5'000; ++step) {
      const uint64_t run = runs[rng.Below(runs.size())];
      const uint64_t near = run < length ? rng.Below(length) : run - rng.Below(length);
      uint64_t offset = rng.OneIn(50) ? rng.Below(kHighest + 1) : near;
      // Phases that fill and phases that empty.
      const bool add = rng.Below(10) < (step / 500 % 2 == 0 ? 7u : 2u);
      if (!add && rng.OneIn(2) && !model.empty()) offset = model.begin()->first;
      const auto known = model.find(offset);
      if (add && known == model.end()) {
        window.Add(offset, step);
        model[offset] = {step};
      } else if (rng.OneIn(3)) {
        window.BeginEnd(offset);
        if (known != model.end()) known->second.pending = false;
      } else if (rng.OneIn(3)) {
        window.AbandonEnd(offset);
        if (known != model.end()) known->second.pending = true;
      } else {
        window.Remove(offset);
        model.erase(offset);
      }
      for (const uint64_t at : {offset, near ^ 1}) {
        const auto found = model.find(at);
        ASSERT_EQ(window.Find(at), found == model.end() ? kNone : found->second.slot) << at;
      }
      std::optional<uint64_t> lowest, pending;
      for (const auto& [at, flight] : model) {
        if (!lowest.has_value()) lowest = at;
        if (!pending.has_value() && flight.pending) pending = at;
      }
      ASSERT_EQ(window.lowest(), lowest);
      if (rng.OneIn(2)) {
        ASSERT_EQ(window.lowest_pending(), pending);
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
