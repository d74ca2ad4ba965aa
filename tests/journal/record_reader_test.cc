#include "journal/record_reader.h"

#include <gtest/gtest.h>

#include "journal/segment.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/deep_storage.h"
#include "tests/support/group_builder.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

std::vector<StatusOr<std::string>> ReadMany(RecordReader& reader,
                                            std::span<const RecordSink::Place> places) {
  RecordBlock block;
  reader.ReadMany(places, block);
  std::vector<StatusOr<std::string>> records;
  for (size_t i = 0; i < block.size(); ++i) {
    if (block.ok(i)) {
      records.emplace_back(std::string(AsText(block.record(i))));
    } else {
      records.emplace_back(block.status(i));
    }
  }
  return records;
}

class RecordReaderTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(storage_.MakeFolder(kJournalFolder)); }

  // A segment with one batch of two records, 10 and 11.
  RecordRef Write(uint64_t id) {
    SegmentHeader header;
    header.segment = SegmentId(id);
    header.segment_bytes = kSegmentBytesMin;
    header.salt = kSalt;
    header.life = 100 + id;
    StatusOr<Segment> segment = PrepareSegment(storage_, header);
    CHECK_OK(segment.status());
    CHECK_OK(PublishSegment(storage_, *segment));
    std::string records;
    EncodeRecord(OffsetAdvance{.topic = "a", .next = id}, records);
    EncodeRecord(OffsetAdvance{.topic = "b", .next = id + 1000}, records);
    GroupBuilder group(segment->life(), kFirstGroupOffset, Lsn(10));
    group.Add(records, 2);
    CHECK_OK(segment->file->WriteAt(kSegmentHeaderBytes,
                                    EncodeLinkGroup({.first = Lsn(10),
                                                     .through = Lsn(9),
                                                     .next = Lsn(10),
                                                     .epoch = Epoch(1),
                                                     .oldest = SegmentId(1)},
                                                    GroupHeader(), segment->life())));
    CHECK_OK(segment->file->WriteAt(kFirstGroupOffset, group.Build(Lsn(), Lsn())));
    return {.segment = static_cast<uint32_t>(id),
            .offset = kFirstGroupOffset + kGroupHeaderBytes,
            .length = static_cast<uint32_t>(kBatchHeaderBytes + records.size())};
  }
  uint64_t ValueOf(const std::string& record) {
    ByteView bytes = AsBytes(record);
    return std::get<OffsetAdvance>(DecodeRecord(TakeRecord(bytes).value()).value()).next;
  }

  static constexpr uint64_t kSalt = 3;
  SimStorage storage_;
  RecordReader reader_{storage_, kSalt, /*files_max=*/4};
};

TEST_F(RecordReaderTest, EachRecordOfABatchIsReadByItsNumber) {
  const RecordRef ref = Write(1);
  EXPECT_EQ(ValueOf(reader_.Read(ref, Lsn(10)).value()), 1u);
  EXPECT_EQ(ValueOf(reader_.Read(ref, Lsn(11)).value()), 1001u);
}

// Neighbours share a read; a bad one spoils only itself.
TEST_F(RecordReaderTest, ManyAreReadTogether) {
  const RecordRef first = Write(1);
  const RecordRef second = Write(2);
  RecordRef wrong = first;
  wrong.offset += 8;
  uint64_t reads = 0;
  storage_.SetObserver([&](const SimOperation& operation, const SimDisk&) {
    reads += operation.call == SimCall::kReadAt;
  });
  const std::vector<RecordSink::Place> places{{first, Lsn(10)},  {first, Lsn(11)},
                                              {wrong, Lsn(10)},  {second, Lsn(11)},
                                              {second, Lsn(12)}, {first, Lsn(10)}};
  const auto records = ReadMany(reader_, places);
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(ValueOf(records[0].value()), 1u);
  EXPECT_EQ(ValueOf(records[1].value()), 1001u);
  EXPECT_FAILS(records[2], kDataLoss, kDamage);
  EXPECT_EQ(ValueOf(records[3].value()), 1002u);
  EXPECT_FAILS(records[4], kDataLoss, kDamage);
  EXPECT_EQ(ValueOf(records[5].value()), 1u);
  // Two headers and three windows; two more headers before anything is called damage.
  EXPECT_EQ(reads, 2u + 3u + 2u);
  EXPECT_TRUE(ReadMany(reader_, {}).empty());
}

