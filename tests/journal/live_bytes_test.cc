#include "journal/live_bytes.h"

#include <gtest/gtest.h>

#include <map>

#include "journal/base/seeded_rng.h"

namespace holdfast {
namespace {

TEST(LiveBytesTest, IsTheSumOfWhatWasAddedAndNotRemoved) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    LiveBytes live;
    std::map<uint64_t, LiveBytes::Share> model;
    uint64_t oldest = 10 + rng.Below(5);
    uint64_t total = 0;
    for (int step = 0; step < 2'000; ++step) {
      // Segments come in front and behind, and the oldest run out of records.
      const uint64_t segment = oldest - 3 + rng.Below(12);
      LiveBytes::Share& share = model[segment];
      if (share.records > 0 && rng.OneIn(2)) {
        const uint64_t bytes = share.records == 1 ? share.bytes : rng.Below(share.bytes + 1);
        live.Remove(SegmentId(segment), bytes);
        --share.records;
        share.bytes -= bytes;
        total -= bytes;
      } else {
        const uint64_t bytes = rng.Below(1'000);
        live.Add(SegmentId(segment), bytes);
        ++share.records;
        share.bytes += bytes;
        total += bytes;
      }
      if (rng.OneIn(20)) ++oldest;
      ASSERT_EQ(live.total().bytes, total);
      for (const auto& [number, kept] : model) {
        ASSERT_EQ(live.of(SegmentId(number)).records, kept.records) << number;
        ASSERT_EQ(live.of(SegmentId(number)).bytes, kept.bytes) << number;
      }
    }
    live.Clear();
    EXPECT_EQ(live.total().records, 0u);
    live.Add(SegmentId(3), 7);
    EXPECT_EQ(live.of(SegmentId(3)).bytes, 7u);
  }
}

}  // namespace
}  // namespace holdfast
