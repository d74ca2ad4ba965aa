#include "journal/segment_scan.h"

#include <gtest/gtest.h>

#include "journal/format/segment_header.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/group_builder.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr Life kLife{.salt = 7, .segment = 3, .stamp = 99};
constexpr uint64_t kBytes = uint64_t{8} << 20;

class SegmentScanTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<File>> file = storage_.OpenFile("segment", OpenMode::kCreate);
    ASSERT_OK(file);
    file_ = *std::move(file);
    ASSERT_OK(file_->WriteZeros(kBytes));
    ASSERT_OK(window_.Open(*file_));
  }
  // A group of one batch whose record carries `fill` bytes; returns its length.
  uint64_t Put(uint64_t offset, uint64_t lsn, size_t fill, Lsn synced = Lsn()) {
    const std::string text(fill, 'x');
    GroupBuilder group(kLife, offset, Lsn(lsn));
    group.AddRecord(OffsetAdvance{.topic = text, .client = "c", .next = lsn});
    const std::vector<std::byte> bytes = group.Build(synced, synced);
    CHECK_OK(file_->WriteAt(offset, bytes));
    return bytes.size();
  }

  SimStorage storage_{SimDisk()};
  std::unique_ptr<File> file_;
  ReadWindow window_;
};

TEST_F(SegmentScanTest, AGroupIsReadWithItsHeader) {
  const uint64_t length = Put(kFirstGroupOffset, 5, 10'000);
  ASSERT_OK_AND_ASSIGN(const GroupOnDisk group,
                       ReadGroup(window_, kLife, kFirstGroupOffset, kBytes, Lsn(5)));
  EXPECT_TRUE(group.readable);
  EXPECT_FALSE(group.headerless);
  EXPECT_EQ(group.header.length, length);
  EXPECT_EQ(group.bytes.size(), length);
}

TEST_F(SegmentScanTest, AGroupIsReadWithoutItsHeaderIfABatchSpeaksForItself) {
  for (const size_t fill : {10u, 10'000u, 3'000'000u}) {
    SCOPED_TRACE(fill);
    Put(kFirstGroupOffset, 5, fill);
    ASSERT_OK(file_->WriteAt(kFirstGroupOffset, std::vector<std::byte>(kGroupHeaderBytes)));
    ASSERT_OK(window_.Open(*file_));
    ASSERT_OK_AND_ASSIGN(const GroupOnDisk group,
                         ReadGroup(window_, kLife, kFirstGroupOffset, kBytes, Lsn(5)));
    EXPECT_EQ(group.shape, Shape::kNoStamp);
    ASSERT_TRUE(group.readable && group.headerless);
    BatchCursor cursor(group.bytes, group.header, kLife, kFirstGroupOffset);
    ASSERT_EQ(cursor.Next(), BatchCursor::Step::kBatch);
    EXPECT_EQ(cursor.batch().header.first_lsn, Lsn(5));
    // Nobody who does not know the LSN finds it.
    ASSERT_OK_AND_ASSIGN(const GroupOnDisk unasked,
                         ReadGroup(window_, kLife, kFirstGroupOffset, kBytes, Lsn()));
    EXPECT_FALSE(unasked.readable);
  }
}

TEST_F(SegmentScanTest, WhatIsNoGroupIsNotReadable) {
  // Zeros; old bytes that claim a huge batch; no room for a header.
  for (const uint64_t offset : {kFirstGroupOffset, kFirstGroupOffset + kBlockBytes, kBytes}) {
    if (offset == kFirstGroupOffset + kBlockBytes) {
      ASSERT_OK(file_->WriteAt(offset + kGroupHeaderBytes, AsBytes("\xff\xff\xff\x00 garbage")));
      ASSERT_OK(window_.Open(*file_));
    }
    ASSERT_OK_AND_ASSIGN(const GroupOnDisk group,
                         ReadGroup(window_, kLife, offset, kBytes, Lsn(1)));
    EXPECT_FALSE(group.readable);
    EXPECT_EQ(group.shape, Shape::kNoStamp);
  }
  EXPECT_LE(window_.bytes_read(), 2 * kReadAheadBytes);
}

TEST_F(SegmentScanTest, ATraceFindsEveryHeaderAlsoBehindHoles) {
  uint64_t offset = kFirstGroupOffset;
  offset += Put(offset, 1, 10);
  const uint64_t second = offset;
  offset += Put(offset, 2, 9'000, Lsn(1));
  offset += 3 * kBlockBytes;  // a hole
  const uint64_t third = offset;
  offset += Put(offset, 3, 10, Lsn(2));
  ASSERT_OK(file_->WriteAt(offset, AsBytes({reinterpret_cast<const char*>(&kLife.stamp), 8})));
  ASSERT_OK(window_.Open(*file_));
  ASSERT_OK_AND_ASSIGN(const SegmentTrace trace, TraceSegment(window_, kLife, kBytes));
  ASSERT_EQ(trace.groups.size(), 3u);
  EXPECT_EQ(trace.groups[1].offset, second);
  EXPECT_EQ(trace.last_group(), third);
  EXPECT_EQ(trace.groups[2].synced, Lsn(2));
  EXPECT_EQ(trace.highest_lsn, Lsn(3));
  EXPECT_EQ(trace.stamped_end, offset + kBlockBytes);  // a torn header counts as written
}

// What lies inside of a large group is no evidence, and reading it would be most of the time of a
// trace.
TEST_F(SegmentScanTest, ATraceReadsLittleOfLargeGroups) {
  uint64_t offset = kFirstGroupOffset;
  uint64_t lsn = 1;
  for (int count = 0; count < 40; ++count) {
    GroupBuilder group(kLife, offset, Lsn(lsn));
    const std::string text(40'000, 'x');
    for (int record = 0; record < 4; ++record, ++lsn) {
      group.AddRecord(OffsetAdvance{.topic = text, .client = "c", .next = lsn});
    }
    const std::vector<std::byte> bytes = group.Build();
    ASSERT_OK(file_->WriteAt(offset, bytes));
    offset += bytes.size();
  }
  const uint64_t behind_hole = offset + 2 * kBlockBytes;
  ASSERT_OK(file_->Truncate(behind_hole + Put(behind_hole, lsn, 10)));
  ASSERT_OK(window_.Open(*file_));
  ASSERT_OK_AND_ASSIGN(const SegmentTrace trace, TraceSegment(window_, kLife, kBytes));
  EXPECT_EQ(trace.groups.size(), 41u);
  EXPECT_EQ(trace.highest_lsn, Lsn(lsn));
  EXPECT_EQ(trace.last_group(), behind_hole);
  EXPECT_LE(window_.bytes_read(), 2 * kReadAheadBytes);
}

// Where nothing is stamped early on, what is later is not looked for; one group, and it is.
TEST_F(SegmentScanTest, ATraceEndsWhereNothingCanStandAnyMore) {
  Put(kBytes / 2 + kBlockBytes, 2, 10);
  ASSERT_OK(window_.Open(*file_));
  ASSERT_OK_AND_ASSIGN(const SegmentTrace empty,
                       TraceSegment(window_, kLife, kBytes, kBytes / 2));
  EXPECT_EQ(empty.stamped_end, 0u);
  EXPECT_LE(window_.bytes_read(), kBytes / 2 + kReadAheadBytes);

  Put(kBytes / 2 - kBlockBytes, 1, 10);
  ASSERT_OK(window_.Open(*file_));
  ASSERT_OK_AND_ASSIGN(const SegmentTrace trace,
                       TraceSegment(window_, kLife, kBytes, kBytes / 2));
  EXPECT_EQ(trace.groups.size(), 2u);
}

}  // namespace
}  // namespace holdfast
