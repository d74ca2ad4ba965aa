#include "index/value_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <string>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

std::string_view Text(const SharedBytes& bytes) { return AsText(bytes.view()); }

TEST(ValueCacheTest, GivesBackWhatWasPutIn) {
  ValueCache cache({});
  cache.Insert(7, Lsn(1), AsBytes("value"));
  cache.Insert(8, Lsn(2), AsBytes(""));
  EXPECT_EQ(Text(cache.Find(7, Lsn(1))), "value");
  EXPECT_TRUE(cache.Find(8, Lsn(2)));  // empty, but there
  EXPECT_FALSE(cache.Find(9, Lsn(3)));
  EXPECT_EQ(cache.hits(), 2u);
  EXPECT_EQ(cache.misses(), 1u);
}

// Proves: D6
TEST(ValueCacheTest, AnOlderVersionNeverReplacesANewerOne) {
  ValueCache cache({});
  cache.Insert(7, Lsn(5), AsBytes("new"));
  cache.Insert(7, Lsn(4), AsBytes("old"));  // a slow reader comes late
  EXPECT_EQ(Text(cache.Find(7, Lsn(5))), "new");
  EXPECT_FALSE(cache.Find(7, Lsn(4)));
  cache.Insert(7, Lsn(6), AsBytes("newer"));
  EXPECT_FALSE(cache.Find(7, Lsn(5)));
  EXPECT_EQ(Text(cache.Find(7, Lsn(6))), "newer");
  EXPECT_EQ(cache.entries(), 1u);
}

TEST(ValueCacheTest, AReaderKeepsAValueThatLeaves) {
  ValueCache cache({.entries_max = 1});
  cache.Insert(1, Lsn(1), AsBytes("kept by its reader"));
  const SharedBytes value = cache.Find(1, Lsn(1));
  cache.Insert(2, Lsn(2), AsBytes("other"));
  EXPECT_FALSE(cache.Find(1, Lsn(1)));
  EXPECT_EQ(Text(value), "kept by its reader");
}

TEST(ValueCacheTest, BytesAreBounded) {
  ValueCache cache({.entries_max = 1'000'000, .bytes_max = 10'000});
  for (uint32_t slot = 0; slot < 100; ++slot) {
    cache.Insert(slot, Lsn(slot + 1), AsBytes(std::string(1'000, 'x')));
    EXPECT_LE(cache.bytes(), 10'000u);
  }
  EXPECT_GT(cache.entries(), 5u);
  EXPECT_TRUE(cache.Find(99, Lsn(100)));
  EXPECT_FALSE(cache.Find(0, Lsn(1)));
  cache.Insert(1'000, Lsn(1'000), AsBytes(std::string(10'001, 'y')));  // over the bound alone
  EXPECT_FALSE(cache.Find(1'000, Lsn(1'000)));
  EXPECT_TRUE(cache.Find(99, Lsn(100)));
}

TEST(ValueCacheTest, WithoutRoomItKeepsNothing) {
  ValueCache cache({.entries_max = 0});
  cache.Insert(1, Lsn(1), AsBytes("x"));
  EXPECT_FALSE(cache.Find(1, Lsn(1)));
  cache.Erase(1);
  EXPECT_EQ(cache.bytes(), 0u);
}

// Against the obviously right list of slots in order of use.
TEST(ValueCacheTest, EvictsTheLeastRecentlyUsed) {
  for (const uint64_t seed : Seeds(4)) {
    SCOPED_TRACE(seed);
    constexpr size_t kEntriesMax = 50;
    SeededRng rng(seed);
    ValueCache cache({.entries_max = kEntriesMax});
    struct Entry {
      uint32_t slot;
      Lsn lsn;
    };
    std::list<Entry> model;  // used last comes first
    for (uint64_t i = 1; i < 20'000; ++i) {
      const uint32_t slot = static_cast<uint32_t>(rng.Below(120)) * 4'096;
      const auto known =
          std::find_if(model.begin(), model.end(), [&](const auto& e) { return e.slot == slot; });
      switch (rng.Below(4)) {
        case 0:
          cache.Erase(slot);
          if (known != model.end()) model.erase(known);
          break;
        case 1: {
          const Lsn lsn = known == model.end() ? Lsn(i) : known->lsn;
          const SharedBytes found = cache.Find(slot, lsn);
          ASSERT_EQ(static_cast<bool>(found), known != model.end());
          if (known != model.end()) {
            ASSERT_EQ(Text(found), std::to_string(known->lsn.value()));
            model.splice(model.begin(), model, known);
          }
          break;
        }
        default:
          cache.Insert(slot, Lsn(i), AsBytes(std::to_string(i)));
          if (known != model.end()) model.erase(known);
          if (model.size() == kEntriesMax) model.pop_back();
          model.push_front({slot, Lsn(i)});
      }
      ASSERT_EQ(cache.entries(), model.size());
    }
    for (const Entry& entry : model) ASSERT_TRUE(cache.Find(entry.slot, entry.lsn));
  }
}

}  // namespace
}  // namespace holdfast
