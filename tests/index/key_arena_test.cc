#include "index/key_arena.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast {
namespace {

TEST(KeyArenaTest, KeysOfEveryLengthComeBackAsTheyWent) {
  KeyArena arena;
  std::vector<std::pair<KeyArena::Handle, std::string>> kept;
  for (size_t size : {0, 1, 2, 3, 5, 40, 255, 256, 4'096, 65'535}) {
    for (char fill : {'\0', 'x', '\xff'}) {
      const std::string key(size, fill);
      kept.emplace_back(arena.Add(key), key);
    }
  }
  for (const auto& [handle, key] : kept) EXPECT_EQ(arena.Get(handle), key);
}

TEST(KeyArenaTest, SpaceOfRemovedKeysIsUsedAgain) {
  KeyArena arena;
  std::vector<KeyArena::Handle> handles;
  for (int i = 0; i < 10'000; ++i) handles.push_back(arena.Add("id-" + std::to_string(i)));
  const uint64_t full = arena.bytes();
  for (int round = 0; round < 100; ++round) {
    for (const KeyArena::Handle handle : handles) arena.Remove(handle);
    for (int i = 0; i < 10'000; ++i) {
      const std::string key = "id-" + std::to_string(i);
      handles[static_cast<size_t>(i)] = arena.Add(key);
      ASSERT_EQ(arena.Get(handles[static_cast<size_t>(i)]), key);
    }
  }
  EXPECT_EQ(arena.bytes(), full);
}

// A removed key gives its place to keys of its own rounded length only, so no two ever overlap.
TEST(KeyArenaTest, KeysOfDifferentLengthsNeverOverlap) {
  KeyArena arena;
  std::vector<std::pair<KeyArena::Handle, std::string>> kept;
  for (int i = 0; i < 5'000; ++i) {
    const size_t size = static_cast<size_t>(i * 7919 % 61);
    const std::string key(size, static_cast<char>('a' + i % 26));
    if (i % 3 == 2) {
      const size_t victim = static_cast<size_t>(i * 31) % kept.size();
      arena.Remove(kept[victim].first);
      kept[victim] = kept.back();
      kept.pop_back();
    }
    kept.emplace_back(arena.Add(key), key);
  }
  for (const auto& [handle, key] : kept) ASSERT_EQ(arena.Get(handle), key);
}

}  // namespace
}  // namespace holdfast
