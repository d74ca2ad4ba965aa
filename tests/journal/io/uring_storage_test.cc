// Killed with writes in flight: what io_uring adds to the dangers of a restart.
#include <gtest/gtest.h>
#include <sched.h>

#include <csignal>

#include "tests/journal/io/storage_cases.h"
#include "tests/support/child_process.h"

namespace holdfast {
namespace {

constexpr uint64_t kWriteBytes = uint64_t{2} << 20;
constexpr uint64_t kWrites = 16;

std::string Snapshot(File& file) {
  AlignedBuffer bytes(kWrites * kWriteBytes);
  const StatusOr<size_t> got = file.ReadAt(0, bytes.span());
  CHECK(got.ok());
  return std::string(AsText(bytes.view().first(*got)));
}

class KilledWriterTest : public StorageTest {
 protected:
  // Locks the file, fills the queue with large durable writes, tells so and sleeps until it is
  // killed.
  void Write(int tell) {
    auto storage = *OpenUringStorage(dir_.path(), {});
    auto file = *storage->OpenFile("segment", OpenMode::kReadWrite, {.direct = true});
    CHECK(file->TryLock().ok());
    auto queue = *storage->NewWriteQueue();
    const AlignedBuffer bytes = Filled(kWriteBytes, 'n');
    for (uint64_t i = 0; i < kWrites; ++i) {
      const WriteOp op{.file = file.get(), .offset = i * kWriteBytes, .bytes = bytes.view()};
      CHECK(queue->Submit({.id = i, .kind = WriteKind::kDurable, .writes = {&op, 1}}).ok());
    }
    CHECK(write(tell, "!", 1) == 1);
    for (;;) pause();
  }
};
INSTANTIATE_TEST_SUITE_P(Kernel, KilledWriterTest, testing::Values(StorageCase::kUring), CaseName);

// The lock on the written descriptor is held by the requests too: who gets it finds a file that no
// longer changes, although its writer was killed with writes in flight.
// Proves: G9
TEST_P(KilledWriterTest, TheLockIsFreeOnlyWhenTheLastWriteHasLanded) {
  uint64_t refused = 0;
  for (int round = 0; round < 3; ++round) {
    auto file = Open("segment");
    ASSERT_OK(file->WriteZeros(kWrites * kWriteBytes));
    ASSERT_OK(file->SyncData());
    ChildProcess writer([&](int tell) { Write(tell); });
    ASSERT_EQ(writer.Hear(1), "!");
    writer.Kill();
    for (;;) {
      const Status lock = file->TryLock();
      if (lock.ok()) break;
      ASSERT_FAILS(lock, kFailedPrecondition, kLocked);
      ++refused;
      sched_yield();
    }
    const std::string at_grant = Snapshot(*file);
    EXPECT_TRUE(WIFSIGNALED(writer.Wait()));
    for (int look = 0; look < 3; ++look) ASSERT_EQ(Snapshot(*file) == at_grant, true);
  }
  RecordProperty("lock_refused", std::to_string(refused));
}

}  // namespace
}  // namespace holdfast
