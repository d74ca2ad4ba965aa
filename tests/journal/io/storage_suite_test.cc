// What every Storage and File owes, over all three of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "journal/base/seeded_rng.h"
#include "tests/journal/io/storage_cases.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

class StorageSuite : public StorageTest {
 protected:
  // Random writes, cuts and reads at any alignment, against a string.
  void ExpectLikeAString(uint64_t seed, bool direct) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    auto file = Open("random-" + std::to_string(seed), direct);
    std::string model;
    for (int step = 0; step < 40; ++step) {
      const uint64_t offset = rng.Below(600'000);
      const uint64_t bytes = rng.OneIn(2) ? rng.Below(300'000) : rng.Below(9'000);
      if (rng.OneIn(8)) {
        ASSERT_OK(file->Truncate(offset));
        model.resize(offset, '\0');
      } else {
        const std::string text(bytes, static_cast<char>('a' + step % 26));
        ASSERT_OK(file->WriteAt(offset, AsBytes(text)));
        if (bytes > 0) model.resize(std::max<size_t>(model.size(), offset + bytes), '\0');
        model.replace(std::min<size_t>(offset, model.size()), bytes, text);
      }
      std::string read(rng.Below(300'000), '?');
      const uint64_t from = rng.Below(700'000);
      ASSERT_OK_AND_ASSIGN(
          const size_t got,
          file->ReadAt(from, {reinterpret_cast<std::byte*>(read.data()), read.size()}));
      read.resize(got);
      ASSERT_EQ(read == model.substr(std::min<size_t>(from, model.size()), got), true);
      ASSERT_EQ(ReadAll(*file) == model, true);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Storages, StorageSuite,
                         testing::Values(StorageCase::kPosix, StorageCase::kUring,
                                         StorageCase::kSimulated),
                         CaseName);

// Proves: G4
TEST_P(StorageSuite, BytesReadBackAsWrittenAtAnyAlignment) {
  for (const uint64_t seed : Seeds(4)) ExpectLikeAString(seed, /*direct=*/true);
}

// Proves: G4
TEST_P(StorageSuite, BytesReadBackAsWrittenThroughTheCache) {
  for (const uint64_t seed : Seeds(4)) ExpectLikeAString(seed, /*direct=*/false);
}

// Proves: G4
TEST_P(StorageSuite, DirectAndBufferedHandlesSeeTheSameBytes) {
  auto direct = Open("file", /*direct=*/true);
  auto buffered = Open("file", /*direct=*/false);
  const AlignedBuffer a = Filled(8192, 'a');
  ASSERT_OK(direct->WriteAt(0, a.view()));
  EXPECT_EQ(ReadAll(*buffered), std::string(8192, 'a'));
  ASSERT_OK(buffered->WriteAt(4096, AsBytes("b")));
  EXPECT_EQ(ReadAll(*direct)[4096], 'b');
}

TEST_P(StorageSuite, AReadEndsWithTheFile) {
  auto file = Open("file");
  ASSERT_OK(file->WriteAt(0, AsBytes("0123456789")));
  AlignedBuffer buffer(4096);
  ASSERT_OK_AND_ASSIGN(const size_t all, file->ReadAt(0, buffer.span()));
  EXPECT_EQ(all, 10U);
  ASSERT_OK_AND_ASSIGN(const size_t tail, file->ReadAt(7, buffer.span().first(100)));
  EXPECT_EQ(tail, 3U);
  ASSERT_OK_AND_ASSIGN(const size_t beyond, file->ReadAt(uint64_t{1} << 40, buffer.span()));
  EXPECT_EQ(beyond, 0U);
}

TEST_P(StorageSuite, SmallWritesDoNotGrowTheFileToABlock) {
  auto file = Open("file");
  ASSERT_OK(file->WriteAt(5000, AsBytes("x")));
  ASSERT_OK_AND_ASSIGN(const uint64_t size, file->Size());
  EXPECT_EQ(size, 5001U);
}

TEST_P(StorageSuite, WrittenZerosReplaceWhatStoodThere) {
  auto file = Open("file");
  ASSERT_OK(file->WriteAt(0, AsBytes(std::string(10'000, 'x'))));
  const uint64_t bytes = (uint64_t{2} << 20) + 4096;
  ASSERT_OK(file->WriteZeros(bytes));
  ASSERT_OK(file->SyncData());
  EXPECT_EQ(ReadAll(*file) == std::string(bytes, '\0'), true);
  ASSERT_OK(file->WriteZeros(4096));
  ASSERT_OK_AND_ASSIGN(const uint64_t size, file->Size());
  EXPECT_EQ(size, bytes);
}

// Proves: G4
TEST_P(StorageSuite, WhatIsMissingIsNotFound) {
  EXPECT_FAILS(storage_->OpenFile("no", OpenMode::kReadOnly), kNotFound, kNone);
  EXPECT_FAILS(storage_->OpenFile("no", OpenMode::kReadWrite), kNotFound, kNone);
  EXPECT_FAILS(storage_->OpenFile("no/file", OpenMode::kCreate), kNotFound, kNone);
  EXPECT_FAILS(storage_->Remove("no"), kNotFound, kNone);
  EXPECT_FAILS(storage_->Rename("no", "other"), kNotFound, kNone);
  EXPECT_FAILS(storage_->List("no"), kNotFound, kNone);
  EXPECT_FAILS(storage_->SyncFolder("no"), kNotFound, kNone);
}

TEST_P(StorageSuite, ListNamesTheEntriesOfOneFolderInOrder) {
  ASSERT_OK(storage_->MakeFolder("journal"));
  ASSERT_OK(storage_->MakeFolder("journal"));
  for (const char* name : {"b", "a", "journal/2", "journal/10", "journal/1"}) Open(name);
  ASSERT_OK_AND_ASSIGN(const auto top, storage_->List(""));
  EXPECT_EQ(top, (std::vector<std::string>{"a", "b", "journal"}));
  ASSERT_OK_AND_ASSIGN(const auto inside, storage_->List("journal"));
  EXPECT_EQ(inside, (std::vector<std::string>{"1", "10", "2"}));
  EXPECT_OK(storage_->SyncFolder(""));
  EXPECT_OK(storage_->SyncFolder("journal"));
}

TEST_P(StorageSuite, RenameReplacesAndTheHandleFollowsItsFile) {
  auto file = Open("spare");
  Open("segment");
  ASSERT_OK(storage_->Rename("spare", "segment"));
  ASSERT_OK(file->WriteAt(0, AsBytes("new")));
  EXPECT_EQ(ReadAll(*Open("segment")), "new");
  ASSERT_OK_AND_ASSIGN(const auto names, storage_->List(""));
  EXPECT_EQ(names, std::vector<std::string>{"segment"});
}

TEST_P(StorageSuite, ARemovedFileLivesOnBehindItsHandle) {
  auto file = Open("file");
  ASSERT_OK(file->WriteAt(0, AsBytes("old")));
  ASSERT_OK(storage_->Remove("file"));
  EXPECT_EQ(ReadAll(*file), "old");
  EXPECT_EQ(ReadAll(*Open("file")), "");
}

// Proves: G9
TEST_P(StorageSuite, OneHandleHasTheLockUntilItGoes) {
  auto first = Open("LOCK");
  auto second = Open("LOCK");
  ASSERT_OK(first->TryLock());
  EXPECT_OK(first->TryLock());
  EXPECT_FAILS(second->TryLock(), kFailedPrecondition, kLocked);
  first.reset();
  EXPECT_OK(second->TryLock());
}

TEST_P(StorageSuite, TellsTheSameBootEachTimeAndSomeFreeSpace) {
  EXPECT_NE(storage_->host_boot_id(), "");
  EXPECT_EQ(storage_->host_boot_id(), storage_->host_boot_id());
  ASSERT_OK_AND_ASSIGN(const uint64_t free_bytes, storage_->FreeBytes());
  EXPECT_GT(free_bytes, 0U);
}

// Proves: G3
TEST_P(StorageSuite, WritingThroughAReadingHandleFailsAndChangesNothing) {
  ASSERT_OK(Open("file")->WriteAt(0, AsBytes("kept")));
  ASSERT_OK_AND_ASSIGN(auto file, storage_->OpenFile("file", OpenMode::kReadOnly));
  EXPECT_FAILS(file->WriteAt(0, AsBytes("lost")), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(file->WriteZeros(4096), kFailedPrecondition, kReadOnly);
  EXPECT_FAILS(file->Truncate(0), kFailedPrecondition, kReadOnly);
  EXPECT_EQ(ReadAll(*file), "kept");
}

}  // namespace
}  // namespace holdfast
