#include "recovery/checkpoint_writer.h"

#include <gtest/gtest.h>

#include "tests/recovery/captured.h"

namespace holdfast {
namespace {

StatusOr<std::unique_ptr<CheckpointWriter>> Create(Storage& storage, Lsn from) {
  return CheckpointWriter::Create(storage, {.from = from, .epoch = Epoch(1)}, 7);
}

StatusOr<KeptCheckpoint> Write(Storage& storage, Lsn from, size_t entries_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointWriter> writer, Create(storage, from));
  writer->BeginSection(1);
  for (size_t done = 0; done < entries_bytes;) {
    const std::string entries(std::min<size_t>(entries_bytes - done, 30'000), 'e');
    RETURN_IF_ERROR(writer->Add(entries));
    done += entries.size();
  }
  RETURN_IF_ERROR(writer->EndSection(entries_bytes));
  RETURN_IF_ERROR(writer->Finish(from + 1));
  return writer->Publish();
}

TEST(CheckpointWriterTest, OnlyTheNewestTwoStay) {
  SimStorage storage;
  for (const uint64_t from : {3, 9, 17, 40}) ASSERT_OK(Write(storage, Lsn(from), 100));
  EXPECT_EQ(CheckpointNames(storage.disk()),
            (std::vector<std::string>{"0000000000000011.ckp", "0000000000000028.ckp"}));
}

TEST(CheckpointWriterTest, OneWithoutANameIsRemoved) {
  SimStorage storage;
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, Create(storage, Lsn(3)));
    EXPECT_EQ(CheckpointNames(storage.disk()).size(), 1u);
  }
  EXPECT_TRUE(CheckpointNames(storage.disk()).empty());
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, Create(storage, Lsn(3)));
    writer->Leave();
  }
  EXPECT_EQ(CheckpointNames(storage.disk()).size(), 1u);
  ASSERT_OK(Write(storage, Lsn(3), 10));  // instead of it
  EXPECT_EQ(CheckpointNames(storage.disk()), std::vector<std::string>{"0000000000000003.ckp"});
}

TEST(CheckpointWriterTest, LargeOnesGoOutInLargeAlignedWrites) {
  SimStorage storage;
  size_t writes = 0;
  storage.SetObserver([&](const SimOperation& operation, const SimDisk&) {
    writes += operation.call == SimCall::kWriteAt;
  });
  ASSERT_OK_AND_ASSIGN(auto writer, Create(storage, Lsn(5)));
  SeededRng rng(1);
  std::string entries(64 << 10, ' ');
  writer->BeginSection(1);
  for (int i = 0; i < 80; ++i) {
    for (char& c : entries) c = static_cast<char>(rng.Next());
    ASSERT_OK(writer->Add(entries));
  }
  ASSERT_OK(writer->EndSection(1));
  ASSERT_OK(writer->Finish(Lsn(5)));
  ASSERT_OK_AND_ASSIGN(const KeptCheckpoint kept, writer->Publish());
  EXPECT_GT(kept.bytes, 5u << 20);
  EXPECT_LE(writes, 7u);
  EXPECT_TRUE(IsAligned(kept.bytes, kBlockBytes));
  EXPECT_EQ(storage.disk().Contents(CheckpointFileName(Lsn(5))).size(), kept.bytes);
}

TEST(CheckpointWriterTest, AFullDiskLeavesRoomForOthers) {
  SimStorage storage(SimDisk({.bytes_max = uint64_t{3} << 20}));
  ASSERT_OK(Write(storage, Lsn(2), 1000));
  ASSERT_OK_AND_ASSIGN(auto writer, Create(storage, Lsn(5)));
  SeededRng rng(1);
  std::string entries(128 << 10, ' ');
  writer->BeginSection(1);
  Status status;
  for (int i = 0; i < 80 && status.ok(); ++i) {
    for (char& c : entries) c = static_cast<char>(rng.Next());
    status = writer->Add(entries);
  }
  EXPECT_FAILS(status, kResourceExhausted, kDiskFull);
  writer.reset();
  EXPECT_EQ(CheckpointNames(storage.disk()), std::vector<std::string>{"0000000000000002.ckp"});
  ASSERT_OK(Write(storage, Lsn(6), 1000));
}

}  // namespace
}  // namespace holdfast
