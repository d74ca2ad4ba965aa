#include "bench/recovery_workload.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace holdfast::bench {
namespace {

// What a store that does as it is told holds after the cycles.
class RecoveryWorkloadTest : public testing::TestWithParam<RemovalOrder> {
 protected:
  std::map<std::string, std::string> RunAll(RecoveryWorkload& workload) {
    std::map<std::string, std::string> live;
    while (!workload.done()) {
      const Cycle cycle = workload.Next();
      EXPECT_TRUE(live.emplace(cycle.put.id, cycle.put.event).second);
      if (cycle.remove_id.empty()) continue;
      EXPECT_EQ(live.erase(std::string(cycle.remove_id)), 1u);
    }
    return live;
  }
};

TEST_P(RecoveryWorkloadTest, TheDigestIsThatOfWhatIsLive) {
  const RecoveryPlan plan{.live = 100, .cycles = 1'000, .event_bytes = 300, .order = GetParam()};
  RecoveryWorkload workload(plan);
  LiveDigest digest;
  for (const auto& [id, event] : RunAll(workload)) {
    EXPECT_EQ(id.size(), 40u);
    EXPECT_EQ(event.size(), 300u);
    digest.Add(id, event);
  }
  EXPECT_EQ(digest.count, plan.live);
  EXPECT_EQ(digest, workload.Digest());
}

TEST_P(RecoveryWorkloadTest, ALostOrOtherEventIsSeen) {
  RecoveryWorkload workload({.live = 10, .cycles = 50, .order = GetParam()});
  const auto live = RunAll(workload);
  for (const auto& [changed, event] : live) {
    LiveDigest lost, other;
    for (const auto& [id, text] : live) {
      if (id != changed) lost.Add(id, text);
      other.Add(id, id == changed ? "x" + text.substr(1) : text);
    }
    EXPECT_NE(lost, workload.Digest());
    EXPECT_NE(other, workload.Digest());
  }
}

INSTANTIATE_TEST_SUITE_P(Order, RecoveryWorkloadTest,
                         testing::Values(RemovalOrder::kFifo, RemovalOrder::kRandom));

}  // namespace
}  // namespace holdfast::bench
