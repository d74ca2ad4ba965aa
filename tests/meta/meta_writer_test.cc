#include "meta/meta_writer.h"

#include <gtest/gtest.h>

#include <vector>

#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Fault = FaultyMeta::Fault;
using Call = FaultyMeta::Call;

class MetaWriterTest : public testing::Test {
 protected:
  // The faults of the writes that come, one each; `between` runs behind the first.
  void Script(std::vector<Fault> faults, std::function<void()> between = {}) {
    faulty_.SetFaults([this, faults = std::move(faults), between](Call call) {
      if (call == Call::kGet && between && sent_ == 1) between();
      if (call != Call::kWrite) return Fault::kNone;
      const size_t at = sent_++;
      return at < faults.size() ? faults[at] : Fault::kNone;
    });
  }

  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta faulty_{meta_};
  MetaWriter writer_{faulty_, 7};
  size_t sent_ = 0;
};

TEST_F(MetaWriterTest, WritesAreConditional) {
  ASSERT_OK_AND_ASSIGN(const uint64_t first, writer_.Put("k", 0, "a"));
  EXPECT_FAILS(writer_.Put("k", 0, "b"), kAborted, kConflict);
  ASSERT_OK_AND_ASSIGN(const uint64_t second, writer_.Put("k", first, "b"));
  EXPECT_GT(second, first);
  EXPECT_FAILS(writer_.Put("k", first, "c"), kAborted, kConflict);
  EXPECT_EQ(meta_.Get("k", {})->value, "b");
  EXPECT_FAILS(writer_.Delete("k", first), kAborted, kConflict);
  ASSERT_OK_AND_ASSIGN(const uint64_t third, writer_.Delete("k", second));
  EXPECT_EQ(third, meta_.List("", {})->revision);
  EXPECT_FAILS(writer_.Delete("k", second), kNotFound, kNone);
}

// Proves: S3
TEST_F(MetaWriterTest, AWriteWhoseAnswerWasLostIsFoundAndNotMadeTwice) {
  Script({Fault::kUnanswered});
  ASSERT_OK_AND_ASSIGN(const uint64_t revision, writer_.Put("k", 0, "a"));
  EXPECT_EQ(sent_, 1u);
  EXPECT_EQ(meta_.Get("k", {})->revision, revision);
  EXPECT_EQ(meta_.Get("k", {})->version, 1u);
}

// Proves: S3
TEST_F(MetaWriterTest, AWriteThatWasLostGoesOutAgainUnderItsCondition) {
  Script({Fault::kLost, Fault::kLost});
  ASSERT_OK(writer_.Put("k", 0, "a"));
  EXPECT_EQ(sent_, 3u);
  EXPECT_EQ(meta_.Get("k", {})->version, 1u);
}

// Proves: S3
TEST_F(MetaWriterTest, WhatCannotBeToldIsUnknown) {
  // Its answer is lost, and before anybody looks another one has written over it.
  Script({Fault::kUnanswered},
         [this] { ASSERT_OK(meta_.Put("k", "other's", {.request_id = "x"})); });
  EXPECT_FAILS(writer_.Put("k", 0, "a"), kUnavailable, kUnknownOutcome);
  EXPECT_EQ(meta_.Get("k", {})->value, "other's");
  // Never answered.
  sent_ = 0;
  Script({Fault::kLost, Fault::kLost, Fault::kLost, Fault::kLost});
  EXPECT_FAILS(writer_.Put("l", 0, "a"), kUnavailable, kUnknownOutcome);
  EXPECT_EQ(sent_, 3u);
  // Nor can it be read back.
  faulty_.SetFaults(
      [](Call call) { return call == Call::kWrite ? Fault::kUnanswered : Fault::kUnreachable; });
  EXPECT_FAILS(writer_.Put("m", 0, "a"), kUnavailable, kUnknownOutcome);
  EXPECT_OK(meta_.Get("m", {}));
}

// Proves: S2
TEST_F(MetaWriterTest, AWriteThatDidNotGoOutDidNotHappen) {
  Script({Fault::kUnreachable});
  const auto refused = writer_.Put("k", 0, "a");
  EXPECT_EQ(MetaResultOf(refused.status()), MetaResult::kUnavailable);
  EXPECT_EQ(sent_, 1u);
  EXPECT_FAILS(meta_.Get("k", {}), kNotFound, kNone);
}

// Proves: S3
TEST_F(MetaWriterTest, ADeleteWhoseAnswerWasLostIsResolved) {
  ASSERT_OK_AND_ASSIGN(uint64_t revision, writer_.Put("k", 0, "a"));
  Script({Fault::kUnanswered});
  EXPECT_EQ(*writer_.Delete("k", revision), 0u) << "it is gone, and by whom is not known";
  ASSERT_OK_AND_ASSIGN(revision, meta_.Put("k", "b", {}));
  sent_ = 0;
  Script({Fault::kLost});
  EXPECT_OK(writer_.Delete("k", revision));
  EXPECT_FAILS(meta_.Get("k", {}), kNotFound, kNone);
  ASSERT_OK_AND_ASSIGN(revision, meta_.Put("k", "c", {}));
  sent_ = 0;
  Script({Fault::kLost, Fault::kLost, Fault::kLost});
  EXPECT_FAILS(writer_.Delete("k", revision), kUnavailable, kUnknownOutcome);
}

}  // namespace
}  // namespace holdfast
