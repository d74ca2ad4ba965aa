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
  UseDisk(3);
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

}  // namespace
}  // namespace holdfast