// The header of the segment is redundant.
// Proves: G5
TEST_F(RecordReaderTest, ADamagedSegmentHeaderCostsNoRecord) {
  const RecordRef ref = Write(1);
  SimDisk disk = storage_.disk();
  const std::string zeros(kSegmentHeaderBytes, '\0');
  disk.Damage(SegmentFileName(SegmentId(1)), 0, AsBytes(zeros));
  SimStorage damaged(std::move(disk));
  RecordReader reader(damaged, kSalt, 4);
  EXPECT_EQ(ValueOf(reader.Read(ref, Lsn(10)).value()), 1u);
}

// Proves: G4
TEST_F(RecordReaderTest, AReadErrorIsTheAnswerOfAllThatShareTheRead) {
  const RecordRef first = Write(1);
  const RecordRef second = Write(2);
  ASSERT_OK(reader_.Read(first, Lsn(10)));
  ASSERT_OK(reader_.Read(second, Lsn(10)));
  storage_.SetFault(SimFault{.at = storage_.operations() + 1, .only = SimCall::kReadAt});
  const std::vector<RecordSink::Place> places{
      {first, Lsn(10)}, {first, Lsn(11)}, {second, Lsn(10)}};
  const auto records = ReadMany(reader_, places);
  EXPECT_FAILS(records[0], kUnavailable, kIo);
  EXPECT_FAILS(records[1], kUnavailable, kIo);
  EXPECT_OK(records[2]);
}

// Proves: G4 D6
TEST_F(RecordReaderTest, AnotherNumberOrPlaceIsNeverShown) {
  const RecordRef ref = Write(1);
  EXPECT_FAILS(reader_.Read(ref, Lsn(9)), kDataLoss, kDamage);
  EXPECT_FAILS(reader_.Read(ref, Lsn(12)), kDataLoss, kDamage);
  RecordRef shifted = ref;
  shifted.offset += 8;
  EXPECT_FAILS(reader_.Read(shifted, Lsn(10)), kDataLoss, kDamage);
}

// Proves: G4 G5
TEST_F(RecordReaderTest, AnyFlippedByteOfABatchIsDamage) {
  const RecordRef ref = Write(1);
  for (uint32_t at = 0; at < ref.length; ++at) {
    SimDisk disk = storage_.disk();
    const std::string contents = disk.Contents(SegmentFileName(SegmentId(1)));
    const std::byte flipped = std::byte(contents[ref.offset + at]) ^ std::byte{4};
    disk.Damage(SegmentFileName(SegmentId(1)), ref.offset + at, {&flipped, 1});
    SimStorage damaged(std::move(disk));
    RecordReader reader(damaged, kSalt, 4);
    EXPECT_FAILS(reader.Read(ref, Lsn(10)), kDataLoss, kDamage);
  }
}

// A retired segment keeps neither its descriptor nor its space.
TEST_F(RecordReaderTest, WhatWasRetiredIsLetGo) {
  const RecordRef first = Write(1);
  const RecordRef second = Write(2);
  ASSERT_OK(reader_.Read(first, Lsn(10)));
  ASSERT_OK(reader_.Read(second, Lsn(10)));
  ASSERT_OK(storage_.Remove(SegmentFileName(SegmentId(1))));
  reader_.ForgetBelow(SegmentId(2));
  EXPECT_FAILS(reader_.Read(first, Lsn(10)), kUnavailable, kIo);
  EXPECT_OK(reader_.Read(second, Lsn(10)));
}

