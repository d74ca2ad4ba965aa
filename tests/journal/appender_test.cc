#include "journal/appender.h"

#include <gtest/gtest.h>

#include "tests/journal/live_journal.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
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
JournalOptions Interval() {
  JournalOptions options = Options();
  options.commit_interval = absl::Milliseconds(100);
  return options;
}

class AppenderTest : public testing::Test {
 protected:
  void Open(const JournalOptions& options) { ASSERT_OK(journal_.Open(options)); }

  SimClock clock_;
  std::unique_ptr<SimStorage> storage_ = std::make_unique<SimStorage>();
  LiveJournal journal_{*storage_, clock_};
};

// The window in doubt has to fit into one new segment.
// Proves: G7
TEST_F(AppenderTest, AtMostHalfASegmentIsUnsynced) {
  Open(Interval());
  uint64_t bytes = 0;
  Lsn synced;
  for (uint64_t value = 1; value <= 100; ++value) {
    ASSERT_OK(journal_.Append({value}, 3000).refused());
    bytes += 3100;
    if (const Lsn now = journal_->stats().synced; now > synced) {
      synced = now;
      bytes = 0;
    }
    ASSERT_LE(bytes, kSegmentBytes / 2);
  }
}

TEST_F(AppenderTest, ABatchOverTheLimitIsRefusedWithoutTrace) {
  Open(Options());
  const Commit refused = journal_.Append({1}, kSegmentBytes / 4);
  EXPECT_EQ(DetailOf(refused.Wait()), Detail::kLimit);
  EXPECT_TRUE(journal_.Values().empty());
  EXPECT_OK(journal_.Append({1}, kSegmentBytes / 4 - 100).Wait());
}

class FullDiskTest : public AppenderTest {
 protected:
  // Room for MARK, LOCK, and so many segments.
  void UseDisk(uint64_t segments) {
    SimDiskOptions options;
    options.bytes_max = segments * kSegmentBytes + 64 * 1024;
    storage_ = std::make_unique<SimStorage>(SimDisk(options));
    journal_ptr_ = std::make_unique<LiveJournal>(*storage_, clock_);
    ASSERT_OK(journal_ptr_->Open(Options()));
  }
  LiveJournal& journal() { return *journal_ptr_; }
  // Appends until it is refused; returns the refusal.
  Status Fill(Claim claim) {
    for (;;) {
      const Commit commit = journal().Append({++value_}, 3000, claim);
      if (!commit.refused().ok()) {
        --value_;
        return commit.refused();
      }
      EXPECT_OK(commit.Wait());
    }
  }

  std::unique_ptr<LiveJournal> journal_ptr_;
  uint64_t value_ = 0;
};

// Proves: D3
TEST_F(FullDiskTest, PutsAreRefusedWhileRemovesGoOn) {
  UseDisk(6);
  EXPECT_EQ(DetailOf(Fill(Claim::kGrow)), Detail::kDiskFull);
  EXPECT_FALSE(journal()->poisoned());
  const uint64_t refused_at = value_;
  EXPECT_EQ(DetailOf(Fill(Claim::kShrink)), Detail::kDiskFull);
  EXPECT_GE(value_, refused_at + 10);
  EXPECT_FALSE(journal()->poisoned());
  EXPECT_OK(journal()->Close());
}

// Proves: D3
TEST_F(FullDiskTest, PutsGoOnByThemselvesWhenSpaceReturns) {
  UseDisk(4);
  ASSERT_OK(storage_->MakeFolder("other"));
  {
    StatusOr<std::unique_ptr<File>> file = storage_->OpenFile("other/big", OpenMode::kCreate);
    ASSERT_OK(file.status());
    ASSERT_OK((*file)->WriteZeros(2 * kSegmentBytes));
  }
  EXPECT_EQ(DetailOf(Fill(Claim::kGrow)), Detail::kDiskFull);
  ASSERT_OK(storage_->Remove("other/big"));
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_OK(journal().Append({++value_}, 3000).Wait());
}

