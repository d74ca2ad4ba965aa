#include "stores/slot_map.h"

#include <gtest/gtest.h>

#include <map>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

TEST(SlotMapTest, IsAMap) {
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    SlotMap<uint64_t> map;
    std::map<std::string, uint64_t> model;
    for (int i = 0; i < 5000; ++i) {
      const std::string topic = std::to_string(rng.Below(200));
      const PositionKeyView key{topic, "c", 1, 2};
      if (rng.OneIn(3)) {
        if (model.erase(topic) > 0) map.Erase(key);
        ASSERT_EQ(map.Find(key), nullptr);
      } else {
        map.FindOrInsert(key) = model[topic] = rng.Next();
      }
      ASSERT_EQ(map.size(), model.size());
    }
    for (const auto& [topic, value] : model) ASSERT_EQ(*map.Find({topic, "c", 1, 2}), value);
    std::map<std::string, uint64_t> walked;
    for (const auto& [key, value, live] : map.entries()) {
      if (live) walked[key.topic] = value;
    }
    EXPECT_EQ(walked, model);
    EXPECT_LE(map.entries().size(), 200u);  // slots are used again
  }
}

TEST(SlotMapTest, AnEntryKeepsItsSlotWhateverComesAndGoes) {
  SlotMap<int> map;
  map.FindOrInsert({"kept", "", 0, 0}) = 1;
  const int* place = map.Find({"kept", "", 0, 0});
  for (int i = 0; i < 1000; ++i) map.FindOrInsert({std::to_string(i), "", 0, 0}) = i;
  for (int i = 0; i < 1000; i += 2) map.Erase({std::to_string(i), "", 0, 0});
  EXPECT_EQ(map.Find({"kept", "", 0, 0}), place);
  EXPECT_EQ(map.entries()[0].key.topic, "kept");
  map.Clear();
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.Find({"kept", "", 0, 0}), nullptr);
}

}  // namespace
}  // namespace holdfast
