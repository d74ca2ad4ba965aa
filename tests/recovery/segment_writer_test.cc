#include "recovery/segment_writer.h"

#include <gtest/gtest.h>

#include "journal/base/seeded_rng.h"
#include "journal/segment_scan.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

Segment Prepared(Storage& storage, uint64_t segment_bytes) {
  CHECK_OK(storage.MakeFolder(kJournalFolder));
  StatusOr<Segment> segment = PrepareSegment(storage, {.salt = 5,
                                                       .segment = SegmentId(2),
                                                       .life = 77,
                                                       .segment_bytes = segment_bytes,
                                                       .epoch = Epoch(3)});
  CHECK_OK(segment.status());
  return *std::move(segment);
}

// Batches of any sizes stand where Append said, in groups that the reader accepts, within what
// BytesNeeded promised.
TEST(SegmentWriterTest, WhatWasAppendedIsReadBack) {
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    struct Batch {
      BatchHeader header;
      std::string records;
      RecordRef ref;
    };
    std::vector<Batch> batches;
    uint64_t bytes = 0;
    Lsn next(10);
    for (size_t i = 0; i < 60; ++i) {
      const size_t size = rng.OneIn(10) ? rng.Below(1'500'000) : rng.Below(3000);
      const auto records = static_cast<uint16_t>(1 + rng.Below(3));
      batches.push_back({.header = {.first_lsn = next, .records = records, .epoch = 2},
                         .records = std::string(size + 8u * records, 'r')});
      bytes += AlignUp(kBatchHeaderBytes + batches.back().records.size(), kBatchAlignment);
      next = next + records;
    }
    SimStorage storage{SimDisk()};
    Segment segment = Prepared(storage, AlignUp(SegmentWriter::BytesNeeded(bytes), kBlockBytes));
    SegmentWriter writer(segment, {.synced = Lsn(9), .promised = Lsn(9), .engine_ns = 4});
    for (Batch& batch : batches) {
      ASSERT_OK_AND_ASSIGN(batch.ref, writer.Append(batch.header, AsBytes(batch.records)));
    }
    ASSERT_OK(writer.Finish());

    ReadWindow window;
    ASSERT_OK(window.Open(*segment.file));
    size_t index = 0;
    uint64_t offset = kFirstGroupOffset;
    while (offset < writer.end()) {
      ASSERT_OK_AND_ASSIGN(const GroupOnDisk group, ReadGroup(window, segment.life(), offset,
                                                              segment.header.segment_bytes, Lsn()));
      ASSERT_TRUE(group.readable);
      EXPECT_EQ(group.header.synced, Lsn(9));
      BatchCursor cursor(group.bytes, group.header, segment.life(), offset);
      while (cursor.Next() == BatchCursor::Step::kBatch) {
        ASSERT_LT(index, batches.size());
        const Batch& batch = batches[index++];
        EXPECT_EQ(cursor.batch().header.first_lsn, batch.header.first_lsn);
        EXPECT_EQ(cursor.batch().header.epoch, 2u);
        EXPECT_EQ(AsText(cursor.batch().records), batch.records);
        EXPECT_EQ(cursor.batch().offset, batch.ref.offset);
        EXPECT_EQ(cursor.batch().header.length, batch.ref.length);
      }
      EXPECT_TRUE(cursor.PaddingIsZero());
      offset += group.header.length;
    }
    EXPECT_EQ(index, batches.size());
  }
}

TEST(SegmentWriterTest, AFullSegmentIsALimitAndKeepsWhatItHas) {
  SimStorage storage{SimDisk()};
  Segment segment = Prepared(storage, kSegmentBytesMin);
  SegmentWriter writer(segment, {});
  const std::string records(40'000, 'r');
  ASSERT_OK(writer.Append({.first_lsn = Lsn(1), .records = 1}, AsBytes(records)));
  EXPECT_FAILS(writer.Append({.first_lsn = Lsn(2), .records = 1}, AsBytes(records)),
               kResourceExhausted, kLimit);
  ASSERT_OK(writer.Append({.first_lsn = Lsn(2), .records = 1}, AsBytes(records.substr(0, 100))));
  ASSERT_OK(writer.Finish());
  EXPECT_LE(writer.end(), kSegmentBytesMin);
}

}  // namespace
}  // namespace holdfast
