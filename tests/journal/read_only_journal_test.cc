#include "journal/read_only_journal.h"

#include <gtest/gtest.h>

#include "journal/segment.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/group_builder.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class ReadOnlyJournalTest : public testing::Test {
 protected:
  static constexpr uint64_t kSalt = 3;
  SimStorage storage_;
  Mutex sequencer_;
  ReadOnlyJournal journal_{storage_, kSalt, sequencer_};
};

// Proves: G7
TEST_F(ReadOnlyJournalTest, NothingCanBeReserved) {
  MutexLock lock(journal_.sequencer());
  EXPECT_FAILS(journal_.Reserve(100, Claim::kShrink), kFailedPrecondition, kReadOnly);
}

TEST_F(ReadOnlyJournalTest, WhatWasReadIsConfirmed) {
  EXPECT_TRUE(journal_.Reached(7));
  EXPECT_OK(journal_.WaitFor(7));
  int calls = 0;
  journal_.CallWhenReached(7, [&](const Status& status) {
    EXPECT_OK(status);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(journal_.poisoned());
}

TEST_F(ReadOnlyJournalTest, ReadsRecordsFromTheFiles) {
  ASSERT_OK(storage_.MakeFolder(kJournalFolder));
  SegmentHeader header;
  header.segment = SegmentId(1);
  header.segment_bytes = kSegmentBytesMin;
  header.salt = kSalt;
  header.life = 101;
  ASSERT_OK_AND_ASSIGN(const Segment segment, PrepareSegment(storage_, header));
  ASSERT_OK(PublishSegment(storage_, segment));
  ASSERT_OK(
      segment.file->WriteAt(kSegmentHeaderBytes, EncodeLinkGroup({.first = Lsn(10),
                                                                  .through = Lsn(9),
                                                                  .next = Lsn(10),
                                                                  .epoch = Epoch(1),
                                                                  .oldest = SegmentId(1),
                                                                  .reason = LinkReason::kOpen},
                                                                 {}, segment.life())));
  std::string record;
  EncodeRecord(OffsetAdvance{.topic = "t", .next = 4}, record);
  GroupBuilder group(segment.life(), kFirstGroupOffset, Lsn(10));
  group.Add(record, 1);
  ASSERT_OK(segment.file->WriteAt(kFirstGroupOffset, group.Build()));

  const RecordRef ref{.segment = 1,
                      .offset = kFirstGroupOffset + kGroupHeaderBytes,
                      .length = static_cast<uint32_t>(kBatchHeaderBytes + record.size())};
  EXPECT_EQ(*journal_.ReadRecord(ref, Lsn(10)), record);
  const std::vector<RecordSink::Place> places{{ref, Lsn(10)}, {ref, Lsn(11)}};
  RecordBlock records;
  journal_.ReadRecords(places, records);
  EXPECT_EQ(AsText(records.record(0)), record);
  EXPECT_FAILS(records.status(1), kDataLoss, kDamage);
}

}  // namespace
}  // namespace holdfast
