#include "journal/upkeep.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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
  while (journal_.Space().active == SegmentId(1)) last = journal_.Append({1}, 3000);
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

// --- Retirement ---

class RetireTest : public UpkeepTest {
 protected:
  // Appends values until segment `segment` is active; all are confirmed.
  void FillTo(uint64_t segment) {
    while (journal_.Space().active < SegmentId(segment)) {
      ASSERT_OK(journal_.Append({++value_}, 3000).Wait());
      journal_->Tick();
    }
    ASSERT_OK(journal_.Append({++value_}, 3000).Wait());
    journal_->Tick();
  }
  std::vector<SegmentId> Segments() {
    std::vector<SegmentId> segments;
    for (const SealedSegment& sealed : journal_.Space().sealed) segments.push_back(sealed.segment);
    return segments;
  }
  uint64_t BytesOnDisk() {
    uint64_t bytes = 0;
    const std::vector<std::string> names = *storage_.List(kJournalFolder);
    for (const std::string& name : names) {
      bytes += *(*storage_.OpenFile(std::string(kJournalFolder) + "/" + name, OpenMode::kReadOnly))
                    ->Size();
    }
    return bytes;
  }

  uint64_t value_ = 0;
};

TEST_F(RetireTest, WhatIsBelowLeavesTheChain) {
  FillTo(6);
  const Lsn last = journal_.Space().sealed[2].last;
  ASSERT_OK(journal_->RetireBelow(SegmentId(4)));
  EXPECT_EQ(Segments(), (std::vector<SegmentId>{SegmentId(4), SegmentId(5)}));
  EXPECT_EQ(MarkNow().oldest, SegmentId(4));
  for (uint64_t id = 1; id < 4; ++id) {
    EXPECT_FALSE(storage_.OpenFile(SegmentFileName(SegmentId(id)), OpenMode::kReadOnly).ok());
  }
  journal_->Tick();
  EXPECT_EQ(journal_.Space().disk_bytes, BytesOnDisk());

  ASSERT_OK(journal_->Close());
  ASSERT_OK(journal_.Open(Options()));
  EXPECT_TRUE(journal_.report().clean);
  EXPECT_EQ(journal_.Values().front(), last.value() + 1);  // the values count up as LSNs do
  EXPECT_EQ(journal_.Values().back(), value_);
  EXPECT_EQ(Segments(), (std::vector<SegmentId>{SegmentId(4), SegmentId(5), SegmentId(6)}));
  EXPECT_EQ(journal_.Space().disk_bytes, BytesOnDisk());
}

// What an open takes over says the same as what the journal before it kept.
TEST_F(RetireTest, TheBooksAreTheSameAfterAnOpen) {
  FillTo(4);
  const std::vector<SealedSegment> before = journal_.Space().sealed;
  ASSERT_OK(journal_->Close());
  ASSERT_OK(journal_.Open(Options()));
  std::vector<SealedSegment> after = journal_.Space().sealed;
  EXPECT_EQ(after.size(), 4u);
  EXPECT_EQ(after.back().last, Lsn(value_));
  EXPECT_LT(after.back().file_bytes, kSegmentBytesMin);  // cut short
  after.pop_back();
  EXPECT_EQ(after, before);
}

TEST_F(RetireTest, LaterLinksSayTheNewOldest) {
  FillTo(4);
  ASSERT_OK(journal_->RetireBelow(SegmentId(3)));
  FillTo(6);
  const auto file = storage_.OpenFile(SegmentFileName(SegmentId(6)), OpenMode::kReadOnly);
  ASSERT_OK(file);
  std::vector<std::byte> head(kFirstGroupOffset);
  ASSERT_OK((*file)->ReadAt(0, head));
  const Life life = DecodeSegmentHeader(ByteView(head).first(kSegmentHeaderBytes))->life_of();
  const LinkView link = DecodeLinkGroup(ByteView(head).subspan(kSegmentHeaderBytes), life);
  ASSERT_EQ(link.shape, Shape::kValid);
  EXPECT_EQ(link.link.oldest, SegmentId(3));
}

