#include "journal/journal_reader.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_storage.h"
#include "tests/support/group_builder.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr uint64_t kBytes = kSegmentBytesMin;

// A chain written by hand. Links are handed to the reader as they are; only groups are on disk.
class JournalReaderTest : public testing::Test {
 protected:
  // A segment that follows the one before it; its LSNs are those given.
  ChainSegment& AddSegment(Lsn first, Lsn through, Lsn next) {
    const SegmentId id(chain_.size() + 1);
    ChainSegment segment{.id = id,
                         .life = {.salt = 1,
                                  .segment = static_cast<uint32_t>(id.value()),
                                  .stamp = 100 + id.value()},
                         .segment_bytes = kBytes,
                         .link = {.first = first, .through = through, .next = next},
                         .end = kBytes};
    if (!chain_.empty()) {
      chain_.back().end = end_;
      segment.link.previous_last_lsn = last_;
    }
    CHECK_OK(storage_.MakeFolder("journal"));
    StatusOr<std::unique_ptr<File>> file =
        storage_.OpenFile(SegmentFileName(id), OpenMode::kCreate);
    CHECK_OK(file.status());
    CHECK_OK((*file)->WriteZeros(kBytes));
    file_ = *std::move(file);
    end_ = kFirstGroupOffset;
    chain_.push_back(segment);
    return chain_.back();
  }
  // A group of batches with one record each. Returns its offset.
  uint64_t AddGroup(Lsn first, size_t batches) {
    GroupBuilder group(chain_.back().life, end_, first);
    for (size_t i = 0; i < batches; ++i) {
      group.AddRecord(OffsetAdvance{.topic = "t", .next = first.value() + i});
    }
    const std::vector<std::byte> bytes = group.Build();
    CHECK_OK(file_->WriteAt(end_, bytes));
    last_ = first + (batches - 1);
    batch_ends_.clear();
    for (const size_t end : group.batch_ends()) {
      batch_ends_.push_back(end_ + AlignUp(end, kBatchAlignment));
    }
    const uint64_t offset = end_;
    end_ += bytes.size();
    chain_.back().last_group = offset;
    return offset;
  }
  void Damage(uint64_t offset) { CHECK_OK(file_->WriteAt(offset, AsBytes("?"))); }

  // Reads to the end.
  Status Read(Lsn horizon = Lsn(), std::optional<JournalPlace> mark_end = std::nullopt) {
    ReadRules rules{.horizon = horizon, .mark_clean = mark_end.has_value()};
    if (mark_end.has_value()) rules.mark_end = *mark_end;
    reader_ = std::make_unique<JournalReader>(storage_, chain_, rules);
    lsns_.clear();
    for (;;) {
      const StatusOr<bool> more = reader_->Next();
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
      const BatchHeader& header = reader_->batch().header;
      for (Lsn lsn = header.first_lsn; lsn <= header.last_lsn(); lsn = lsn + 1) {
        lsns_.push_back(lsn.value());
      }
    }
  }

  using Lsns = std::vector<uint64_t>;
  SimStorage storage_{SimDisk()};
  std::vector<ChainSegment> chain_;
  std::unique_ptr<File> file_;
  uint64_t end_ = 0;
  Lsn last_;
  std::vector<uint64_t> batch_ends_;
  std::unique_ptr<JournalReader> reader_;
  Lsns lsns_;
};

TEST_F(JournalReaderTest, BatchesComeInOrderOverSegmentsAndJumps) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 2);
  AddGroup(Lsn(3), 1);
  AddSegment(Lsn(4), Lsn(5), Lsn(1000));  // 4 and 5 were copied, then the boot went on with 1000
  AddGroup(Lsn(4), 2);
  AddGroup(Lsn(1000), 2);
  ASSERT_OK(Read());
  EXPECT_EQ(lsns_, (Lsns{1, 2, 3, 4, 5, 1000, 1001}));
  EXPECT_EQ(reader_->verdict(), Verdict::kEnd);
  EXPECT_EQ(reader_->next_lsn(), Lsn(1002));
  EXPECT_EQ(reader_->cut(), (JournalPlace{SegmentId(2), end_}));
  ASSERT_OK_AND_ASSIGN(const bool more, reader_->Next());
  EXPECT_FALSE(more);
}

TEST_F(JournalReaderTest, AnEndInsideAGroupIsKept) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 3);
  end_ = batch_ends_[1];
  last_ = Lsn(2);
  AddSegment(Lsn(3), Lsn(3), Lsn(50));
  AddGroup(Lsn(3), 1);
  ASSERT_OK(Read(Lsn(3)));
  EXPECT_EQ(lsns_, (Lsns{1, 2, 3}));
  chain_.front().end = batch_ends_[0] - kBatchAlignment;  // not between batches
  EXPECT_FAILS(Read(Lsn(3)), kDataLoss, kDamage);
}