// The file is another segment by the time of the read: not damage, and never the other's bytes.
// Proves: G4 F44
TEST_F(RecordReaderTest, AFileThatIsUsedAgainUnderAnOpenDescriptorIsNotDamage) {
  const RecordRef old = Write(1);
  ASSERT_OK(reader_.Read(old, Lsn(10)));
  ASSERT_OK(storage_.Rename(SegmentFileName(SegmentId(1)), SpareFileName(SegmentId(1))));
  SegmentHeader header;
  header.segment = SegmentId(9);
  header.segment_bytes = kSegmentBytesMin;
  header.salt = kSalt;
  header.life = 109;
  StatusOr<Segment> segment = RecycleSegment(storage_, SegmentId(1), header);
  ASSERT_OK(segment);
  ASSERT_OK(PublishSegment(storage_, *segment));
  // What was there is read as long as it is there.
  EXPECT_OK(reader_.Read(old, Lsn(10)));
  std::string records;
  EncodeRecord(OffsetAdvance{.topic = "a", .next = 9}, records);
  EncodeRecord(OffsetAdvance{.topic = "b", .next = 1009}, records);
  GroupBuilder group(segment->life(), kFirstGroupOffset, Lsn(10));
  group.Add(records, 2);
  ASSERT_OK(segment->file->WriteAt(kFirstGroupOffset, group.Build(Lsn(), Lsn())));
  EXPECT_FAILS(reader_.Read(old, Lsn(10)), kUnavailable, kIo);
  // The Link is not written yet: it still bears the life before.
  const RecordRef now{.segment = 9, .offset = old.offset, .length = old.length};
  EXPECT_EQ(ValueOf(reader_.Read(now, Lsn(11)).value()), 1009u);
}

// Another boot put its segment in the place of one that was never used.
TEST_F(RecordReaderTest, AnotherLifeUnderTheSameNameIsReadAfresh) {
  const RecordRef ref = Write(1);
  ASSERT_OK(reader_.Read(ref, Lsn(10)));
  SegmentHeader header;
  header.segment = SegmentId(1);
  header.segment_bytes = kSegmentBytesMin;
  header.salt = kSalt;
  header.life = 500;
  ASSERT_OK(storage_.Rename(SegmentFileName(SegmentId(1)), SpareFileName(SegmentId(1))));
  StatusOr<Segment> segment = RecycleSegment(storage_, SegmentId(1), header);
  ASSERT_OK(segment);
  ASSERT_OK(PublishSegment(storage_, *segment));
  std::string records;
  EncodeRecord(OffsetAdvance{.topic = "a", .next = 7}, records);
  EncodeRecord(OffsetAdvance{.topic = "b", .next = 1007}, records);
  GroupBuilder group(segment->life(), kFirstGroupOffset, Lsn(10));
  group.Add(records, 2);
  ASSERT_OK(segment->file->WriteAt(kFirstGroupOffset, group.Build(Lsn(), Lsn())));
  EXPECT_EQ(ValueOf(reader_.Read(ref, Lsn(10)).value()), 7u);
  // What only the life before held is no damage of this one.
  EXPECT_FAILS(reader_.Read(ref, Lsn(12)), kDataLoss, kDamage);
}

// Proves: G4
TEST_F(RecordReaderTest, AReadErrorIsNeitherDamageNorAbsence) {
  const RecordRef ref = Write(1);
  storage_.SetFault(SimFault{.at = storage_.operations() + 1, .only = SimCall::kReadAt});
  EXPECT_FAILS(reader_.Read(ref, Lsn(10)), kUnavailable, kIo);
  storage_.SetFault(std::nullopt);
  EXPECT_OK(reader_.Read(ref, Lsn(10)));
}

TEST_F(RecordReaderTest, DescriptorsAreKeptAndBounded) {
  std::vector<RecordRef> refs;
  for (uint64_t id = 1; id <= 6; ++id) refs.push_back(Write(id));
  uint64_t opens = 0;
  storage_.SetObserver([&](const SimOperation& operation, const SimDisk&) {
    opens += operation.call == SimCall::kOpenFile;
  });
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 4; ++i) EXPECT_OK(reader_.Read(refs[i], Lsn(10)));
  }
  EXPECT_EQ(opens, 4u);
  EXPECT_OK(reader_.Read(refs[4], Lsn(10)));  // the one that was not read for longest goes
  EXPECT_OK(reader_.Read(refs[3], Lsn(10)));
  EXPECT_EQ(opens, 5u);
  EXPECT_OK(reader_.Read(refs[0], Lsn(10)));
  EXPECT_EQ(opens, 6u);
}