// Of three segments one is for what shrinks the state, one for compaction and one for the next
// open: the end of them is clean, and the open works.
// Proves: G7, G8, F26
TEST_F(FullDiskTest, TheReserveIsThreeSegments) {
  UseDisk(10);
  EXPECT_EQ(DetailOf(Fill(Claim::kGrow)), Detail::kDiskFull);
  EXPECT_TRUE(journal().Space().short_of_space);
  const JournalSpace space = journal().Space();
  const uint64_t before = value_;
  EXPECT_EQ(DetailOf(Fill(Claim::kShrink)), Detail::kDiskFull);
  EXPECT_EQ(journal().Space().active, space.active + 1);
  EXPECT_GE(value_ - before, 13u);
  EXPECT_EQ(DetailOf(Fill(Claim::kReclaim)), Detail::kDiskFull);
  EXPECT_EQ(journal().Space().active, space.active + 2);
  EXPECT_FALSE(journal()->poisoned());

  const uint64_t values = value_;
  SimStorage killed(storage_->disk().Kill(1, /*late=*/false));
  LiveJournal reopened(killed, clock_);
  ASSERT_OK(reopened.Open(Options()));
  EXPECT_EQ(reopened.Values().size(), values);
}

// No space comes back, but a segment goes: its file is the space.
// Proves: G8
TEST_F(FullDiskTest, PutsGoOnWhenSegmentsAreRetired) {
  UseDisk(10);
  EXPECT_EQ(DetailOf(Fill(Claim::kGrow)), Detail::kDiskFull);
  for (int round = 0; round < 5; ++round) {
    const SegmentId active = journal().Space().active;
    ASSERT_OK(journal()->RetireBelow(journal().Space().sealed[2].segment));
    journal()->Tick();
    EXPECT_OK(journal().Append({++value_}, 3000).Wait());
    EXPECT_EQ(DetailOf(Fill(Claim::kGrow)), Detail::kDiskFull);
    EXPECT_EQ(journal().Space().active, active + 2);
  }
}

// Every open takes what the one before it had made ahead, and gives back what it did not need: it
// costs the blocks that it wrote, not a segment. Eight of these are less than the reserve.
// Proves: G7, G8
TEST_F(FullDiskTest, ACrashLoopOfOpensOnAFullDiskGoesOn) {
  UseDisk(10);
  EXPECT_EQ(DetailOf(Fill(Claim::kGrow)), Detail::kDiskFull);
  for (uint64_t round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    const SimDisk disk = storage_->disk();
    SimDisk crashed = round % 2 == 0
                          ? disk.Kill(round, /*late=*/false)
                          : disk.PowerCut(std::vector<bool>(disk.Loose().size(), false));
    journal_ptr_.reset();
    storage_ = std::make_unique<SimStorage>(std::move(crashed));
    journal_ptr_ = std::make_unique<LiveJournal>(*storage_, clock_);
    ASSERT_OK(journal().Open(Options()));
    ASSERT_EQ(journal().Values().size(), value_);
    journal()->Tick();
    ASSERT_OK(journal().Append({++value_}, 100, Claim::kShrink).Wait());
  }
  ASSERT_OK(journal()->RetireBelow(journal().Space().active));
  clock_.Advance(absl::Seconds(1));
  journal()->Tick();
  EXPECT_OK(journal().Append({++value_}, 3000).Wait());
}

// The open itself is cut short, again and again, before it has a segment.
// Proves: G7
TEST_F(FullDiskTest, AnOpenThatIsCutShortAnywhereIsFollowedByOneThatWorks) {
  UseDisk(10);
  EXPECT_EQ(DetailOf(Fill(Claim::kGrow)), Detail::kDiskFull);
  const SimDisk full = storage_->disk().Kill(1, /*late=*/false);
  std::vector<SimDisk> cuts;
  {
    SimStorage storage(full);
    LiveJournal journal(storage, clock_);
    storage.SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
      if (Changes(operation.call)) cuts.push_back(disk);
    });
    ASSERT_OK(journal.Open(Options()));
    storage.SetObserver(nullptr);
  }
  ASSERT_GT(cuts.size(), 10u);
  for (size_t i = 0; i < cuts.size(); ++i) {
    SCOPED_TRACE(i);
    for (const std::vector<bool>& kept : CutChoices(cuts[i].Loose().size(), 8, i)) {
      SimStorage storage(cuts[i].PowerCut(kept));
      LiveJournal journal(storage, clock_);
      ASSERT_OK(journal.Open(Options()));
      ASSERT_EQ(journal.Values().size(), value_);
    }
  }
}

}  // namespace
}  // namespace holdfast
