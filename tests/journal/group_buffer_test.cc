#include "journal/group_buffer.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

const Life kLife{.salt = 3, .segment = 2, .stamp = 9};
constexpr uint64_t kOffset = 8192;
constexpr uint64_t kRoom = uint64_t{1} << 20;

BatchDraft Draft(uint64_t value, size_t records = 1, size_t padding = 0) {
  const std::string topic(padding, 't');
  BatchDraft draft;
  for (size_t i = 0; i < records; ++i) draft.Add(OffsetAdvance{.topic = topic, .next = value + i});
  return draft;
}

uint64_t ValueOf(const std::string& record) {
  ByteView bytes = AsBytes(record);
  const StatusOr<RawRecord> raw = TakeRecord(bytes);
  CHECK_OK(raw.status());
  const StatusOr<AnyRecord> decoded = DecodeRecord(*raw);
  CHECK_OK(decoded.status());
  return std::get<OffsetAdvance>(*decoded).next;
}

// What is sealed is what a reader accepts, padding included, also in memory that was used before.
TEST(GroupBufferTest, ASealedGroupReadsBack) {
  GroupBuffer group(64 << 10);
  for (int use = 0; use < 2; ++use) {
    group.Open(kLife, kOffset, kRoom);
    const size_t count = use == 0 ? 40 : 3;
    Lsn lsn(100);
    for (size_t i = 0; i < count; ++i) {
      group.Add(Draft(i, 1 + i % 3, i * 13), lsn);
      lsn = lsn + (1 + i % 3);
    }
    group.Seal({.synced = Lsn(50), .promised = Lsn(60), .engine_ns = 7}, Epoch(4));
    const ByteView bytes = group.sealed();
    EXPECT_EQ(bytes.size() % kBlockBytes, 0u);
    const GroupView view = ReadGroupHeader(bytes, kLife, kOffset, kRoom);
    ASSERT_EQ(view.shape, Shape::kValid);
    EXPECT_EQ(view.header.length, bytes.size());
    EXPECT_EQ(view.header.batches, count);
    EXPECT_EQ(view.header.synced, Lsn(50));
    EXPECT_EQ(view.header.promised, Lsn(60));
    BatchCursor cursor(bytes, view.header, kLife, kOffset);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(cursor.Next(), BatchCursor::Step::kBatch);
      EXPECT_EQ(cursor.batch().header.epoch, 4u);
    }
    EXPECT_EQ(cursor.Next(), BatchCursor::Step::kEnd);
    EXPECT_EQ(cursor.next_lsn(), lsn);
    EXPECT_TRUE(cursor.PaddingIsZero());
  }
}

TEST(GroupBufferTest, ARecordIsFoundByItsPlaceAndNumber) {
  GroupBuffer group(64 << 10);
  group.Open(kLife, kOffset, kRoom);
  group.Add(Draft(1), Lsn(1));
  const RecordRef ref = group.Add(Draft(20, 3), Lsn(2));
  EXPECT_EQ(ref.segment, 2u);
  EXPECT_EQ(ValueOf(group.Find(ref, Lsn(3)).value()), 21u);
  EXPECT_FALSE(group.Find(ref, Lsn(5)).has_value());
  EXPECT_FALSE(group.Find({.segment = 3, .offset = ref.offset, .length = ref.length}, Lsn(3)));
  EXPECT_FALSE(group.Find({.segment = 2, .offset = ref.offset + 8, .length = 40}, Lsn(3)));
}

TEST(GroupBufferTest, ItTakesNoMoreThanTheSegmentHasRoomFor) {
  GroupBuffer group(64 << 10);
  group.Open(kLife, kOffset, kBlockBytes);
  EXPECT_TRUE(group.Fits(kBlockBytes - kGroupHeaderBytes));
  EXPECT_FALSE(group.Fits(kBlockBytes - kGroupHeaderBytes + 8));
}

TEST(GroupBufferTest, NthRecordRefusesWhatIsNotThere) {
  const BatchDraft draft = Draft(5, 2);
  EXPECT_EQ(ValueOf(std::string(AsText(NthRecord(AsBytes(draft.bytes()), 1).value()))), 6u);
  EXPECT_FALSE(NthRecord(AsBytes(draft.bytes()), 2).ok());
}

}  // namespace
}  // namespace holdfast
