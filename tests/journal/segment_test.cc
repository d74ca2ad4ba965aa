#include "journal/segment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

SegmentHeader Header() {
  SegmentHeader header;
  header.store_id = {1};
  header.salt = 7;
  header.segment = SegmentId(3);
  header.life = 99;
  header.segment_bytes = kSegmentBytesMin;
  header.epoch = Epoch(1);
  return header;
}

class SegmentTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(storage_.MakeFolder(kJournalFolder));
    ASSERT_OK(storage_.SyncFolder(""));
  }
  SimStorage storage_;
};

TEST_F(SegmentTest, ASegmentHasItsNameOnlyWhenItIsComplete) {
  const StatusOr<Segment> segment = PrepareSegment(storage_, Header());
  ASSERT_OK(segment);
  EXPECT_FALSE(storage_.disk().Exists(SegmentFileName(SegmentId(3))));
  ASSERT_OK(PublishSegment(storage_, *segment));
  const SimDisk disk = storage_.disk();
  const SimDisk after = disk.PowerCut(std::vector<bool>(disk.Loose().size(), false));
  const std::string contents = after.Contents(SegmentFileName(SegmentId(3)));
  ASSERT_EQ(contents.size(), kSegmentBytesMin);
  const StatusOr<SegmentHeader> header =
      DecodeSegmentHeader(AsBytes(std::string_view(contents).substr(0, kSegmentHeaderBytes)));
  ASSERT_OK(header);
  EXPECT_EQ(header->life, 99u);
  EXPECT_TRUE(std::all_of(contents.begin() + kSegmentHeaderBytes, contents.end(),
                          [](char c) { return c == 0; }));
}

// At each moment of the preparation a named segment is a whole one.
// Proves: G7
TEST_F(SegmentTest, APowerCutDuringThePreparationLeavesNoHalfSegment) {
  storage_.SetObserver([&](const SimOperation&, const SimDisk& disk) {
    for (const bool keep : {false, true}) {
      const SimDisk after = disk.PowerCut(std::vector<bool>(disk.Loose().size(), keep));
      if (!after.Exists(SegmentFileName(SegmentId(3)))) continue;
      EXPECT_EQ(after.Contents(SegmentFileName(SegmentId(3))).size(), kSegmentBytesMin);
    }
  });
  const StatusOr<Segment> segment = PrepareSegment(storage_, Header());
  ASSERT_OK(segment);
  ASSERT_OK(PublishSegment(storage_, *segment));
}

// Proves: G8
TEST_F(SegmentTest, AFullDiskLeavesNothingBehind) {
  SimDiskOptions options;
  options.bytes_max = kSegmentBytesMin / 2;
  SimStorage small{SimDisk(options)};
  ASSERT_OK(small.MakeFolder(kJournalFolder));
  EXPECT_FAILS(PrepareSegment(small, Header()), kResourceExhausted, kDiskFull);
  EXPECT_TRUE(small.disk().Names().empty());
}

TEST_F(SegmentTest, WhatAnInterruptedPreparationLeftIsReplaced) {
  ASSERT_OK(PrepareSegment(storage_, Header()));
  const StatusOr<Segment> again = PrepareSegment(storage_, Header());
  ASSERT_OK(again);
  ASSERT_OK(PublishSegment(storage_, *again));
  EXPECT_EQ(storage_.disk().Names().size(), 1u);
}

TEST_F(SegmentTest, ThePreparedFileIsLocked) {
  const StatusOr<Segment> segment = PrepareSegment(storage_, Header());
  ASSERT_OK(segment);
  ASSERT_OK(PublishSegment(storage_, *segment));
  const auto other = storage_.OpenFile(SegmentFileName(SegmentId(3)), OpenMode::kReadWrite);
  ASSERT_OK(other);
  EXPECT_FAILS((*other)->TryLock(), kFailedPrecondition, kLocked);
}

// --- Files that are used again ---

class RecycleTest : public SegmentTest {
 protected:
  void SetUp() override {
    SegmentTest::SetUp();
    ASSERT_OK(PrepareAndPublish());
    ASSERT_OK(storage_.Rename(SegmentFileName(Header().segment), SpareFileName(SegmentId(3))));
    ASSERT_OK(storage_.SyncFolder(kJournalFolder));
  }
  Status PrepareAndPublish() {
    ASSIGN_OR_RETURN(const Segment segment, PrepareSegment(storage_, Header()));
    RETURN_IF_ERROR(segment.file->WriteAt(kFirstGroupOffset, AsBytes(std::string(5000, 'o'))));
    RETURN_IF_ERROR(segment.file->SyncData());
    return PublishSegment(storage_, segment);
  }
  SegmentHeader NextHeader() {
    SegmentHeader header = Header();
    header.segment = SegmentId(8);
    header.life = 77;
    return header;
  }
};

// Neither space nor zeros: only the header is written.
TEST_F(RecycleTest, OnlyTheHeaderIsNew) {
  int writes = 0;
  storage_.SetObserver([&](const SimOperation& operation, const SimDisk&) {
    EXPECT_NE(operation.call, SimCall::kWriteZeros);
    writes += operation.call == SimCall::kWriteAt;
  });
  const StatusOr<Segment> segment = RecycleSegment(storage_, SegmentId(3), NextHeader());
  ASSERT_OK(segment);
  ASSERT_OK(PublishSegment(storage_, *segment));
  storage_.SetObserver(nullptr);
  EXPECT_EQ(writes, 1);
  const std::string contents = storage_.disk().Contents(SegmentFileName(SegmentId(8)));
  EXPECT_EQ(contents.size(), Header().segment_bytes);
  EXPECT_EQ(contents[kFirstGroupOffset], 'o');
  EXPECT_EQ(DecodeSegmentHeader(AsBytes(contents).first(kSegmentHeaderBytes))->life, 77u);
}

TEST_F(RecycleTest, AFileOfAnotherSizeIsRefused) {
  SegmentHeader header = NextHeader();
  header.segment_bytes *= 2;
  EXPECT_FAILS(RecycleSegment(storage_, SegmentId(3), header), kDataLoss, kDamage);
}

TEST_F(RecycleTest, AFileThatSomebodyStillWritesIsRefused) {
  const auto file = storage_.OpenFile(SpareFileName(SegmentId(3)), OpenMode::kReadWrite);
  ASSERT_OK(file);
  ASSERT_OK((*file)->TryLock());
  EXPECT_FAILS(RecycleSegment(storage_, SegmentId(3), NextHeader()), kFailedPrecondition, kLocked);
}

// On a file system that copies on write.
TEST_F(RecycleTest, WhereAnOverwriteNeedsSpaceAFullDiskFreesTheFile) {
  storage_.SetFault(SimFault{.at = storage_.operations() + 1,
                             .only = SimCall::kWriteAt,
                             .status = Exhausted(Detail::kDiskFull, "full")});
  EXPECT_FAILS(RecycleSegment(storage_, SegmentId(3), NextHeader()), kResourceExhausted, kDiskFull);
  EXPECT_FALSE(storage_.OpenFile(SpareFileName(SegmentId(3)), OpenMode::kReadOnly).ok());
}

TEST(SpareFileNameTest, OnlyWholeFilesHaveOne) {
  EXPECT_EQ(ParseSpareFileName(SpareFileName(SegmentId(12))), SegmentId(12));
  for (const char* name : {"", "journal/spare-", "journal/spare-1.new", "spare-1",
                           "journal/0000000000000001.seg", "journal/spare-x"}) {
    EXPECT_FALSE(ParseSpareFileName(name)) << name;
  }
}

}  // namespace
}  // namespace holdfast
