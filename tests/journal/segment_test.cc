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

}  // namespace
}  // namespace holdfast
