#include "tests/support/short_io_storage.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/sim/sim_storage.h"

namespace holdfast {
namespace {

std::unique_ptr<File> MustOpen(Storage& storage, const std::string& name) {
  auto file = storage.OpenFile(name, OpenMode::kCreate);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

TEST(ShortIoStorageTest, MovesOneBlockPerCallAndTheBytesAreTheSame) {
  SimStorage disk;
  ShortIoStorage storage(disk, 7);
  auto file = MustOpen(storage, "f");
  const uint64_t before = disk.operations();
  ASSERT_TRUE(file->WriteAt(3, AsBytes("one two three four")).ok());
  EXPECT_EQ(disk.operations() - before, 3u);
  std::string read(100, '?');
  const auto got = file->ReadAt(3, {reinterpret_cast<std::byte*>(read.data()), read.size()});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(read.substr(0, *got), "one two three four");
}

TEST(ShortIoStorageTest, ABatchIsDoneWhenItsLastPieceIs) {
  SimStorage disk(SimDisk(), {.depth_max = 8, .alignment = 512});
  ShortIoStorage storage(disk, 512);
  auto file = MustOpen(storage, "f");
  auto queue = *storage.NewWriteQueue();
  alignas(4096) std::array<std::byte, 16384> bytes{};
  bytes.fill(std::byte{'x'});
  const WriteOp op{file.get(), 0, bytes};
  ASSERT_TRUE(queue->Submit({5, WriteKind::kDurable, {&op, 1}}).ok());
  const auto done = queue->WaitOne(absl::ZeroDuration());
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->id, 5u);
  EXPECT_TRUE(done->status.ok());
  EXPECT_EQ(disk.disk().Contents("f"), std::string(16384, 'x'));
  const WriteOp flush{file.get(), 0, {}};
  ASSERT_TRUE(queue->Submit({6, WriteKind::kFlush, {&flush, 1}}).ok());
  EXPECT_EQ(queue->WaitOne(absl::ZeroDuration())->id, 6u);
}

TEST(ShortIoStorageTest, OneFailedPieceFailsTheBatch) {
  SimStorage disk(SimDisk(), {.alignment = 512});
  ShortIoStorage storage(disk, 512);
  auto file = MustOpen(storage, "f");
  auto queue = *storage.NewWriteQueue();
  alignas(4096) const std::array<std::byte, 4096> bytes{};
  const WriteOp op{file.get(), 0, bytes};
  ASSERT_TRUE(queue->Submit({5, WriteKind::kPlain, {&op, 1}}).ok());
  disk.SetFault(SimFault{.at = disk.operations() + 4, .only = SimCall::kWaitOne});
  const auto done = queue->WaitOne(absl::ZeroDuration());
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(done->status.ok());
}

}  // namespace
}  // namespace holdfast
