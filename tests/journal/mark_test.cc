#include "journal/mark.h"

#include <gtest/gtest.h>

#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr uint64_t kSlot = kBlockBytes;

Mark Statement(uint64_t synced) {
  Mark mark;
  mark.store_id = {1, 2, 3};
  mark.salt = 77;
  mark.epoch = Epoch(4);
  mark.synced = Lsn(synced);
  mark.end_segment = SegmentId(5);
  mark.end_offset = 12'288;
  mark.newest = SegmentId(6);
  mark.oldest = SegmentId(2);
  mark.clean = true;
  mark.engine_ns = 123'456;
  return mark;
}

std::unique_ptr<MarkWriter> WriterOn(Storage& storage) {
  StatusOr<std::unique_ptr<MarkWriter>> writer = MarkWriter::Open(storage);
  CHECK_OK(writer.status());
  return *std::move(writer);
}

TEST(MarkTest, EveryFieldComesBack) {
  SimStorage storage;
  ASSERT_OK(WriterOn(storage)->Write(Statement(9)));
  const StatusOr<MarkView> view = ReadMark(storage);
  ASSERT_OK(view);
  const Mark& mark = view->mark.value();
  EXPECT_FALSE(view->slots_differ);
  EXPECT_EQ(mark.store_id, Statement(9).store_id);
  EXPECT_EQ(mark.salt, 77u);
  EXPECT_EQ(mark.epoch, Epoch(4));
  EXPECT_EQ(mark.synced, Lsn(9));
  EXPECT_EQ(mark.end_segment, SegmentId(5));
  EXPECT_EQ(mark.end_offset, 12'288u);
  EXPECT_EQ(mark.newest, SegmentId(6));
  EXPECT_EQ(mark.oldest, SegmentId(2));
  EXPECT_TRUE(mark.clean);
  EXPECT_EQ(mark.engine_ns, 123'456);
}

TEST(MarkTest, AMissingFileIsNotFoundAndAnEmptyOneHasNoStatement) {
  SimStorage storage;
  EXPECT_EQ(ReadMark(storage).status().code(), StatusCode::kNotFound);
  WriterOn(storage);
  ASSERT_OK(ReadMark(storage));
  EXPECT_FALSE(ReadMark(storage)->mark.has_value());
}

// Whatever subset of unsynced sectors a power cut keeps, one whole statement is left, and one that
// was written before is not forgotten.
// Proves: G7
TEST(MarkTest, APowerCutAnywhereInAStatementLeavesAWholeOne) {
  SimStorage storage;
  const std::unique_ptr<MarkWriter> writer = WriterOn(storage);
  ASSERT_OK(writer->Write(Statement(1)));
  uint64_t cuts = 0;
  storage.SetObserver([&](const SimOperation&, const SimDisk& disk) {
    const size_t loose = disk.Loose().size();
    ASSERT_LT(loose, 10u);
    for (uint64_t subset = 0; subset < uint64_t{1} << loose; ++subset) {
      std::vector<bool> choice(loose);
      for (size_t i = 0; i < loose; ++i) choice[i] = (subset >> i & 1) != 0;
      SimStorage after(disk.PowerCut(choice));
      const StatusOr<MarkView> view = ReadMark(after);
      ASSERT_OK(view);
      ASSERT_TRUE(view->mark.has_value());
      EXPECT_TRUE(view->mark->synced == Lsn(1) || view->mark->synced == Lsn(2));
      ++cuts;
    }
  });
  ASSERT_OK(writer->Write(Statement(2)));
  EXPECT_GE(cuts, 10u);
  EXPECT_EQ(ReadMark(storage)->mark->synced, Lsn(2));
}

// A killed writer leaves a statement that can be read and is not durable: the next writer must not
// rest on it while it writes the slot that is.
// Proves: G7
TEST(MarkTest, APowerCutAfterAKillInAStatementLeavesAWholeOne) {
  SimStorage first;
  ASSERT_OK(WriterOn(first)->Write(Statement(1)));
  const auto moments_of = [](SimStorage& storage, uint64_t synced) {
    std::vector<SimDisk> moments;
    storage.SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
      if (Changes(operation.call)) moments.push_back(disk);
    });
    EXPECT_OK(WriterOn(storage)->Write(Statement(synced)));
    storage.SetObserver(nullptr);
    return moments;
  };
  for (const SimDisk& killed : moments_of(first, 2)) {
    SimStorage second(killed.Kill(1, /*late=*/false));
    for (const SimDisk& cut : moments_of(second, 3)) {
      for (const std::vector<bool>& kept : CutChoices(cut.Loose().size(), 24, 1)) {
        SimStorage after(cut.PowerCut(kept));
        const StatusOr<MarkView> view = ReadMark(after);
        ASSERT_OK(view);
        EXPECT_TRUE(view->mark.has_value());
      }
    }
  }
}

