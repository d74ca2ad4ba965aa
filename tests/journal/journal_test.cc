// The journal without threads, on the simulated disk: every run of a seed is the same.
#include "journal/journal.h"

#include <gtest/gtest.h>

#include <numeric>

#include "journal/mark.h"
#include "tests/journal/live_journal.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/recording_log.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr uint64_t kSegmentBytes = kSegmentBytesMin;

JournalOptions Options() {
  JournalOptions options;
  options.segment_bytes = kSegmentBytes;
  options.threads = false;
  return options;
}
JournalOptions Written() {
  JournalOptions options = Options();
  options.durability = Durability::kWritten;
  return options;
}
JournalOptions Interval() {
  JournalOptions options = Options();
  options.commit_interval = absl::Milliseconds(100);
  return options;
}

std::vector<uint64_t> UpTo(uint64_t last) {
  std::vector<uint64_t> values(last);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

class JournalTest : public testing::Test {
 protected:
  void Open(const JournalOptions& options) { ASSERT_OK(journal_.Open(options, &log_)); }
  // A new process, after the old one was killed (what was in flight is gone) or lost power.
  void Restart(SimDisk disk, const JournalOptions& options) {
    storage_->PowerOff();
    journal_.Destroy();
    next_storage_ = std::make_unique<SimStorage>(std::move(disk));
    next_ = std::make_unique<LiveJournal>(*next_storage_, clock_);
    ASSERT_OK(next_->Open(options));
  }
  SimDisk PowerCut() {
    const SimDisk disk = storage_->disk();
    return disk.PowerCut(std::vector<bool>(disk.Loose().size(), false));
  }

  SimClock clock_;
  RecordingLog log_;
  std::unique_ptr<SimStorage> storage_ = std::make_unique<SimStorage>();
  LiveJournal journal_{*storage_, clock_};
  std::unique_ptr<SimStorage> next_storage_;
  std::unique_ptr<LiveJournal> next_;
};

// Proves: G1
TEST_F(JournalTest, WhatWaitConfirmedSurvivesAPowerCut) {
  Open(Options());
  EXPECT_OK(journal_.Append({1, 2, 3}).Wait());
  Restart(PowerCut(), Options());
  EXPECT_EQ(next_->Values(), UpTo(3));
}

// Proves: G1
TEST_F(JournalTest, LevelWrittenSurvivesAProcessKill) {
  Open(Written());
  EXPECT_OK(journal_.Append(1).Wait());
  EXPECT_EQ(journal_->stats().flushes, 0u);
  Restart(storage_->disk().Kill(/*seed=*/1, /*late=*/false), Written());
  EXPECT_EQ(next_->Values(), UpTo(1));
}

TEST_F(JournalTest, ABatchIsConfirmedAsAWhole) {
  Open(Options());
  const Commit commit = journal_.Append({1, 2, 3});
  EXPECT_EQ(commit.lsn() % 3, 0u);
  EXPECT_FALSE(commit.confirmed());
  EXPECT_OK(commit.Wait());
  EXPECT_TRUE(commit.confirmed());
}

TEST_F(JournalTest, CallbacksComeInOrderAndMayAppend) {
  Open(Options());
  std::vector<int> calls;
  const Commit first = journal_.Append(1);
  const Commit second = journal_.Append(2);
  second.Then([&](const Status&) { calls.push_back(2); });
  first.Then([&](const Status& status) {
    EXPECT_OK(status);
    calls.push_back(1);
    journal_.Append(3).Then([&](const Status&) { calls.push_back(3); });
  });
  EXPECT_TRUE(calls.empty());
  EXPECT_OK(second.Wait());
  journal_->Tick();
  EXPECT_EQ(calls, (std::vector<int>{1, 2, 3}));
}

TEST_F(JournalTest, ACallbackForWhatIsConfirmedRunsAtOnce) {
  Open(Options());
  const Commit commit = journal_.Append(1);
  EXPECT_OK(commit.Wait());
  bool called = false;
  commit.Then([&](const Status& status) { called = status.ok(); });
  EXPECT_TRUE(called);
}

TEST_F(JournalTest, AnIntervalIsKeptByTick) {
  Open(Interval());
  const Commit commit = journal_.Append(1);
  journal_->Tick();
  EXPECT_FALSE(commit.confirmed());
  clock_.Advance(absl::Milliseconds(100));
  journal_->Tick();
  EXPECT_TRUE(commit.confirmed());
  EXPECT_EQ(journal_->stats().flushes, 1u);
  EXPECT_EQ(journal_->stats().durable_writes, 0u);
}

TEST_F(JournalTest, WithoutThreadsWaitDoesNotNeedTheClock) {
  Open(Interval());
  EXPECT_OK(journal_.Append(1).Wait());
}

TEST_F(JournalTest, LevelWrittenIsSyncedEachSecond) {
  Open(Written());
  const Commit commit = journal_.Append(1);
  EXPECT_OK(commit.Wait());
  clock_.Advance(absl::Seconds(1));
  journal_->Tick();
  EXPECT_EQ(journal_->stats().synced.value(), commit.lsn());
}

TEST_F(JournalTest, FlushSyncsWhateverTheLevel) {
  Open(Written());
  const Commit commit = journal_.Append(1);
  EXPECT_OK(journal_->Flush());
  EXPECT_EQ(journal_->stats().synced.value(), commit.lsn());
}

// Groups, Links and rotations as they come: everything is there again, in order, at every level.
// Proves: G2
TEST_F(JournalTest, SegmentsRotateAndEverythingComesBack) {
  for (const JournalOptions& options : {Options(), Written(), Interval()}) {
    SimStorage storage;
    LiveJournal journal(storage, clock_);
    ASSERT_OK(journal.Open(options));
    for (uint64_t value = 1; value <= 200; ++value) {
      ASSERT_OK(journal.Append({value}, /*padding=*/value * 37 % 5000).refused());
    }
    ASSERT_OK(journal->Flush());
    EXPECT_GE(journal->stats().segments, 3u);
    ASSERT_OK(journal->Close());
    ASSERT_OK(journal.Open(options));
    EXPECT_TRUE(journal.report().clean);
    EXPECT_EQ(journal.Values(), UpTo(200));
  }
}

// Proves: G4
TEST_F(JournalTest, RecordsAreReadBeforeAndAfterTheyAreWritten) {
  Open(Interval());
  std::vector<Lsn> lsns;
  for (uint64_t value = 1; value <= 50; ++value) {
    lsns.push_back(Lsn(journal_.Append({value, 1000 + value}, 700).lsn()));
    for (uint64_t earlier = 1; earlier <= value; earlier += 7) {
      const StatusOr<uint64_t> read = journal_.Read(lsns[earlier - 1]);
      ASSERT_OK(read.status());
      EXPECT_EQ(*read, 1000 + earlier);
    }
  }
}

TEST_F(JournalTest, CloseMarksTheStoreCleanAndRefusesAppends) {
  Open(Options());
  ASSERT_OK(journal_.Append(1).refused());
  EXPECT_OK(journal_->Close());
  EXPECT_OK(journal_->Close());
  EXPECT_EQ(DetailOf(journal_.Append(2).Wait()), Detail::kClosed);
  const StatusOr<MarkView> view = ReadMark(*storage_);
  ASSERT_OK(view.status());
  EXPECT_TRUE(view->mark->clean);
  EXPECT_EQ(view->mark->synced, journal_->stats().appended);
}

TEST_F(JournalTest, ADestroyedJournalHasConfirmedWhatWasAppended) {
  Open(Options());
  ASSERT_OK(journal_.Append(1).refused());
  journal_.Destroy();
  ASSERT_OK(journal_.Open(Options()));
  EXPECT_TRUE(journal_.report().clean);
  EXPECT_EQ(journal_.Values(), UpTo(1));
}

// --- A disk that fails ---

// Whichever operation fails: who was told OK stays, who was not gets UNKNOWN, and nothing is
// written any more; reopening shows a prefix that holds everything confirmed. Proves: G2 G3
TEST_F(JournalTest, EveryFailedOperationPoisonsAndLosesNothingConfirmed) {
  for (const JournalOptions& options : {Options(), Written(), Interval()}) {
    for (const SimFault::Effect effect :
         {SimFault::Effect::kNothing, SimFault::Effect::kTorn, SimFault::Effect::kUnsynced,
          SimFault::Effect::kQueueLost}) {
      for (uint64_t at = 1; at < 60; ++at) {
        SCOPED_TRACE(testing::Message() << "operation " << at << " effect " << int(effect));
        SimStorage storage(SimDisk(), {.seed = at});
        LiveJournal journal(storage, clock_);
        ASSERT_OK(journal.Open(options));
        storage.SetFault(SimFault{.at = storage.operations() + at, .effect = effect});
        std::vector<uint64_t> confirmed;
        bool failed = false;
        for (uint64_t value = 1; value <= 60; ++value) {
          const Commit commit = journal.Append({value}, 3000);
          const Status status = value % 3 == 0 ? commit.Wait() : commit.refused();
          if (value % 3 == 0 && status.ok()) confirmed.push_back(value);
          if (!status.ok()) {
            EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
            failed = true;
          }
          if (failed) {
            EXPECT_FALSE(commit.Wait().ok());
          }
        }
        if (!storage.fault_was_met()) break;
        storage.SetFault(std::nullopt);
        const uint64_t changes = storage.changes();
        if (journal->poisoned()) {
          EXPECT_FALSE(journal->Close().ok());
          EXPECT_EQ(storage.changes(), changes);
        }
        SimDisk disk = storage.disk();
        storage.PowerOff();
        journal.Destroy();
        if (options.durability == Durability::kSynced) {
          disk = disk.PowerCut(std::vector<bool>(disk.Loose().size(), false));
        } else {
          disk = disk.Kill(at, /*late=*/false);
        }
        SimStorage after(std::move(disk));
        LiveJournal reopened(after, clock_);
        ASSERT_OK(reopened.Open(options));
        const std::vector<uint64_t> values = reopened.Values();
        EXPECT_EQ(values, UpTo(values.size()));
        EXPECT_GE(values.size(), confirmed.empty() ? 0 : confirmed.back());
      }
    }
  }
}

TEST_F(JournalTest, InOneFailureEachCallerGetsItsOwnResult) {
  Open(Options());
  const Commit confirmed = journal_.Append(1);
  ASSERT_OK(confirmed.Wait());
  const Commit lost = journal_.Append(2);
  storage_->SetFault(SimFault{.at = storage_->operations() + 1, .only = SimCall::kWaitOne});
  Status called;
  lost.Then([&](const Status& status) { called = status; });
  EXPECT_EQ(DetailOf(lost.Wait()), Detail::kPoisoned);
  EXPECT_EQ(DetailOf(called), Detail::kPoisoned);
  EXPECT_OK(confirmed.Wait());
  EXPECT_TRUE(journal_->poisoned());
  EXPECT_EQ(DetailOf(journal_.Append(3).Wait()), Detail::kPoisoned);
  EXPECT_EQ(log_.Count("reopen the store"), 1u);
}

}  // namespace
}  // namespace holdfast
