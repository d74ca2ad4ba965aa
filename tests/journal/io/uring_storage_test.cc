// Killed with writes in flight: what io_uring adds to the dangers of a restart.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "tests/journal/io/storage_cases.h"
#include "tests/support/child_process.h"
#include "tests/support/deny_system_call.h"

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

class FailedRingTest : public StorageTest {
 protected:
  // A ring that stops working: every batch that it has or gets is told as unknown, and the end does
  // not hang.
  std::string BreakTheRing() {
    storage_ = *OpenUringStorage(dir_.path(), {});  // A ring belongs to the process that made it.
    auto file = Open("file");
    CHECK(file->WriteZeros(8192).ok());
    auto queue = *storage_->NewWriteQueue();
    const AlignedBuffer a = Filled(4096, 'a');
    const WriteOp op{.file = file.get(), .bytes = a.view()};
    const WriteBatch batch{.id = 1, .kind = WriteKind::kPlain, .writes = {&op, 1}};
    DenySystemCall(SYS_io_uring_enter, EIO);
    if (queue->Submit(batch).code() != StatusCode::kUnavailable) return "first submit";
    if (queue->WaitOne(absl::InfiniteDuration()).status().code() != StatusCode::kUnavailable) {
      return "wait";
    }
    if (queue->Submit(batch).code() != StatusCode::kUnavailable) return "second submit";
    return "";
  }
  // The waiter sleeps in the kernel when the other thread finds the ring broken.
  std::string BreakTheRingUnderASleeper() {
    storage_ = *OpenUringStorage(dir_.path(), {});
    auto file = Open("file");
    auto queue = *storage_->NewWriteQueue();
    std::thread waiter([&] {
      CHECK(queue->WaitOne(absl::InfiniteDuration()).status().code() == StatusCode::kUnavailable);
    });
    const AlignedBuffer a = Filled(4096, 'a');
    const WriteOp op{.file = file.get(), .bytes = a.view()};
    DenySystemCall(SYS_io_uring_enter, EIO);
    const Status status = queue->Submit({.id = 1, .kind = WriteKind::kPlain, .writes = {&op, 1}});
    waiter.join();
    return status.code() == StatusCode::kUnavailable ? "" : status.ToString();
  }
};
INSTANTIATE_TEST_SUITE_P(Kernel, FailedRingTest, testing::Values(StorageCase::kUring), CaseName);

// Proves: G3
TEST_P(FailedRingTest, ABrokenRingIsToldToSubmitterAndWaiter) {
  EXPECT_EQ(InChild([&] { return BreakTheRing(); }), "");
  EXPECT_EQ(InChild([&] { return BreakTheRingUnderASleeper(); }), "");
}

}  // namespace
}  // namespace holdfast
