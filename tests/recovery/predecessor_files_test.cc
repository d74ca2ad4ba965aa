#include "recovery/predecessor_files.h"

#include <gtest/gtest.h>

#include "tests/recovery/boot.h"
#include "tests/support/recording_log.h"

namespace holdfast {
namespace {

constexpr uint64_t kSegmentBytes = StoreBuilder::kSegmentBytes;

std::string Spare(uint64_t id) { return SpareFileName(SegmentId(id)); }

// What a boot left with 7 records in segments 1 and 2, and with segments 3 and 4 made ahead.
SimDisk Left() {
  Boot boot{SimDisk()};
  CHECK_OK(boot.status);
  boot.store().AppendSynced({2, 1});
  boot.store().AppendSynced({1, 2});
  boot.store().Rotate(*boot.storage);
  boot.store().AppendSynced({1});
  (void)boot.store().Prepare(*boot.storage);  // only its file matters
  return boot.PowerCutKeepingAll();
}

class PredecessorFilesTest : public testing::Test {
 protected:
  void Look(const SimDisk& disk) {
    storage_ = std::make_unique<SimStorage>(disk);
    StatusOr<StoreView> view = ReadView(*storage_);
    ASSERT_OK(view);
    view_ = *std::move(view);
    files_.emplace(*storage_, view_, kSegmentBytes, &log_);
  }
  Status Gather() {
    std::map<SegmentId, std::unique_ptr<File>> locks;
    return files_->GatherSpares(locks);
  }
  bool Exists(const std::string& name) const { return storage_->disk().Exists(name); }
  uint64_t SizeOf(uint64_t id) const { return storage_->disk().Contents(Name(id)).size(); }

  std::unique_ptr<SimStorage> storage_;
  StoreView view_;
  RecordingLog log_;
  std::optional<PredecessorFiles> files_;
};

TEST_F(PredecessorFilesTest, WhatWasMadeAheadBecomesASpareAndGivesItsLockBack) {
  Look(Left());
  std::map<SegmentId, std::unique_ptr<File>> locks;
  for (const uint64_t id : {2, 3}) {
    ASSERT_OK_AND_ASSIGN(locks[SegmentId(id)], storage_->OpenFile(Name(id), OpenMode::kReadWrite));
  }
  ASSERT_OK(files_->GatherSpares(locks));
  EXPECT_EQ(files_->spares(), std::vector<SegmentId>{SegmentId(3)});
  EXPECT_FALSE(Exists(Name(3)));
  EXPECT_TRUE(Exists(Spare(3)));
  EXPECT_TRUE(locks.contains(SegmentId(2)));
  EXPECT_FALSE(locks.contains(SegmentId(3)));
}

// Half-made ones, those of another size and more than a journal keeps are only in the way.
TEST_F(PredecessorFilesTest, OnlyWholeSparesAreKeptAndNotTooMany) {
  SimDisk disk = Left();
  const std::string whole(kSegmentBytes, 's');
  for (uint64_t id = 11; id <= 18; ++id) disk.SetContents(Spare(id), AsBytes(whole));
  disk.SetContents(Spare(11), AsBytes(whole.substr(0, kSegmentBytes / 2)));
  disk.SetContents(Spare(12) + ".new", AsBytes(whole));
  Look(disk);
  ASSERT_OK(Gather());
  EXPECT_EQ(files_->spares().size(), 5u);
  for (const SegmentId spare : files_->spares()) EXPECT_TRUE(Exists(SpareFileName(spare)));
  EXPECT_FALSE(Exists(Spare(11)));
  EXPECT_FALSE(Exists(Spare(12) + ".new"));
}

TEST_F(PredecessorFilesTest, TheNewestIsMadeOfASpare) {
  Look(Left());
  ASSERT_OK(Gather());
  SegmentHeader header = *view_.layout.newest().header;
  header.segment = SegmentId(3);
  const uint64_t free = storage_->disk().free_bytes();
  ASSERT_OK_AND_ASSIGN(const Segment made, files_->MakeNewest(header));
  EXPECT_EQ(made.header.segment, SegmentId(3));
  EXPECT_TRUE(files_->spares().empty());
  EXPECT_EQ(storage_->disk().free_bytes(), free);
}

TEST_F(PredecessorFilesTest, WithoutASpareOfItsSizeTheNewestIsANewFile) {
  Look(Left());
  ASSERT_OK(Gather());
  SegmentHeader header = *view_.layout.newest().header;
  header.segment = SegmentId(3);
  header.segment_bytes = 2 * kSegmentBytes;
  ASSERT_OK(files_->MakeNewest(header));
  EXPECT_EQ(files_->spares().size(), 1u);
}

TEST_F(PredecessorFilesTest, WhatNoChainReachesGoesAndThePredecessorEndsWithItsRecords) {
  Look(Left());
  const SegmentFile& newest = view_.layout.newest();
  const uint64_t end = view_.evidence->Traced(newest.id)->trace.stamped_end;
  const Continuation next{
      .segment = SegmentId(4), .previous = newest.id, .previous_end = end, .previous_last = Lsn(7)};
  files_->Free(next);
  EXPECT_FALSE(Exists(Name(3)));
  EXPECT_EQ(SizeOf(2), end);
  EXPECT_EQ(SizeOf(1), kSegmentBytes);  // a rotation closed it, full or not
  EXPECT_EQ(files_->Sealed(next),
            (std::vector<SealedSegment>{
                {.segment = SegmentId(1),
                 .last = Lsn(6),
                 .file_bytes = kSegmentBytes,
                 .end = RecordedEnd(view_.layout, view_.layout.chain_begin)},
                {.segment = SegmentId(2), .last = Lsn(7), .file_bytes = end, .end = end}}));
  EXPECT_TRUE(log_.lines().empty());
}

}  // namespace
}  // namespace holdfast
