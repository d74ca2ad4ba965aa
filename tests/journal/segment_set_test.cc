#include "journal/segment_set.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr uint64_t kBytes = kSegmentBytesMin;
constexpr absl::Duration kNow = absl::Seconds(10);

class SegmentSetTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(storage_.MakeFolder(kJournalFolder));
    SegmentHeader header;
    header.segment = SegmentId(1);
    header.segment_bytes = kBytes;
    header.life = 5;
    StatusOr<Segment> first = SegmentSet::Make(storage_, {.header = header, .spare = {}});
    ASSERT_OK(first);
    set_ = std::make_unique<SegmentSet>(
        SegmentSet::Options{.segment_bytes = kBytes}, StoreIdentity{.salt = 7, .epoch = Epoch(2)},
        SegmentSet::Start{
            .active = *std::move(first), .end = kFirstGroupOffset, .life_counter = 1});
  }
  SegmentHeader MakeNext() {
    const SegmentSet::Plan plan = set_->TakeNext(absl::UnixEpoch());
    StatusOr<Segment> made = SegmentSet::Make(storage_, plan);
    CHECK_OK(made.status());
    set_->OnMade(*std::move(made));
    return plan.header;
  }
  void MakeAll() {
    while (set_->WantsNext(kNow)) MakeNext();
  }
  void FailNext() {
    set_->TakeNext(absl::UnixEpoch());
    set_->OnShortage(Exhausted(Detail::kDiskFull, "full"), kNow);
  }
  void FillToHalf() { set_->Extend(set_->room() - kBytes / 2 + kBlockBytes); }
  void Rotate() { set_->Rotate(Lsn(10 * set_->active().header.segment.value())); }
  // As retirement does with the oldest sealed one.
  void Retire(bool over_limit = false) {
    set_->ReleaseBelow(set_->active().header.segment);
    const SegmentId oldest = set_->sealed().oldest().segment;
    const bool as_spare = set_->WantsAsSpare(over_limit);
    CHECK_OK(as_spare ? storage_.Rename(SegmentFileName(oldest), SpareFileName(oldest))
                      : storage_.Remove(SegmentFileName(oldest)));
    set_->OnRetired(as_spare ? SegmentSet::Fate::kSpare : SegmentSet::Fate::kRemoved);
  }
  uint64_t BytesOnDisk() {
    uint64_t bytes = 0;
    const std::vector<std::string> names = *storage_.List(kJournalFolder);
    for (const std::string& name : names) {
      const std::string path = std::string(kJournalFolder) + "/" + name;
      bytes += *(*storage_.OpenFile(path, OpenMode::kReadOnly))->Size();
    }
    return bytes;
  }

  SimStorage storage_;
  std::unique_ptr<SegmentSet> set_;
};

TEST_F(SegmentSetTest, IdsFollowEachOtherAndLivesNeverRepeat) {
  std::set<uint64_t> lives;
  for (uint64_t id = 2; id < 6; ++id) {
    const SegmentHeader header = MakeNext();
    EXPECT_EQ(header.segment, SegmentId(id));
    lives.insert(header.life);
    Rotate();
    EXPECT_EQ(set_->active().header.segment, SegmentId(id));
    EXPECT_EQ(set_->end(), kSegmentHeaderBytes);
  }
  EXPECT_EQ(lives.size(), 4u);
}

TEST_F(SegmentSetTest, AFailedAttemptUsesUpItsLifeButNotItsId) {
  const uint64_t failed = set_->TakeNext(absl::UnixEpoch()).header.life;
  set_->OnShortage(Exhausted(Detail::kDiskFull, "full"), kNow);
  const SegmentHeader next = MakeNext();
  EXPECT_EQ(next.segment, SegmentId(2));
  EXPECT_NE(next.life, failed);
}

