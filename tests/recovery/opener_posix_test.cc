// Opening on a real file system: the same decisions through the operating system's own calls.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "recovery/opener.h"
#include "tests/recovery/boot.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

// Every file under a directory, with its bytes.
std::map<std::string, std::string> Snapshot(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    std::string bytes;
    if (entry.is_regular_file()) {
      std::ifstream in(entry.path(), std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    files[entry.path().string()] = bytes;
  }
  return files;
}

// Proves: G2
TEST(OpenerPosixTest, AStoreComesBackAfterACleanAndAnUncleanStop) {
  TempDir directory;
  const auto storage = OpenTestStorage(directory.path());
  {
    RecordingMachine machine;
    ASSERT_OK_AND_ASSIGN(StoreBuilder store, StoreBuilder::Open(*storage, machine));
    store.AppendSynced({1, 2});
    store.Rotate(*storage);
    store.AppendSynced({3});
    store.CloseClean();
  }
  {
    RecordingMachine machine;
    ASSERT_OK_AND_ASSIGN(StoreBuilder store, StoreBuilder::Open(*storage, machine, 2));
    EXPECT_TRUE(store.report().clean);
    EXPECT_EQ(machine.lsns(), UpTo(6));
    store.AppendSynced({1});
    store.Append({1});
  }
  RecordingMachine machine;
  ASSERT_OK_AND_ASSIGN(StoreBuilder store, StoreBuilder::Open(*storage, machine, 3));
  EXPECT_FALSE(store.report().clean);
  EXPECT_EQ(machine.lsns(), UpTo(8));
}

// Proves: G9
TEST(OpenerPosixTest, ASecondWriterIsRefusedAndChangesNothing) {
  TempDir directory;
  const auto storage = OpenTestStorage(directory.path());
  RecordingMachine machine;
  ASSERT_OK_AND_ASSIGN(StoreBuilder store, StoreBuilder::Open(*storage, machine));
  const auto before = Snapshot(directory.path());
  const auto other = OpenTestStorage(directory.path());
  EXPECT_FAILS(StoreBuilder::Open(*other, machine).status(), kFailedPrecondition, kLocked);
  EXPECT_EQ(Snapshot(directory.path()), before);
}

TEST(OpenerPosixTest, ForeignContentIsLeftAlone) {
  TempDir directory;
  std::ofstream(directory.Sub("notes.txt")) << "hello";
  const auto before = Snapshot(directory.path());
  const auto storage = OpenTestStorage(directory.path());
  RecordingMachine machine;
  EXPECT_FAILS(StoreBuilder::Open(*storage, machine).status(), kFailedPrecondition, kForeign);
  EXPECT_EQ(Snapshot(directory.path()), before);
}

TEST(OpenerPosixTest, AStorageOpenedForReadingRefusesAWriterAndServesAReader) {
  TempDir directory;
  {
    const auto storage = OpenTestStorage(directory.path());
    RecordingMachine machine;
    ASSERT_OK_AND_ASSIGN(StoreBuilder store, StoreBuilder::Open(*storage, machine));
    store.AppendSynced({2});
    store.CloseClean();
  }
  const auto before = Snapshot(directory.path());
  ASSERT_OK_AND_ASSIGN(const auto storage,
                       OpenStorage(directory.path(), {.create = false, .read_only = true}));
  RecordingMachine machine;
  EXPECT_FAILS(StoreBuilder::Open(*storage, machine).status(), kFailedPrecondition, kReadOnly);
  ASSERT_OK_AND_ASSIGN(const ReadStore read, OpenReadOnly(*storage, machine.machines()));
  EXPECT_TRUE(read.report.clean);
  EXPECT_EQ(machine.lsns(), UpTo(2));
  EXPECT_EQ(Snapshot(directory.path()), before);
}

}  // namespace
}  // namespace holdfast
