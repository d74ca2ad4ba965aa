#include "tools/demo_temper.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace holdfast {
namespace {

using Act = DemoReply::Act;

// How often a client of `temper` does what on its `attempt`, over many events.
std::map<Act, int> Acts(Temper temper, uint32_t attempt) {
  std::map<Act, int> acts;
  for (uint64_t offset = 0; offset < 3'000; ++offset) {
    const uint64_t client = static_cast<uint64_t>(temper);
    EXPECT_EQ(TemperOf(client), temper);
    ++acts[ReplyTo({.seed = 7, .client = client, .offset = offset, .attempt = attempt}).act];
  }
  return acts;
}

TEST(DemoTemperTest, TempersRepeatAndHaveNames) {
  std::set<std::string> names;
  for (uint64_t client = 0; client < 5; ++client) {
    names.insert(TemperName(TemperOf(client)));
    EXPECT_EQ(TemperOf(client), TemperOf(client + 5));
  }
  EXPECT_EQ(names.size(), 5U);
}

TEST(DemoTemperTest, EachDoesWhatItsNameSays) {
  EXPECT_EQ(Acts(Temper::kFast, 1)[Act::kAck], 3'000);
  EXPECT_EQ(Acts(Temper::kSlow, 1)[Act::kAck], 3'000);
  EXPECT_GT(Acts(Temper::kNacking, 1)[Act::kNack], 300);
  EXPECT_EQ(Acts(Temper::kNacking, 2)[Act::kAck], 3'000);
  EXPECT_GT(Acts(Temper::kDying, 1)[Act::kClose], 3);
  EXPECT_EQ(Acts(Temper::kDying, 2)[Act::kAck], 3'000);
  EXPECT_GT(Acts(Temper::kPoison, 1)[Act::kNothing], 20);
}

// Otherwise it would not end as a dead letter.
TEST(DemoTemperTest, PoisonStaysPoison) {
  for (uint64_t offset = 0; offset < 500; ++offset) {
    std::set<Act> acts;
    for (uint32_t attempt = 1; attempt <= kDemoAttemptsMax; ++attempt) {
      acts.insert(ReplyTo({.seed = 7, .client = 4, .offset = offset, .attempt = attempt}).act);
    }
    EXPECT_EQ(acts.size(), 1U) << offset;
  }
}

TEST(DemoTemperTest, SlowAnswersComeInTimeAndOutOfOrder) {
  std::set<absl::Duration> delays;
  for (uint64_t offset = 0; offset < 500; ++offset) {
    delays.insert(ReplyTo({.seed = 7, .client = 1, .offset = offset, .attempt = 1}).after);
  }
  EXPECT_GT(delays.size(), 100U);
  EXPECT_LT(*delays.rbegin(), kDemoAckTimeout);
}

TEST(DemoTemperTest, TheSeedDecides) {
  int different = 0;
  for (uint64_t offset = 0; offset < 500; ++offset) {
    const auto delay = [&](uint64_t seed) {
      return ReplyTo({.seed = seed, .client = 1, .offset = offset, .attempt = 1}).after;
    };
    EXPECT_EQ(delay(7), delay(7));
    different += delay(7) != delay(8);
  }
  EXPECT_GT(different, 400);
}

}  // namespace
}  // namespace holdfast