// A Link that is not durable cannot lead the chain.
TEST_F(RetireTest, TheSegmentInWhichSStandsStays) {
  FillTo(3);
  while (journal_.Space().active == SegmentId(3)) {
    EXPECT_OK(journal_.Append({++value_}, 3000).refused());
    if (journal_.Space().active == SegmentId(3)) {
      ASSERT_OK(journal_->Flush());
    }
  }
  ASSERT_LT(journal_.Space().synced, journal_.Space().appended);
  ASSERT_OK(journal_->RetireBelow(SegmentId(4)));
  EXPECT_EQ(MarkNow().oldest, SegmentId(3));
  EXPECT_EQ(Segments().front(), SegmentId(3));
}

// Proves: R9 F14
TEST_F(RetireTest, MarkIsDurableBeforeTheFirstFileIsTouched) {
  FillTo(5);
  int touched = 0;
  storage_.SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
    if (operation.call != SimCall::kRename && operation.call != SimCall::kRemove) return;
    ++touched;
    SimStorage cut(disk.PowerCut(std::vector<bool>(disk.Loose().size(), false)));
    EXPECT_EQ(ReadMark(cut)->mark->oldest, SegmentId(4));
  });
  ASSERT_OK(journal_->RetireBelow(SegmentId(4)));
  storage_.SetObserver(nullptr);
  EXPECT_EQ(touched, 3);
}

// In a steady state files go round: no more of them come, and none is written with zeros.
// Proves: F44
TEST_F(RetireTest, FilesAreUsedAgainAndWhatTheyHeldStaysOut) {
  FillTo(6);
  ASSERT_OK(journal_->RetireBelow(SegmentId(6)));
  journal_->Tick();
  const uint64_t bytes = journal_.Space().disk_bytes;
  int zeroed = 0;
  storage_.SetObserver([&](const SimOperation& operation, const SimDisk&) {
    zeroed += operation.call == SimCall::kWriteZeros;
  });
  uint64_t oldest_value = 0;
  for (uint64_t segment = 7; segment < 30; ++segment) {
    FillTo(segment);
    oldest_value = journal_.Space().sealed.back().last.value();
    ASSERT_OK(journal_->RetireBelow(SegmentId(segment)));
    journal_->Tick();
    EXPECT_LE(journal_.Space().disk_bytes, bytes + kSegmentBytesMin);
    EXPECT_EQ(journal_.Space().disk_bytes, BytesOnDisk());
    EXPECT_EQ(journal_.Read(Lsn(value_)).value(), value_);
  }
  EXPECT_EQ(zeroed, 0);
  storage_.SetObserver(nullptr);

  // What stands behind the end is of lives before; a kill leaves it to be judged.
  SimStorage after(storage_.disk().Kill(1, /*late=*/false));
  LiveJournal reopened(after, clock_);
  ASSERT_OK(reopened.Open(Options()));
  EXPECT_EQ(reopened.Values().front(), oldest_value + 1);
  EXPECT_EQ(reopened.Values().back(), value_);
  EXPECT_EQ(reopened.report().torn_bytes, 0u);
  EXPECT_EQ(reopened.report().ignored_groups, 0u);
}

// Proves: R9
TEST_F(RetireTest, AFileThatCannotGoIsTriedAgainByTheNextCall) {
  FillTo(4);
  for (const SimCall call : {SimCall::kRename, SimCall::kRemove}) {
    storage_.SetFault(SimFault{.at = storage_.operations() + 1, .for_ever = true, .only = call});
    const Status status = journal_->RetireBelow(SegmentId(4));
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kUnavailable);
      EXPECT_FALSE(journal_->poisoned());
      EXPECT_EQ(MarkNow().oldest, SegmentId(4));
      EXPECT_FALSE(Segments().empty());
    }
  }
  storage_.SetFault(std::nullopt);
  ASSERT_OK(journal_->RetireBelow(SegmentId(4)));
  EXPECT_TRUE(Segments().empty());
  ASSERT_OK(journal_.Append(1).Wait());
}