// An empty store does not take the space of a busy one.
// Proves: G8
TEST_F(SegmentSetTest, OneIsMadeAheadAndTheReserveOnceItRotatesOrSoonWill) {
  MakeAll();
  EXPECT_EQ(set_->prepared(), 1u);
  set_->Extend(set_->room() - kBytes / 2);
  EXPECT_FALSE(set_->WantsNext(kNow));
  set_->Extend(kBlockBytes);
  MakeAll();
  EXPECT_EQ(set_->prepared(), 4u);
  Rotate();
  MakeAll();
  EXPECT_EQ(set_->prepared(), 4u);
}

TEST_F(SegmentSetTest, AfterAFullDiskItTriesAgainWhenNeededAndNotTooOften) {
  FailNext();
  EXPECT_FALSE(set_->WantsNext(kNow + absl::Seconds(1)));  // nobody needs it
  set_->OnNeeded();
  EXPECT_FALSE(set_->WantsNext(kNow + absl::Milliseconds(99)));
  EXPECT_TRUE(set_->WantsNext(kNow + absl::Milliseconds(100)));
}

// The reserve is for what shrinks the state.
// Proves: G8
TEST_F(SegmentSetTest, TheReserveIsShortOnceNoMoreCanBeMade) {
  FillToHalf();
  MakeAll();
  EXPECT_EQ(set_->reserve(/*rotating=*/true), SegmentSet::Reserve::kWhole);
  Rotate();
  EXPECT_EQ(set_->prepared(), 3u);
  EXPECT_EQ(set_->reserve(/*rotating=*/true), SegmentSet::Reserve::kUnknown);
  FailNext();
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kWhole);
  EXPECT_EQ(set_->reserve(/*rotating=*/true), SegmentSet::Reserve::kShort);
  Rotate();
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kShort);
}

// One segment more does not let puts in to eat it at once.
// Proves: G8
TEST_F(SegmentSetTest, PutsWaitUntilTheReserveIsWholeAgain) {
  FillToHalf();
  MakeAll();
  for (int i = 0; i < 4; ++i) Rotate();
  FailNext();
  for (int made = 1; made <= 3; ++made) {
    EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kShort) << made;
    EXPECT_FALSE(set_->shortage().ok());
    MakeNext();
    // What worked once is tried again at once.
    EXPECT_TRUE(set_->WantsNext(kNow));
  }
  EXPECT_OK(set_->shortage());
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kWhole);
}

TEST_F(SegmentSetTest, AnAttemptUnderWayIsWaitedForWhenRoomGetsShort) {
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kWhole);
  EXPECT_EQ(set_->reserve(/*rotating=*/true), SegmentSet::Reserve::kUnknown);
  set_->Extend(kBytes / 2);
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kUnknown);
}

TEST_F(SegmentSetTest, FilesAreKeptUntilTheyAreLetGo) {
  MakeNext();
  Rotate();
  (void)set_->FileOf(SegmentId(1));  // dies if it is gone
  set_->ReleaseBelow(SegmentId(2));
  (void)set_->FileOf(SegmentId(2));                          // likewise
  EXPECT_DEATH((void)set_->FileOf(SegmentId(1)), "let go");  // it ends there
}

TEST_F(SegmentSetTest, ASealedSegmentIsBookedWithItsEndAndItsLastRecord) {
  MakeNext();
  set_->Extend(2 * kBlockBytes);
  const uint64_t end = set_->end();
  Rotate();
  EXPECT_EQ(set_->sealed().all(),
            (std::vector<SealedSegment>{
                {.segment = SegmentId(1), .last = Lsn(10), .file_bytes = kBytes, .end = end}}));
}

// What it says of the disk is what is there, whatever happened.
TEST_F(SegmentSetTest, TheBytesOnDiskAreThoseOfTheFiles) {
  FillToHalf();
  EXPECT_EQ(set_->disk_bytes(), BytesOnDisk());
  for (int i = 0; i < 12; ++i) {
    MakeAll();
    Rotate();
    EXPECT_EQ(set_->disk_bytes(), BytesOnDisk());
    if (i % 3 == 2) {
      Retire();
      Retire();
    }
    EXPECT_EQ(set_->disk_bytes(), BytesOnDisk());
  }
}

