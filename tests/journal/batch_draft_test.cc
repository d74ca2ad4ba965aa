#include "journal/batch_draft.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/random_records.h"

namespace holdfast {
namespace {

void AddAny(BatchDraft& draft, const AnyRecord& record) {
  std::visit([&](const auto& known) { draft.Add(known); }, record);
}

TEST(BatchDraftTest, HoldsItsRecordsInOrder) {
  RandomRecords records(5);
  BatchDraft draft;
  EXPECT_TRUE(draft.empty());
  std::vector<AnyRecord> made;
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    made.push_back(records.Next());
    AddAny(draft, made.back());
    EncodeAnyRecord(made.back(), bytes);
  }
  EXPECT_EQ(draft.count(), made.size());
  EXPECT_EQ(draft.bytes(), bytes);
  EXPECT_EQ(draft.batch_bytes(), AlignUp(kBatchHeaderBytes + bytes.size(), 8));
  for (size_t index = 0; index < made.size(); ++index) {
    EXPECT_TRUE(Same(*DecodeRecord(draft.raw(index)), made[index])) << index;
  }
}

TEST(BatchDraftTest, TheLastRecordCanBeTakenBack) {
  BatchDraft draft;
  draft.Add(DeadLetterPurge{.id = "a"});
  draft.Add(DeadLetterPurge{.id = "b"});
  draft.DropLast();
  draft.Add(DeadLetterPurge{.id = "c"});
  ASSERT_EQ(draft.count(), 2u);
  EXPECT_EQ(FieldsOf<DeadLetterPurge>(draft.raw(1)).id, "c");
  draft.DropLast();
  draft.DropLast();
  EXPECT_TRUE(draft.empty());
  EXPECT_TRUE(draft.bytes().empty());
}

TEST(BatchDraftTest, DropsWhatItIsTold) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomRecords records(seed);
    BatchDraft draft;
    std::vector<AnyRecord> kept;
    std::vector<size_t> dropped;
    std::string bytes;
    const uint64_t count = records.rng().Below(10);
    for (size_t index = 0; index < count; ++index) {
      const AnyRecord record = records.Next();
      AddAny(draft, record);
      if (records.rng().OneIn(2)) {
        dropped.push_back(index);
        continue;
      }
      kept.push_back(record);
      EncodeAnyRecord(record, bytes);
    }
    draft.Drop(dropped);
    ASSERT_EQ(draft.count(), kept.size());
    EXPECT_EQ(draft.bytes(), bytes);
    for (size_t index = 0; index < kept.size(); ++index) {
      EXPECT_TRUE(Same(*DecodeRecord(draft.raw(index)), kept[index]));
    }
  }
}

TEST(BatchDraftTest, ClearMakesItEmpty) {
  BatchDraft draft;
  draft.Add(DeadLetterPurge{.id = "x"});
  draft.Clear();
  EXPECT_TRUE(draft.empty());
  EXPECT_TRUE(draft.bytes().empty());
  draft.Add(DeadLetterPurge{.id = "y"});
  EXPECT_EQ(FieldsOf<DeadLetterPurge>(draft.raw(0)).id, "y");
}

}  // namespace
}  // namespace holdfast
