// Bytes that decay under an open engine: a cold read says so, for that key, and never answers
// wrongly.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stores/engine_on_storage.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

Delivery MakeDelivery(Engine& engine, SeededRng& rng) {
  std::string event(200 + rng.Below(1500), '\0');
  for (char& c : event) c = static_cast<char>(rng.Next());
  return {.id = engine.NewDeliveryId(), .topic = "t", .client = "c", .event = event};
}

// Proves: G4, G5, D6
TEST(ColdReadTest, AFlipUnderAnOpenEngineIsToldForThatKeyOnly) {
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(seed);
    SimClock clock;
    clock.JumpWhenAsked(absl::Milliseconds(50));
    SeededRng rng(seed);
    SimStorage storage;
    EngineOptions options;
    options.segment_bytes = uint64_t{64} << 10;
    options.value_cache_entries = 1;
    options.clock = &clock;
    options.rng = &rng;
    auto opened = OpenEngineOn(storage, options, /*threads=*/false);
    ASSERT_TRUE(opened.ok()) << opened.status();
    TickingEngine& engine = **opened;
    std::vector<Delivery> deliveries;
    for (int i = 0; i < 120; ++i) {  // the newest are in memory still
      deliveries.push_back(MakeDelivery(engine, rng));
      ASSERT_TRUE(engine.deliveries().Put(deliveries.back()).Wait().ok());
    }
    const SimDisk healthy = storage.disk();
    size_t told = 0;
    for (int round = 0; round < 400; ++round) {
      const std::vector<std::string> names = healthy.Names();
      const std::string name = names[rng.Below(names.size())];
      const std::string bytes = healthy.Contents(name);
      if (bytes.empty()) continue;
      const uint64_t at = rng.Below(bytes.size());
      const char flipped = static_cast<char>(bytes[at] ^ (1 << rng.Below(8)));
      storage.Damage(name, at, AsBytes({&flipped, 1}));
      size_t failed = 0;
      for (const Delivery& want : deliveries) {
        const auto stored = engine.deliveries().Get(want.id);
        if (stored.ok()) {
          EXPECT_TRUE(stored->delivery == want) << "wrong bytes of " << want.id;
        } else {
          EXPECT_EQ(stored.status().code(), absl::StatusCode::kDataLoss) << stored.status();
          ++failed;
        }
      }
      EXPECT_LE(failed, 1u) << name << " byte " << at;
      told += failed;
      storage.Damage(name, at, AsBytes({&bytes[at], 1}));
    }
    EXPECT_GT(told, 20u);
    storage.PowerOff();
  }
}

}  // namespace
}  // namespace holdfast
