#include "journal/segment_set.h"

#include <gtest/gtest.h>

#include <set>

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
    StatusOr<Segment> first = SegmentSet::Make(storage_, header);
    ASSERT_OK(first);
    set_ = std::make_unique<SegmentSet>(SegmentSet::Options{.segment_bytes = kBytes},
                                        StoreIdentity{.salt = 7, .epoch = Epoch(2)},
                                        *std::move(first), kFirstGroupOffset, /*life_counter=*/1);
  }
  SegmentHeader MakeNext() {
    const SegmentHeader header = set_->TakeNextHeader(absl::UnixEpoch());
    StatusOr<Segment> made = SegmentSet::Make(storage_, header);
    CHECK_OK(made.status());
    set_->OnMade(*std::move(made));
    return header;
  }
  void FailNext() {
    set_->TakeNextHeader(absl::UnixEpoch());
    set_->OnShortage(Exhausted(Detail::kDiskFull, "full"), kNow);
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
    set_->Rotate();
    EXPECT_EQ(set_->active().header.segment, SegmentId(id));
    EXPECT_EQ(set_->end(), kSegmentHeaderBytes);
  }
  EXPECT_EQ(lives.size(), 4u);
}

TEST_F(SegmentSetTest, AFailedAttemptUsesUpItsLifeButNotItsId) {
  const uint64_t failed = set_->TakeNextHeader(absl::UnixEpoch()).life;
  set_->OnShortage(Exhausted(Detail::kDiskFull, "full"), kNow);
  const SegmentHeader next = MakeNext();
  EXPECT_EQ(next.segment, SegmentId(2));
  EXPECT_NE(next.life, failed);
}

TEST_F(SegmentSetTest, OneIsMadeAheadAndTwoOnceItRotates) {
  EXPECT_TRUE(set_->WantsNext(kNow));
  MakeNext();
  EXPECT_FALSE(set_->WantsNext(kNow));
  set_->Rotate();
  MakeNext();
  EXPECT_TRUE(set_->WantsNext(kNow));
}

TEST_F(SegmentSetTest, AfterAFullDiskItTriesAgainWhenNeededAndNotTooOften) {
  FailNext();
  EXPECT_FALSE(set_->WantsNext(kNow + absl::Seconds(1)));  // nobody needs it
  set_->OnNeeded();
  EXPECT_FALSE(set_->WantsNext(kNow + absl::Milliseconds(99)));
  EXPECT_TRUE(set_->WantsNext(kNow + absl::Milliseconds(100)));
}

// The last prepared room is for what shrinks the state.
// Proves: G8
TEST_F(SegmentSetTest, TheReserveIsShortOnceNoMoreCanBeMade) {
  MakeNext();
  EXPECT_EQ(set_->reserve(/*rotating=*/true), SegmentSet::Reserve::kWhole);  // one may be made
  set_->OnShortage(Exhausted(Detail::kDiskFull, "full"), kNow);
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kWhole);
  EXPECT_EQ(set_->reserve(/*rotating=*/true), SegmentSet::Reserve::kShort);
  set_->Rotate();
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kShort);
}

TEST_F(SegmentSetTest, AnAttemptUnderWayIsWaitedForWhenRoomGetsShort) {
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kWhole);
  EXPECT_EQ(set_->reserve(/*rotating=*/true), SegmentSet::Reserve::kUnknown);
  set_->Extend(kBytes / 2);
  EXPECT_EQ(set_->reserve(/*rotating=*/false), SegmentSet::Reserve::kUnknown);
}

TEST_F(SegmentSetTest, FilesAreKeptUntilTheyAreLetGo) {
  MakeNext();
  set_->Rotate();
  (void)set_->FileOf(SegmentId(1));
  set_->ReleaseBelow(SegmentId(2));
  (void)set_->FileOf(SegmentId(2));
  EXPECT_DEATH((void)set_->FileOf(SegmentId(1)), "let go");
}

}  // namespace
}  // namespace holdfast
