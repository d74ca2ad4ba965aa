#include "index/hash_index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Four values in all: nearly every key collides with others in all 64 bits.
uint64_t WeakHash(std::string_view key, uint64_t) {
  return key.empty() ? 0 : (static_cast<uint64_t>(key.back()) % 4) << 55;
}

// Some have an epoch or a distance of their numbers that is over 32 bits.
IndexState StateFor(uint64_t lsn) {
  return {.ref = {static_cast<uint32_t>(lsn), static_cast<uint32_t>(lsn * 8), 100},
          .payload_lsn = Lsn(lsn),
          .state_lsn = Lsn(lsn + (lsn % 5 == 0 ? lsn << 40 : 1)),
          .epoch = lsn % 3 == 0 ? lsn << 40 : lsn,
          .due_ns = -static_cast<int64_t>(lsn),
          .attempt = static_cast<uint32_t>(lsn % 7)};
}

TEST(HashIndexTest, EveryFieldOfAStateComesBack) {
  HashIndex index(1);
  const auto found = index.FindOrInsert("key");
  EXPECT_TRUE(found.inserted);
  EXPECT_EQ(index.Get(found.slot), IndexState());
  const IndexState state{.ref = {UINT32_MAX, (uint32_t{1} << 30) - 8, (uint32_t{1} << 25) - 1},
                         .record_bytes = 0xff'0000,
                         .payload_lsn = Lsn(UINT64_MAX),
                         .state_lsn = Lsn(UINT64_MAX - 1),
                         .epoch = UINT64_MAX - 2,
                         .due_ns = INT64_MIN,
                         .attempt = UINT32_MAX - 3};
  index.Set(found.slot, state);
  EXPECT_EQ(index.Get(index.Find("key")), state);
}

