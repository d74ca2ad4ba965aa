#include "journal/group_assembler.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class GroupAssemblerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(storage_.MakeFolder(kJournalFolder));
    segments_ = std::make_unique<SegmentSet>(SegmentSet::Options{.segment_bytes = kSegmentBytesMin},
                                             StoreIdentity{.salt = 7, .epoch = Epoch(2)},
                                             SegmentSet::Start{.active = Make(1),
                                                               .end = kFirstGroupOffset,
                                                               .life_counter = 1});
    groups_ = std::make_unique<GroupAssembler>(*segments_, 8192);
  }
  Segment Make(uint64_t id) {
    SegmentHeader header;
    header.segment = SegmentId(id);
    header.segment_bytes = kSegmentBytesMin;
    header.life = id;
    StatusOr<Segment> made = SegmentSet::Make(storage_, {.header = header, .spare = {}});
    CHECK_OK(made.status());
    return *std::move(made);
  }
  RecordRef Add(uint64_t lsn, size_t padding = 0) {
    const std::string topic(padding, 't');
    BatchDraft draft;
    draft.Add(OffsetAdvance{.topic = topic, .next = lsn});
    if (!groups_->Fits(draft.batch_bytes())) groups_->Open(draft.batch_bytes());
    return groups_->Add(draft, Lsn(lsn));
  }

  SimStorage storage_;
  std::unique_ptr<SegmentSet> segments_;
  std::unique_ptr<GroupAssembler> groups_;
};

TEST_F(GroupAssemblerTest, GroupsLieOneBehindTheOther) {
  EXPECT_EQ(Add(1).offset, kFirstGroupOffset + kGroupHeaderBytes);
  groups_->Close();
  EXPECT_EQ(segments_->end(), kFirstGroupOffset + kBlockBytes);
  EXPECT_EQ(Add(2).offset, kFirstGroupOffset + kBlockBytes + kGroupHeaderBytes);
}

TEST_F(GroupAssemblerTest, ALargeBatchGetsALargerGroup) {
  Add(1, 12'000);
  EXPECT_GT(groups_->open_bytes(), 8192u);
}

TEST_F(GroupAssemblerTest, RecordsAreFoundUntilTheirGroupIsWritten) {
  const RecordRef first = Add(1);
  EXPECT_TRUE(groups_->Find(first, Lsn(1)).has_value());
  groups_->Close();
  EXPECT_TRUE(groups_->Find(first, Lsn(1)).has_value());
  EXPECT_LE(groups_->unwritten_place(), (uint64_t{1} << 32) | first.offset);
  groups_->OnWritten(1);
  EXPECT_FALSE(groups_->Find(first, Lsn(1)).has_value());
  EXPECT_GT(groups_->unwritten_place(), (uint64_t{1} << 32) | first.offset);
}

// A later group that is written first does not hide an earlier one.
TEST_F(GroupAssemblerTest, TheUnwrittenPlaceIsThatOfTheOldest) {
  const RecordRef first = Add(1);
  groups_->Close();
  Add(2);
  groups_->Close();
  groups_->OnWritten(2);
  EXPECT_EQ(groups_->outgoing_count(), 1u);
  EXPECT_LE(groups_->unwritten_place(), (uint64_t{1} << 32) | first.offset);
  EXPECT_TRUE(groups_->Find(first, Lsn(1)).has_value());
}

TEST_F(GroupAssemblerTest, ALinkIsTheFirstGroupOfTheNextSegment) {
  Add(1);
  groups_->Close();
  segments_->OnMade(Make(segments_->TakeNext(absl::UnixEpoch()).header.segment.value()));
  Link link;
  link.previous = SegmentId(1);
  link.previous_life = 1;
  link.previous_end = segments_->end();
  link.previous_last_lsn = Lsn(1);
  link.first = link.next = Lsn(2);
  link.through = Lsn(1);
  link.epoch = Epoch(2);
  link.oldest = SegmentId(1);
  groups_->PushLink(link, {.engine_ns = 5});
  EXPECT_EQ(segments_->active().header.segment, SegmentId(2));
  GroupBuffer& group = groups_->Outgoing(2);
  EXPECT_EQ(group.offset(), kSegmentHeaderBytes);
  const LinkView view = DecodeLinkGroup(group.sealed(), segments_->active().life());
  ASSERT_EQ(view.shape, Shape::kValid);
  EXPECT_EQ(view.link.previous_end, kFirstGroupOffset + kBlockBytes);
  EXPECT_EQ(Add(2).offset, kFirstGroupOffset + kGroupHeaderBytes);
}

}  // namespace
}  // namespace holdfast
