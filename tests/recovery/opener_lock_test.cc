// One writer at a time, also behind a removed LOCK and while a killed writer's requests are in
// flight.
#include <gtest/gtest.h>

#include <cstring>

#include "journal/io/aligned_buffer.h"
#include "recovery/opener.h"
#include "tests/recovery/boot.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Proves: G9
TEST(OpenerLockTest, ASecondWriterIsRefused) {
  Boot first{SimDisk()};
  RecordingMachine machine;
  const uint64_t before = first.storage->disk().Fingerprint();
  EXPECT_FAILS(StoreBuilder::Open(*first.storage, machine).status(), kFailedPrecondition, kLocked);
  EXPECT_EQ(first.storage->disk().Fingerprint(), before);
  first.builder.reset();
  EXPECT_OK(StoreBuilder::Open(*first.storage, machine).status());
}

// Proves: G9
TEST(OpenerLockTest, ASecondWriterIsRefusedAlsoIfSomebodyRemovedTheLockFile) {
  Boot first{SimDisk()};
  first.store().AppendSynced({1});
  ASSERT_OK(first.storage->Remove("LOCK"));
  RecordingMachine machine;
  EXPECT_FAILS(StoreBuilder::Open(*first.storage, machine).status(), kFailedPrecondition, kLocked);
}

// Proves: G9
TEST(OpenerLockTest, WritesInFlightOfAKilledWriterAreWaitedFor) {
  Boot first{SimDisk()};
  first.store().AppendSynced({1});
  const uint64_t offset = first.store().Append({1});
  const std::string group = first.storage->disk().Contents(Name(1)).substr(offset, kBlockBytes);
  // The same group again, as a write that was submitted and not completed when the process died.
  ASSERT_OK(
      first.store().start().active.file->WriteAt(offset, std::vector<std::byte>(kBlockBytes)));
  ASSERT_OK_AND_ASSIGN(const auto queue, first.storage->NewWriteQueue());
  AlignedBuffer bytes(kBlockBytes);
  std::memcpy(bytes.data(), group.data(), kBlockBytes);
  const WriteOp op{
      .file = first.store().start().active.file.get(), .offset = offset, .bytes = bytes.view()};
  ASSERT_OK(queue->Submit({.id = 1, .kind = WriteKind::kPlain, .writes = {&op, 1}}));
  uint64_t waited = 0;
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(seed);
    const SimDisk disk = first.storage->disk().Kill(seed, /*late=*/true);
    waited += disk.late_count();
    Boot second{disk, 2};
    ASSERT_OK(second.status);
    const std::vector<uint64_t> lsns = second.machine.lsns();
    EXPECT_EQ(second.storage->disk().late_count(), 0u);
    Boot third{second.Killed(), 3};
    ASSERT_OK(third.status);
    EXPECT_EQ(third.machine.lsns(), lsns);
  }
  EXPECT_GT(waited, 0u);
  ASSERT_OK(queue->WaitOne(absl::Seconds(1)));
}

}  // namespace
}  // namespace holdfast
