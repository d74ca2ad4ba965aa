#include "runtime/flight_id.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "journal/base/seeded_rng.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

TEST(FlightIdsTest, IdsOfEveryFormComeBack) {
  FlightIds ids;
  std::map<std::string, FlightKey> keys;
  std::set<FlightKey> different;
  for (const std::string id : {"",
                               "0",
                               "00",
                               "1",
                               "01",
                               "10",
                               "a",
                               "a0",
                               "a00",
                               "a1",
                               "a01",
                               "a10",
                               "1a",
                               "99999999999999",
                               "100000000000000",
                               "999999999999999",
                               "a99999999999999",
                               "a100000000000000",
                               "12345678901234567890",
                               "a00000000000000000001",
                               "7-9e3779b97f4a7c15-1",
                               "7-9e3779b97f4a7c15-11",
                               "71-9e3779b97f4a7c15-1",
                               "\xff\xfe-3"}) {
    EXPECT_EQ(keys.contains(id), false);
    keys[id] = ids.Add(id);
    EXPECT_TRUE(different.insert(keys[id]).second) << id;
  }
  for (const auto& [id, key] : keys) {
    EXPECT_EQ(ids.Find(id), key) << id;
    EXPECT_EQ(ids.TextOf(key).view(), id);
  }
}

// Those that are no number behind one of few prefixes too.
TEST(FlightIdsTest, MoreIdsThanThereArePrefixesComeBack) {
  FlightIds ids;
  std::map<std::string, FlightKey> keys;
  for (size_t i = 0; i < 2 * FlightIds::kPrefixesMax; ++i) {
    for (const char* end : {"-1", "-2"}) {
      const std::string id = std::to_string(i) + end;
      keys[id] = ids.Add(id);
    }
  }
  for (const auto& [id, key] : keys) {
    ASSERT_EQ(ids.Find(id), key) << id;
    ASSERT_EQ(ids.TextOf(key).view(), id);
  }
  const std::string kept = std::to_string(2 * FlightIds::kPrefixesMax - 1) + "-1";
  ids.Remove(keys[kept]);
  EXPECT_EQ(ids.Find(kept), std::nullopt);
  EXPECT_NE(ids.Add(kept), keys[kept]) << "the key of an id that ended names no other flight";
}

TEST(FlightIdsTest, AnyIdIsItself) {
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    FlightIds ids;
    std::map<std::string, FlightKey> in_flight;
    for (int i = 0; i < 2'000; ++i) {
      std::string id(rng.Below(18), ' ');
      for (char& c : id) c = "0001239-a"[rng.Below(9)];
      const auto known = in_flight.find(id);
      const std::optional<FlightKey> found = ids.Find(id);
      if (known != in_flight.end()) {
        ASSERT_EQ(found, known->second) << id;
        ASSERT_EQ(ids.TextOf(known->second).view(), id);
        if (!rng.OneIn(2)) continue;
        ids.Remove(known->second);
        in_flight.erase(known);
        continue;
      }
      for (const auto& [other, key] : in_flight) ASSERT_NE(found, key) << id << " is " << other;
      in_flight[id] = ids.Add(id);
    }
  }
}

}  // namespace
}  // namespace holdfast