TEST(MarkTest, ADamagedSlotLeavesTheOther) {
  for (uint64_t slot : {0, 1}) {
    SimStorage storage;
    ASSERT_OK(WriterOn(storage)->Write(Statement(1)));
    SimDisk disk = storage.disk();
    disk.Damage(kMarkFile, slot * kSlot + 50, AsBytes("?"));
    SimStorage after(std::move(disk));
    EXPECT_EQ(ReadMark(after)->mark->synced, Lsn(1));
    EXPECT_TRUE(ReadMark(after)->slots_differ);
  }
}

// A block that landed in the wrong slot is not a statement.
TEST(MarkTest, ASlotCopiedToTheOthersPlaceIsNotValid) {
  SimStorage storage;
  ASSERT_OK(WriterOn(storage)->Write(Statement(1)));
  SimDisk disk = storage.disk();
  const std::string contents = disk.Contents(kMarkFile);
  disk.Damage(kMarkFile, 0, AsBytes(std::string_view(contents).substr(kSlot, kSlot)));
  SimStorage after(std::move(disk));
  EXPECT_TRUE(ReadMark(after)->slots_differ);
}

TEST(MarkTest, AWriterGoesOnAboveTheNewestStatement) {
  SimStorage storage;
  ASSERT_OK(WriterOn(storage)->Write(Statement(1)));
  const uint64_t sequence = ReadMark(storage)->mark->sequence;
  ASSERT_OK(WriterOn(storage)->Write(Statement(2)));
  EXPECT_GT(ReadMark(storage)->mark->sequence, sequence);
}

TEST(MarkTest, TheHeartbeatBelongsToItsStore) {
  SimStorage storage;
  const std::unique_ptr<MarkWriter> writer = WriterOn(storage);
  ASSERT_OK(writer->Write(Statement(1)));
  EXPECT_EQ(ReadMark(storage)->heartbeat_ns, 0);
  ASSERT_OK(writer->WriteHeartbeat(42, /*salt=*/77));
  EXPECT_EQ(ReadMark(storage)->heartbeat_ns, 42);
  ASSERT_OK(writer->WriteHeartbeat(43, /*salt=*/78));
  EXPECT_EQ(ReadMark(storage)->heartbeat_ns, 0);
}

// Proves: G13
TEST(MarkTest, ANewerFormatIsRefusedByName) {
  SimStorage storage;
  Mark newer = Statement(1);
  newer.format_version = kFormatVersion + 1;
  ASSERT_OK(WriterOn(storage)->Write(newer));
  EXPECT_FAILS(ReadMark(storage), kFailedPrecondition, kNewerFormat);
}

TEST(MarkTest, AFailedSyncIsReported) {
  SimStorage storage;
  const std::unique_ptr<MarkWriter> writer = WriterOn(storage);
  storage.SetFault(SimFault{.at = storage.operations() + 1, .only = SimCall::kSyncData});
  EXPECT_FALSE(writer->Write(Statement(1)).ok());
}

}  // namespace
}  // namespace holdfast