// Proves: G3
TEST_F(RetireTest, AFailedSyncPoisonsAndNothingIsTouchedAfterwards) {
  for (const SimCall call : {SimCall::kSyncData, SimCall::kSyncFolder}) {
    SimStorage storage;
    LiveJournal journal(storage, clock_);
    ASSERT_OK(journal.Open(Options()));
    for (uint64_t value = 1; journal.Space().active < SegmentId(4); ++value) {
      ASSERT_OK(journal.Append({value}, 3000).Wait());
      journal->Tick();
    }
    storage.SetFault(SimFault{.at = storage.operations() + 1, .only = call});
    EXPECT_FALSE(journal->RetireBelow(SegmentId(4)).ok());
    EXPECT_TRUE(journal->poisoned());
    const uint64_t changes = storage.changes();
    EXPECT_FAILS(journal->RetireBelow(SegmentId(4)), kUnavailable, kPoisoned);
    journal->Tick();
    EXPECT_EQ(storage.changes(), changes);
  }
}

TEST_F(RetireTest, AfterCloseNothingIsRetired) {
  FillTo(3);
  ASSERT_OK(journal_->Close());
  EXPECT_FAILS(journal_->RetireBelow(SegmentId(2)), kFailedPrecondition, kClosed);
}

// A power cut before any operation of a journal that retires and recycles: what was confirmed and
// not retired is there, what was retired stays away once the call has returned.
// Proves: G1 R9 F14 F44
TEST_F(RetireTest, APowerCutAnywhereLosesAndResurrectsNothing) {
  struct Cut {
    SimDisk disk;
    uint64_t confirmed, retired, begun;  // values, and up to where retirement was asked for
  };
  std::vector<Cut> cuts;
  uint64_t confirmed = 0, retired = 0, begun = 0;
  FillTo(5);
  confirmed = value_;
  storage_.SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
    if (Changes(operation.call)) cuts.push_back({disk, confirmed, retired, begun});
  });
  for (uint64_t segment = 6; segment < 9; ++segment) {
    while (journal_.Space().active < SegmentId(segment)) {
      ASSERT_OK(journal_.Append({value_ + 1}, 9000).Wait());
      confirmed = ++value_;
      journal_->Tick();
    }
    const std::vector<SealedSegment> sealed = journal_.Space().sealed;
    begun = sealed[sealed.size() - 2].last.value();
    ASSERT_OK(journal_->RetireBelow(sealed.back().segment));
    retired = begun;
    journal_->Tick();
  }
  storage_.SetObserver(nullptr);
  ASSERT_GT(cuts.size(), 50u);
  for (size_t i = 0; i < cuts.size(); ++i) {
    SCOPED_TRACE(i);
    const Cut& cut = cuts[i];
    for (const std::vector<bool>& kept : CutChoices(cut.disk.Loose().size(), 12, i)) {
      SimStorage storage(cut.disk.PowerCut(kept));
      LiveJournal journal(storage, clock_);
      ASSERT_OK(journal.Open(Options()));
      const std::vector<uint64_t> values = journal.Values();
      ASSERT_FALSE(values.empty());
      ASSERT_GE(values.front(), cut.retired + 1);
      ASSERT_LE(values.front(), cut.begun + 1);
      ASSERT_GE(values.back(), cut.confirmed);
      ASSERT_EQ(values.size(), values.back() - values.front() + 1);
      const JournalSpace space = journal.Space();
      const std::vector<std::string> names = *storage.List(kJournalFolder);
      for (const std::string& name : names) {
        if (const SegmentId id = ParseSegmentFileName(name)) {
          ASSERT_GE(id, space.sealed.empty() ? space.active : space.sealed.front().segment);
        }
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
