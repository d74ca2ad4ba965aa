#include "journal/upkeep.h"

#include <gtest/gtest.h>

#include "journal/mark.h"
#include "tests/journal/live_journal.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

JournalOptions Options() {
  JournalOptions options;
  options.segment_bytes = kSegmentBytesMin;
  options.threads = false;
  return options;
}

class UpkeepTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(journal_.Open(Options())); }
  Mark MarkNow() { return ReadMark(storage_)->mark.value(); }

  SimClock clock_;
  SimStorage storage_;
  LiveJournal journal_{storage_, clock_};
};

TEST_F(UpkeepTest, MarkFollowsWhenAllHasBeenSyncedForAWhile) {
  const Commit commit = journal_.Append(1);
  ASSERT_OK(commit.Wait());
  journal_->Tick();
  EXPECT_NE(MarkNow().synced.value(), commit.lsn());
  clock_.Advance(absl::Milliseconds(100));
  journal_->Tick();
  EXPECT_EQ(MarkNow().synced.value(), commit.lsn());
  EXPECT_FALSE(MarkNow().clean);
}

TEST_F(UpkeepTest, NothingIsMarkedTwice) {
  ASSERT_OK(journal_.Append(1).Wait());
  clock_.Advance(absl::Milliseconds(100));
  journal_->Tick();
  const uint64_t sequence = MarkNow().sequence;
  clock_.Advance(absl::Milliseconds(100));
  journal_->Tick();
  EXPECT_EQ(MarkNow().sequence, sequence);
}

TEST_F(UpkeepTest, ARotationIsMarkedAtOnce) {
  Commit last;
  while (journal_->stats().segments < 2) last = journal_.Append({1}, 3000);
  ASSERT_OK(last.Wait());
  journal_->Tick();
  EXPECT_EQ(MarkNow().newest, MarkNow().end_segment);
  EXPECT_GT(MarkNow().newest, SegmentId(1));
}

// A kill loses about a second of the engine time, not the hours without an event.
TEST_F(UpkeepTest, TheHeartbeatKeepsTheEngineTime) {
  ASSERT_OK(journal_.Append(1).Wait());
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Hours(1));
    journal_->Tick();
    EXPECT_EQ(ReadMark(storage_)->heartbeat_ns, journal_->engine_clock().NowNanos());
  }
}

TEST_F(UpkeepTest, AFailedMarkPoisons) {
  ASSERT_OK(journal_.Append(1).Wait());
  storage_.SetFault(SimFault{.at = storage_.operations() + 1, .only = SimCall::kSyncData});
  clock_.Advance(absl::Milliseconds(100));
  journal_->Tick();
  EXPECT_TRUE(journal_->poisoned());
  const uint64_t changes = storage_.changes();
  clock_.Advance(absl::Seconds(10));
  journal_->Tick();
  EXPECT_FALSE(journal_->Close().ok());
  EXPECT_EQ(storage_.changes(), changes);
}

}  // namespace
}  // namespace holdfast