TEST(HashIndexTest, ItSaysWhenItsTablesAreBeyondTheCache) {
  HashIndex index(1);
  for (int i = 0; i < 20'000; ++i) index.FindOrInsert(std::to_string(i));
  EXPECT_FALSE(index.beyond_cache());
  for (int i = 20'000; i < 200'000; ++i) index.FindOrInsert(std::to_string(i));
  EXPECT_TRUE(index.beyond_cache());
  index.Clear();
  EXPECT_FALSE(index.beyond_cache());
}

// ThreadSanitizer sees what it must not read.
TEST(HashIndexTest, OneThreadMayPrefetchWhileAnotherChangesIt) {
  constexpr uint64_t kKeys = 300'000;  // its tables grow beyond the cache on the way
  HashIndex index(1);
  std::atomic<bool> done = false;
  std::thread other([&] {
    for (uint64_t i = 0; !done; ++i) index.Prefetch(std::to_string(i % kKeys));
  });
  for (uint64_t i = 0; i < kKeys; ++i) {
    const HashIndex::Slot slot = index.FindOrInsert(std::to_string(i)).slot;
    if (i % 3 == 0) index.Erase(slot);
  }
  index.Clear();
  EXPECT_EQ(index.Find("0"), HashIndex::kNoSlot);
  done = true;
  other.join();
}

TEST(HashIndexTest, EpochsAndDistancesOfAnySizeComeBack) {
  constexpr uint64_t k32 = uint64_t{1} << 32;
  HashIndex index(1);
  const HashIndex::Slot slot = index.FindOrInsert("key").slot;
  const HashIndex::Slot other = index.FindOrInsert("other").slot;
  const IndexState plain{.payload_lsn = Lsn(3), .state_lsn = Lsn(4), .epoch = 1};
  index.Set(other, plain);
  for (const uint64_t epoch : {uint64_t{1}, k32 - 2, k32 - 1, k32, UINT64_MAX}) {
    for (const uint64_t ahead : {uint64_t{0}, uint64_t{7}, k32 - 2, k32 - 1, k32, k32 << 20}) {
      const IndexState state{
          .payload_lsn = Lsn(5), .state_lsn = Lsn(5 + ahead), .epoch = epoch, .attempt = 2};
      index.Set(slot, state);
      ASSERT_EQ(index.Get(slot), state) << epoch << " " << ahead;
      ASSERT_EQ(index.StateLsn(slot), state.state_lsn) << epoch << " " << ahead;
      index.Set(slot, plain);
      ASSERT_EQ(index.Get(slot), plain);
      index.Set(slot, state);
      ASSERT_EQ(index.Get(slot), state);
    }
  }
  EXPECT_EQ(index.Get(other), plain);
}

TEST(HashIndexTest, AWideStateGoesWithItsKey) {
  HashIndex index(1);
  const IndexState wide{.payload_lsn = Lsn(1), .state_lsn = Lsn(2), .epoch = UINT64_MAX};
  uint64_t bytes = 0;
  for (int i = 0; i < 2'000; ++i) {
    const HashIndex::Slot slot = index.FindOrInsert(std::to_string(i)).slot;
    ASSERT_EQ(index.Get(slot), IndexState());
    index.Set(slot, wide);
    ASSERT_EQ(index.Get(slot), wide);
    if (i == 999) bytes = index.memory_bytes();  // each partition has room for keys by now
    if (i < 1'999) index.Erase(slot);
  }
  EXPECT_LE(index.memory_bytes(), bytes + 2'000);
  index.Clear();
  EXPECT_EQ(index.Get(index.FindOrInsert("1999").slot), IndexState());
}

// What is added to a sum of live bytes is what is removed again, so it must come back as it was
// kept, and keeping it again must not change it.
TEST(HashIndexTest, TheSizeOfARecordIsRoundedDownOnceAndToAHundredth) {
  HashIndex index(1);
  const HashIndex::Slot slot = index.FindOrInsert("key").slot;
  const auto kept = [&](uint32_t bytes) {
    index.Set(slot, {.ref = {1, 8, 100}, .record_bytes = bytes, .payload_lsn = Lsn(1)});
    EXPECT_EQ(index.PayloadShare(slot).record_bytes, index.Get(slot).record_bytes);
    return index.Get(slot).record_bytes;
  };
  for (uint32_t bytes = 0; bytes < 256; ++bytes) ASSERT_EQ(kept(bytes), bytes);
  for (uint64_t bytes = 256; bytes <= uint64_t{32} << 20; bytes += 1 + bytes / 50) {
    const uint32_t rounded = kept(static_cast<uint32_t>(bytes));
    ASSERT_LE(rounded, bytes);
    ASSERT_GT(rounded, bytes - bytes / 100);
    ASSERT_EQ(kept(rounded), rounded);
  }
  EXPECT_EQ(index.Get(slot).ref, (RecordRef{1, 8, 100}));
  EXPECT_EQ(index.PayloadShare(slot).segment, SegmentId(1));
  EXPECT_EQ(index.PayloadLsn(slot), Lsn(1));
}

TEST(HashIndexTest, KeysAreBytesOfAnyLength) {
  HashIndex index(1);
  std::vector<std::string> keys{"", std::string(1, '\0'), std::string(2, '\0'), "#/|\xff",
                                std::string(65'535, 'k')};
  for (const std::string& key : keys) EXPECT_TRUE(index.FindOrInsert(key).inserted);
  for (const std::string& key : keys) {
    ASSERT_NE(index.Find(key), HashIndex::kNoSlot);
    EXPECT_EQ(index.KeyAt(index.Find(key)), key);
  }
  EXPECT_EQ(index.Find(std::string(3, '\0')), HashIndex::kNoSlot);
}

void MatchesAMap(HashIndex& index, uint64_t seed, uint64_t keys, int operations) {
  SeededRng rng(seed);
  std::map<std::string, IndexState> model;
  for (int i = 0; i < operations; ++i) {
    const std::string key = "id-" + std::to_string(rng.Below(keys));
    const auto known = model.find(key);
    const HashIndex::Slot slot = index.Find(key);
    ASSERT_EQ(slot != HashIndex::kNoSlot, known != model.end()) << key;
    if (slot != HashIndex::kNoSlot) {
      ASSERT_EQ(index.Get(slot), known->second) << key;
    }
    if (rng.OneIn(3) && slot != HashIndex::kNoSlot) {
      index.Erase(slot);
      model.erase(known);
    } else {
      const auto found = index.FindOrInsert(key);
      ASSERT_EQ(found.inserted, known == model.end());
      model[key] = StateFor(static_cast<uint64_t>(i));
      index.Set(found.slot, model[key]);
    }
    ASSERT_EQ(index.size(), model.size());
  }
  for (const auto& [key, state] : model) ASSERT_EQ(index.Get(index.Find(key)), state);
}

TEST(HashIndexTest, MatchesAMapUnderRandomOperations) {
  for (const uint64_t seed : Seeds(8)) {
    SCOPED_TRACE(seed);
    HashIndex index(seed);
    MatchesAMap(index, seed, 3'000, 20'000);
  }
}

// Full keys are compared: the 64 bits of a hash may collide.
// Proves: G4
TEST(HashIndexTest, CollidingHashesCostTimeOnly) {
  for (const uint64_t seed : Seeds(2)) {
    SCOPED_TRACE(seed);
    HashIndex index(seed, WeakHash);
    MatchesAMap(index, seed, 200, 5'000);
  }
}

// The key found last is remembered; an erase and a new key in its slot make it another one.
TEST(HashIndexTest, AKeyThatTookTheSlotOfTheLastOneFoundIsErasedByItsOwnHash) {
  HashIndex index(1);
  for (int i = 0; i < 1'000; ++i) {
    const std::string key = std::to_string(i);
    const std::string next = std::to_string(i + 1);
    const HashIndex::Slot slot = index.FindOrInsert(key).slot;
    ASSERT_EQ(index.Find(key), slot);
    index.Erase(slot);
    ASSERT_EQ(index.Find(key), HashIndex::kNoSlot);
    ASSERT_EQ(index.FindOrInsert(next).slot, slot);
    ASSERT_EQ(index.Find(key), HashIndex::kNoSlot);
    index.Erase(slot);
    ASSERT_EQ(index.Find(next), HashIndex::kNoSlot);
    ASSERT_EQ(index.size(), 0u);
  }
}

TEST(HashIndexTest, AKeyKeepsItsSlotWhileTheTableGrows) {
  HashIndex index(1);
  const HashIndex::Slot slot = index.FindOrInsert("first").slot;
  for (int i = 0; i < 100'000; ++i) index.FindOrInsert(std::to_string(i));
  EXPECT_EQ(index.Find("first"), slot);
  for (int i = 0; i < 100'000; ++i) ASSERT_NE(index.Find(std::to_string(i)), HashIndex::kNoSlot);
}

TEST(HashIndexTest, SlotsOfErasedKeysAreUsedAgain) {
  HashIndex index(1);
  for (int i = 0; i < 1'000; ++i) index.FindOrInsert("a" + std::to_string(i));
  const uint64_t bytes = index.memory_bytes();
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 1'000; ++i) {
      const std::string key = std::string(1, static_cast<char>('a' + round)) + std::to_string(i);
      index.Erase(index.Find(key));
    }
    for (int i = 0; i < 1'000; ++i) {
      const std::string key = std::string(1, static_cast<char>('b' + round)) + std::to_string(i);
      index.FindOrInsert(key);
    }
  }
  EXPECT_LE(index.memory_bytes(), bytes * 5 / 4);
}

// 56 bytes a key besides the key itself, whatever the number of keys.
// Proves: D5
TEST(HashIndexTest, RoomThatWasReservedIsTheRoomThatIsNeeded) {
  constexpr int kKeys = 200'000;
  HashIndex reserved(1), grown(1);
  reserved.Reserve(kKeys, 5);
  const uint64_t before = reserved.memory_bytes();
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = std::to_string(i);
    reserved.Set(reserved.FindOrInsert(key).slot, StateFor(static_cast<uint64_t>(i)));
    grown.Set(grown.FindOrInsert(key).slot, StateFor(static_cast<uint64_t>(i)));
  }
  EXPECT_GT(before, 0u);
  EXPECT_LE(reserved.memory_bytes(), grown.memory_bytes() * 5 / 4);
  for (int i = 0; i < kKeys; ++i) {
    const HashIndex::Slot slot = reserved.Find(std::to_string(i));
    ASSERT_NE(slot, HashIndex::kNoSlot);
    ASSERT_EQ(reserved.Get(slot), StateFor(static_cast<uint64_t>(i)));
  }
  // Less than there is, or nothing, changes nothing.
  const uint64_t bytes = reserved.memory_bytes();
  reserved.Reserve(0, 5);
  reserved.Reserve(kKeys / 2, 5);
  EXPECT_EQ(reserved.memory_bytes(), bytes);
  EXPECT_EQ(reserved.size(), static_cast<uint64_t>(kKeys));
  // And more may come than was foreseen.
  for (int i = kKeys; i < kKeys + 10'000; ++i) reserved.FindOrInsert(std::to_string(i));
  EXPECT_EQ(reserved.size(), kKeys + 10'000u);
}

TEST(HashIndexTest, TouchingChangesNothing) {
  HashIndex index(1);
  std::vector<uint64_t> hashes;
  index.Touch(hashes);
  for (int i = 0; i < 1'000; ++i) hashes.push_back(index.HashOf(std::to_string(i)));
  index.Touch(hashes);  // nothing is there yet
  EXPECT_EQ(index.size(), 0u);
  index.Reserve(1'000, 16);
  index.Touch(hashes);
  for (int i = 0; i < 1'000; ++i) {
    const auto found = index.FindOrInsert(std::to_string(i), hashes[static_cast<size_t>(i)]);
    ASSERT_TRUE(found.inserted);
    index.Set(found.slot, StateFor(static_cast<uint64_t>(i)));
  }
  index.Touch(hashes);
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(index.Get(index.Find(std::to_string(i))), StateFor(static_cast<uint64_t>(i)));
  }
}

TEST(HashIndexTest, AfterAClearItIsAsNew) {
  HashIndex index(1);
  const uint64_t empty = index.memory_bytes();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20'000; ++i) index.FindOrInsert("a" + std::to_string(i));
    for (int i = 0; i < 20'000; i += 3) index.Erase(index.Find("a" + std::to_string(i)));
    // What was found last must not be found any more.
    ASSERT_NE(index.Find("a1"), HashIndex::kNoSlot);
    index.Clear();
    EXPECT_EQ(index.size(), 0u);
    EXPECT_EQ(index.slots_end(), 0u);
    EXPECT_EQ(index.memory_bytes(), empty);
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_EQ(index.Find("a" + std::to_string(i)), HashIndex::kNoSlot);
    }
    const auto found = index.FindOrInsert("a1");
    EXPECT_TRUE(found.inserted);
    EXPECT_EQ(index.Get(found.slot), IndexState());
    index.Erase(found.slot);
    MatchesAMap(index, static_cast<uint64_t>(round), 500, 5'000);
    index.Clear();
  }
}

TEST(HashIndexTest, AKeyCostsAtMost56Bytes) {
  constexpr uint64_t kIdBytes = 12;
  HashIndex index(1);
  const uint64_t empty = index.memory_bytes();
  uint64_t keys = 0;
  for (const uint64_t stop : {50'000, 70'000, 100'000, 150'000, 300'000, 1'000'000}) {
    for (; keys < stop; ++keys) index.FindOrInsert(std::to_string(100'000'000'000 + keys));
    const uint64_t ids = keys * (kIdBytes + 4);  // rounding of the id and its length
    EXPECT_LE(index.memory_bytes() - empty, ids + keys * 56) << keys;
  }
}

TEST(HashIndexTest, ASnapshotShowsWhatWasThereAndStillIs) {
  HashIndex index(1);
  std::set<std::string> expected;
  for (int i = 0; i < 500; ++i) {
    index.FindOrInsert("old-" + std::to_string(i));
    expected.insert("old-" + std::to_string(i));
  }
  HashIndex::Snapshot snapshot(index);
  // Erased ones leave it, and whoever takes over their slots does not come in.
  for (int i = 0; i < 500; i += 2) {
    index.Erase(index.Find("old-" + std::to_string(i)));
    expected.erase("old-" + std::to_string(i));
  }
  for (int i = 0; i < 1'000; ++i) index.FindOrInsert("new-" + std::to_string(i));
  std::set<std::string> seen;
  for (HashIndex::Slot slot = snapshot.Next(); slot != HashIndex::kNoSlot; slot = snapshot.Next()) {
    seen.insert(std::string(index.KeyAt(slot)));
    if (seen.size() % 3 == 0) {  // the visitor removes others, too
      const std::string last = *expected.rbegin();
      if (!seen.contains(last)) {
        index.Erase(index.Find(last));
        expected.erase(last);
      }
    }
  }
  EXPECT_EQ(seen, expected);
}

TEST(HashIndexTest, SnapshotsAreIndependent) {
  HashIndex index(1);
  index.FindOrInsert("a");
  HashIndex::Snapshot one(index);
  index.FindOrInsert("b");
  HashIndex::Snapshot two(index);
  index.Erase(index.Find("a"));
  EXPECT_EQ(one.Next(), HashIndex::kNoSlot);
  const HashIndex::Slot slot = two.Next();
  ASSERT_NE(slot, HashIndex::kNoSlot);
  EXPECT_EQ(index.KeyAt(slot), "b");
  EXPECT_EQ(two.Next(), HashIndex::kNoSlot);
}

}  // namespace
}  // namespace holdfast