TEST_F(JournalReaderTest, ALinkThatDoesNotFitIsDamage) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 3);
  AddSegment(Lsn(4), Lsn(3), Lsn(4));
  AddGroup(Lsn(4), 1);
  chain_.back().link.previous_last_lsn = Lsn(4);
  EXPECT_FAILS(Read(), kDataLoss, kDamage);
  chain_.back().link.previous_last_lsn = Lsn(3);
  chain_.back().link.first = Lsn(3);
  EXPECT_FAILS(Read(), kDataLoss, kDamage);
  EXPECT_EQ(reader_->damage()->place.segment, SegmentId(2));
}

TEST_F(JournalReaderTest, AnotherLsnIsDamageWhateverWasPromised) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 2);
  AddGroup(Lsn(5), 1);
  EXPECT_FAILS(Read(), kDataLoss, kDamage);
  EXPECT_EQ(reader_->damage()->first, Lsn(3));
}

TEST_F(JournalReaderTest, BadBytesAreDamageUpToTheHorizonAndTornBehindIt) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 1);
  const uint64_t group = AddGroup(Lsn(2), 3);
  Damage(batch_ends_[0] + kBatchHeaderBytes);  // in the batch of LSN 3
  ASSERT_OK(Read(Lsn(2)));
  EXPECT_EQ(lsns_, (Lsns{1, 2}));
  EXPECT_EQ(reader_->verdict(), Verdict::kTorn);
  EXPECT_EQ(reader_->cut().offset, batch_ends_[0]);
  EXPECT_GT(reader_->cut().offset, group);

  EXPECT_FAILS(Read(Lsn(3)), kDataLoss, kDamage);
  EXPECT_EQ(reader_->damage()->place.offset, batch_ends_[0]);
  EXPECT_EQ(reader_->damage()->first, Lsn(3));
  EXPECT_EQ(reader_->damage()->last, Lsn(3));  // 4 is healthy again
}

TEST_F(JournalReaderTest, AnUnwrittenPlaceIsAHoleIfSomethingStandsBehindIt) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 1);
  end_ += kBlockBytes;
  AddGroup(Lsn(3), 1);
  ASSERT_OK(Read(Lsn(1)));
  EXPECT_EQ(lsns_, (Lsns{1}));
  EXPECT_EQ(reader_->verdict(), Verdict::kTornHole);
  EXPECT_FAILS(Read(Lsn(2)), kDataLoss, kDamage);
}

TEST_F(JournalReaderTest, ACleanEndIsWhereMarkSaysIt) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  const uint64_t second = AddGroup(Lsn(1), 1);
  AddGroup(Lsn(2), 1);
  const JournalPlace here{SegmentId(1), end_};
  ASSERT_OK(Read(Lsn(2), here));
  EXPECT_EQ(reader_->verdict(), Verdict::kEndClean);
  ASSERT_OK(Read(Lsn(2), JournalPlace{SegmentId(1), end_ + kBlockBytes}));
  EXPECT_EQ(reader_->verdict(), Verdict::kEnd);
  // Something stands behind it: MARK is older than the journal.
  EXPECT_FAILS(Read(Lsn(1), JournalPlace{SegmentId(1), second + kBlockBytes}), kDataLoss, kDamage);
}

TEST_F(JournalReaderTest, ACleanEndMayLieBeforeALink) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 1);
  const JournalPlace before{SegmentId(1), end_};
  AddSegment(Lsn(2), Lsn(1), Lsn(2));
  ASSERT_OK(Read(Lsn(1), before));
  EXPECT_EQ(reader_->verdict(), Verdict::kEndClean);
  ASSERT_OK(Read(Lsn(1), JournalPlace{SegmentId(2), kFirstGroupOffset}));
  EXPECT_EQ(reader_->verdict(), Verdict::kEndClean);
}

TEST_F(JournalReaderTest, AFullSegmentEndsTheChainWithoutAWord) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  for (uint64_t lsn = 1; end_ < kBytes; ++lsn) AddGroup(Lsn(lsn), 1);
  ASSERT_OK(Read(last_));
  EXPECT_EQ(reader_->last_lsn(), last_);
  EXPECT_FAILS(Read(last_ + 1), kDataLoss, kDamage);
}

TEST_F(JournalReaderTest, AReadErrorIsNotDamage) {
  AddSegment(Lsn(1), Lsn(0), Lsn(1));
  AddGroup(Lsn(1), 1);
  storage_.SetFault(SimFault{.at = 1, .only = SimCall::kReadAt});
  const Status status = Read();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(reader_->damage().has_value());
}

}  // namespace
}  // namespace holdfast