// In a steady state no segment is written with zeros again.
TEST_F(SegmentSetTest, ARetiredFileBecomesTheNextSegment) {
  FillToHalf();
  MakeAll();
  Rotate();
  MakeAll();
  Retire();
  EXPECT_EQ(set_->spares(), 1u);
  for (int i = 0; i < 20; ++i) {
    Rotate();
    const SegmentSet::Plan plan = set_->TakeNext(absl::UnixEpoch());
    EXPECT_TRUE(plan.spare);
    StatusOr<Segment> made = SegmentSet::Make(storage_, plan);
    ASSERT_OK(made);
    set_->OnMade(*std::move(made));
    EXPECT_FALSE(set_->WantsNext(kNow));
    Retire();
    EXPECT_EQ(set_->disk_bytes(), BytesOnDisk());
  }
}

TEST_F(SegmentSetTest, NoMoreFilesAreKeptThanWillBeUsed) {
  FillToHalf();
  for (int i = 0; i < 6; ++i) {
    MakeAll();
    Rotate();
  }
  MakeAll();
  while (!set_->sealed().empty()) Retire();
  EXPECT_EQ(set_->spares(), 2u);
  EXPECT_EQ(set_->disk_bytes(), BytesOnDisk());
}

// Over the limit of space every second file goes: writers get one segment for two that went.
TEST_F(SegmentSetTest, OverTheLimitEverySecondFileIsUsedAgain) {
  FillToHalf();
  for (int i = 0; i < 4; ++i) {
    MakeAll();
    Rotate();
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(set_->WantsAsSpare(/*over_limit=*/true));
    Retire();
    EXPECT_FALSE(set_->WantsAsSpare(/*over_limit=*/true));
    EXPECT_TRUE(set_->WantsAsSpare(/*over_limit=*/false));
    Retire(/*over_limit=*/true);
  }
}

TEST_F(SegmentSetTest, CompactionGetsItsSegmentBeyondTheLimit) {
  FillToHalf();
  EXPECT_TRUE(set_->lacks_for_compaction());
  MakeNext();
  EXPECT_TRUE(set_->lacks_for_compaction());  // that one is for the next open
  MakeNext();
  EXPECT_FALSE(set_->lacks_for_compaction());
  EXPECT_EQ(set_->disk_bytes_with_next(), BytesOnDisk() + kBytes);
}

// A file that is smaller than the segments of this journal (a predecessor's, cut short) is of no
// use.
TEST_F(SegmentSetTest, OnlyAFileOfTheRightSizeIsUsedAgain) {
  StatusOr<Segment> active = SegmentSet::Make(
      storage_,
      {.header = {.segment = SegmentId(9), .life = 1, .segment_bytes = kBytes}, .spare = {}});
  ASSERT_OK(active);
  const SegmentSet set({.segment_bytes = kBytes}, StoreIdentity{.salt = 7, .epoch = Epoch(2)},
                       {.active = *std::move(active),
                        .end = kFirstGroupOffset,
                        .life_counter = 1,
                        .sealed = {{.segment = SegmentId(8), .file_bytes = kBytes / 2}}});
  EXPECT_FALSE(set.WantsAsSpare(/*over_limit=*/false));
  EXPECT_EQ(set.disk_bytes(), kBytes / 2 + kBytes);
}

// On a full disk a spare file is as good as space.
// Proves: G8
TEST_F(SegmentSetTest, ASpareFileIsUsedAlthoughTheDiskIsFull) {
  FillToHalf();
  MakeAll();
  Rotate();
  FailNext();
  EXPECT_FALSE(set_->WantsNext(kNow));
  Retire();
  EXPECT_TRUE(set_->WantsNext(kNow));
  MakeNext();
  EXPECT_OK(set_->shortage());
}

}  // namespace
}  // namespace holdfast
