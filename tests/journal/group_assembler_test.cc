#include "journal/group_assembler.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr uint64_t kSegmentBytes = 4 * kSegmentBytesMin;
constexpr uint64_t kGroupBytesMax = 8192;

class GroupAssemblerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(storage_.MakeFolder(kJournalFolder));
    segments_ = std::make_unique<SegmentSet>(
        SegmentSet::Options{.segment_bytes = kSegmentBytes},
        StoreIdentity{.salt = 7, .epoch = Epoch(2)},
        SegmentSet::Start{.active = Make(1), .end = kFirstGroupOffset, .life_counter = 1});
    groups_ = std::make_unique<GroupAssembler>(*segments_, kGroupBytesMax);
  }
  Segment Make(uint64_t id) {
    SegmentHeader header;
    header.segment = SegmentId(id);
    header.segment_bytes = kSegmentBytes;
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
  // Whether the record is in memory, as it was added.
  bool Has(const RecordRef& ref, uint64_t lsn) {
    const std::optional<std::string> record = groups_->Find(ref, Lsn(lsn));
    if (!record.has_value()) return false;
    ByteView bytes = AsBytes(*record);
    const StatusOr<RawRecord> raw = TakeRecord(bytes);
    CHECK_OK(raw.status());
    EXPECT_EQ(FieldsOf<OffsetAdvance>(*raw).next, lsn);
    return true;
  }
  static uint64_t PlaceOf(const RecordRef& ref) { return uint64_t{ref.segment} << 32 | ref.offset; }

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
  EXPECT_GT(groups_->open_bytes(), kGroupBytesMax);
}

TEST_F(GroupAssemblerTest, RecordsAreFoundUntilTheRingComesRound) {
  std::vector<RecordRef> refs{{}};
  for (uint64_t lsn = 1; lsn <= 40; ++lsn) {
    refs.push_back(Add(lsn));
    EXPECT_TRUE(Has(refs[lsn], lsn));
    groups_->Close();
    EXPECT_TRUE(Has(refs[lsn], lsn));
    groups_->OnWritten(lsn);
    EXPECT_TRUE(Has(refs[lsn], lsn));
  }
  uint64_t oldest = 40;
  while (oldest > 1 && Has(refs[oldest - 1], oldest - 1)) --oldest;
  // Eight of the largest groups are sixteen of a block, less what one of the largest may need.
  EXPECT_LE(oldest, 40u - 12);
  EXPECT_GT(oldest, 40u - 16);
  for (uint64_t lsn = 1; lsn < oldest; ++lsn) EXPECT_FALSE(Has(refs[lsn], lsn));
  EXPECT_GT(groups_->kept_from(), PlaceOf(refs[oldest - 1]));
  EXPECT_LE(groups_->kept_from(), PlaceOf(refs[oldest]));
}

// A write that takes long holds the ring up, not the appenders.
TEST_F(GroupAssemblerTest, AGroupThatIsNotWrittenKeepsItsMemory) {
  std::vector<RecordRef> refs{{}};
  for (uint64_t lsn = 1; lsn <= 30; ++lsn) {
    refs.push_back(Add(lsn));
    groups_->Close();
    if (lsn > 1) groups_->OnWritten(lsn);
    EXPECT_TRUE(Has(refs[1], 1));
    EXPECT_LE(groups_->kept_from(), PlaceOf(refs[1]));
  }
  EXPECT_EQ(groups_->outgoing_count(), 1u);
  EXPECT_TRUE(Has(refs[2], 2));
  EXPECT_FALSE(Has(refs[30], 30));  // it had memory of its own
  groups_->OnWritten(1);
  for (uint64_t lsn = 31; lsn <= 50; ++lsn) {
    refs.push_back(Add(lsn));
    groups_->Close();
    groups_->OnWritten(lsn);
    EXPECT_TRUE(Has(refs[lsn], lsn));
  }
  EXPECT_FALSE(Has(refs[1], 1));
  EXPECT_TRUE(Has(refs[40], 40));
}

TEST_F(GroupAssemblerTest, ALargeGroupIsFoundUntilItIsWritten) {
  const RecordRef before = Add(1);
  groups_->Close();
  const RecordRef large = Add(2, 12'000);
  groups_->Close();
  const RecordRef behind = Add(3);
  groups_->Close();
  groups_->OnWritten(1);
  groups_->OnWritten(3);
  EXPECT_TRUE(Has(large, 2));
  groups_->OnWritten(2);
  EXPECT_FALSE(Has(large, 2));
  EXPECT_TRUE(Has(before, 1));
  EXPECT_TRUE(Has(behind, 3));
  for (uint64_t lsn = 4; lsn <= 30; ++lsn) {
    Add(lsn);
    groups_->Close();
    groups_->OnWritten(lsn);
  }
  EXPECT_FALSE(Has(behind, 3));
}

// They never make the ring come round, so what is known of groups ends by number.
TEST_F(GroupAssemblerTest, LargeGroupsAreForgottenInTheEnd) {
  const RecordRef first = Add(1);
  groups_->Close();
  groups_->OnWritten(1);
  for (uint64_t lsn = 2; lsn <= 16; ++lsn) {
    Add(lsn, 9'000);
    groups_->Close();
    groups_->OnWritten(lsn);
    EXPECT_TRUE(Has(first, 1));
  }
  for (uint64_t lsn = 17; lsn <= 18; ++lsn) {
    Add(lsn, 9'000);
    groups_->Close();
  }
  EXPECT_FALSE(Has(first, 1));
  EXPECT_GT(groups_->kept_from(), PlaceOf(first));
  EXPECT_EQ(groups_->outgoing_count(), 2u);
  groups_->OnWritten(17);
  groups_->OnWritten(18);
}

// A later group that is written first does not hide an earlier one.
TEST_F(GroupAssemblerTest, GroupsAreWrittenInAnyOrder) {
  const RecordRef first = Add(1);
  groups_->Close();
  Add(2);
  groups_->Close();
  groups_->OnWritten(2);
  EXPECT_EQ(groups_->outgoing_count(), 1u);
  EXPECT_LE(groups_->kept_from(), PlaceOf(first));
  EXPECT_TRUE(Has(first, 1));
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
