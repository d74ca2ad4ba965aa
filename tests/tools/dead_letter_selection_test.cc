#include "tools/dead_letter_selection.h"

#include <gtest/gtest.h>

#include <sstream>

#include "holdfast/engine.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class DeadLetterSelectionTest : public testing::Test {
 protected:
  StoredDeadLetter Some(std::string id = "d", absl::Duration age = absl::Minutes(5)) {
    return {.dead_letter = {.delivery_id = std::move(id),
                            .reason = "no answer",
                            .topic = "orders",
                            .client = "billing",
                            .died = clock_.WallNow() - age}};
  }
  bool Taken(const DeadLetterFilter& filter, uint64_t replays = 0) {
    StoredDeadLetter stored = Some();
    stored.replays = replays;
    return Matches(filter, stored, clock_.WallNow());
  }

  std::ostringstream out_, err_;
  SimClock clock_;
  Console console_{.out = out_, .err = err_, .clock = clock_};
};

TEST_F(DeadLetterSelectionTest, NoConditionTakesAll) { EXPECT_TRUE(Taken({})); }

TEST_F(DeadLetterSelectionTest, NamesAreWholeAndReasonsArePart) {
  EXPECT_TRUE(Taken({.topic = "orders", .client = "billing", .reason = "answer"}));
  EXPECT_FALSE(Taken({.topic = "order"}));
  EXPECT_FALSE(Taken({.topic = ""}));
  EXPECT_FALSE(Taken({.client = "Billing"}));
  EXPECT_FALSE(Taken({.topic = "orders", .client = "mailer"}));
  EXPECT_FALSE(Taken({.reason = "answered"}));
}

TEST_F(DeadLetterSelectionTest, TheAgeItselfIsOldEnough) {
  EXPECT_TRUE(Taken({.older_than = absl::Minutes(5)}));
  EXPECT_FALSE(Taken({.older_than = absl::Minutes(5) + absl::Nanoseconds(1)}));
  StoredDeadLetter later = Some("d", -absl::Hours(1));
  EXPECT_FALSE(Matches({.older_than = absl::ZeroDuration()}, later, clock_.WallNow()))
      << "the wall clock was set back since";
}

TEST_F(DeadLetterSelectionTest, OneRedriveIsOneTooMany) {
  EXPECT_TRUE(Taken({.not_redriven = true}, 0));
  EXPECT_FALSE(Taken({.not_redriven = true}, 1));
  EXPECT_TRUE(Taken({}, 1));
}

TEST_F(DeadLetterSelectionTest, TheOldestComeFirstAndAreTheOnesThatAreKept) {
  ASSERT_OK_AND_ASSIGN(const auto engine, Engine::Open({.backend = Backend::kMemory}));
  for (const auto& [id, minutes] : std::initializer_list<std::pair<const char*, int>>{
           {"b", 3}, {"e", 9}, {"a", 3}, {"d", 1}, {"c", 7}}) {
    const DeadLetter dead = Some(id, absl::Minutes(minutes)).dead_letter;
    ASSERT_OK(engine->dead_letters().Record(dead).Wait());
  }
  const std::vector<std::string> all = {"e", "c", "a", "b", "d"};
  for (uint64_t count = 1; count <= all.size() + 1; ++count) {
    const DeadLetterSelection some =
        SelectDeadLetters(engine->dead_letters(), {.count_max = count}, console_);
    EXPECT_OK(some.unreadable);
    EXPECT_EQ(some.ids, std::vector<std::string>(
                            all.begin(), all.begin() + std::min<uint64_t>(count, all.size())));
  }
  EXPECT_EQ(SelectDeadLetters(engine->dead_letters(), {}, console_).ids, all);
}

}  // namespace
}  // namespace holdfast