class RecordStreamTest : public testing::Test {
 protected:
  static constexpr uint64_t kSalt = 3;
  static constexpr uint64_t kGroups = 1'000;  // of one block each

  void SetUp() override {
    ASSERT_OK(storage_.MakeFolder(kJournalFolder));
    SegmentHeader header;
    header.segment = SegmentId(1);
    header.segment_bytes = (kGroups + 2) * kBlockBytes;
    header.salt = kSalt;
    header.life = 100;
    ASSERT_OK_AND_ASSIGN(segment_, PrepareSegment(storage_, header));
    ASSERT_OK(PublishSegment(storage_, segment_));
  }
  // Groups [begin, end), each a batch of one record that says its number.
  void Write(uint64_t begin, uint64_t end) {
    for (uint64_t number = begin; number < end; ++number) {
      const uint64_t offset = kFirstGroupOffset + number * kBlockBytes;
      GroupBuilder group(segment_.life(), offset, Lsn(number + 1));
      const std::string topic(3'000, 't');
      group.AddRecord(OffsetAdvance{.topic = topic, .client = "c", .next = number});
      const std::vector<std::byte> bytes = group.Build(Lsn(), Lsn());
      CHECK(bytes.size() == kBlockBytes);
      CHECK_OK(segment_.file->WriteAt(offset, bytes));
      const BatchView batch = *ReadBatch(ByteView(bytes).subspan(kGroupHeaderBytes),
                                         segment_.life(), offset + kGroupHeaderBytes);
      places_.push_back({{.segment = 1,
                          .offset = static_cast<uint32_t>(offset + kGroupHeaderBytes),
                          .length = batch.header.length},
                         Lsn(number + 1)});
    }
  }
  void ExpectVisit(uint64_t begin, uint64_t end) {
    const auto records = ReadMany(reader_, std::span(places_).subspan(begin, end - begin));
    ASSERT_EQ(records.size(), end - begin);
    for (uint64_t number = begin; number < end; ++number) {
      ASSERT_OK(records[number - begin]);
      ByteView bytes = AsBytes(*records[number - begin]);
      const AnyRecord record = DecodeRecord(TakeRecord(bytes).value()).value();
      EXPECT_EQ(std::get<OffsetAdvance>(record).next, number);
    }
  }

  SimStorage storage_;
  DeepStorage deep_{storage_};
  Segment segment_;
  std::vector<RecordSink::Place> places_;
  RecordReader reader_{deep_, kSalt, /*files_max=*/4};
};

TEST_F(RecordStreamTest, AVisitFromFrontToBackReadsEveryRecord) {
  Write(0, kGroups);
  for (int visit = 0; visit < 3; ++visit) {
    for (uint64_t begin = 0; begin < kGroups; begin += 100) ExpectVisit(begin, begin + 100);
  }
  ExpectVisit(0, kGroups);
}

// Proves: G4
TEST_F(RecordStreamTest, WhatWasReadAheadBeforeItWasWrittenIsReadAgain) {
  for (uint64_t end = 100; end <= kGroups; end += 100) {
    Write(end - 100, end);
    ExpectVisit(end - 100, end);  // and further, where nothing is written yet
  }
}

// Proves: G4 G5
TEST_F(RecordStreamTest, DamageSpoilsItsOwnRecordOnly) {
  Write(0, kGroups);
  const std::byte flipped{0x55};
  ASSERT_OK(segment_.file->WriteAt(places_[510].ref.offset + 100, {&flipped, 1}));
  const auto records = ReadMany(reader_, std::span(places_).subspan(500, 100));
  for (size_t i = 0; i < records.size(); ++i) {
    if (i == 10) {
      EXPECT_FAILS(records[i], kDataLoss, kDamage);
    } else {
      EXPECT_OK(records[i]) << i;
    }
  }
}

// A descriptor that stays open would keep the room of a segment that is gone.
TEST_F(RecordStreamTest, WhatIsForgottenIsClosed) {
  Write(0, kGroups);
  ExpectVisit(0, kGroups);
  reader_.ForgetBelow(SegmentId(2));
  ExpectVisit(0, kGroups);
}

}  // namespace
}  // namespace holdfast
