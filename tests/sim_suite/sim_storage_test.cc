#include "tests/sim/sim_storage.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/sim_clock.h"

namespace holdfast {
namespace {

struct alignas(4096) Block {
  explicit Block(char letter) { bytes.fill(static_cast<std::byte>(letter)); }
  std::array<std::byte, 4096> bytes;
};

std::unique_ptr<File> MustOpen(Storage& storage, const std::string& name) {
  auto file = storage.OpenFile(name, OpenMode::kCreate);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

TEST(SimStorageTest, AnOperationThatFailsHasDoneNothing) {
  SimStorage storage;
  auto file = MustOpen(storage, "f");
  ASSERT_TRUE(file->WriteAt(0, AsBytes("abc")).ok());
  storage.SetFault(SimFault{.at = storage.operations() + 1});
  const uint64_t changes = storage.changes();
  EXPECT_EQ(file->WriteAt(0, AsBytes("xyz")).code(), StatusCode::kUnavailable);
  EXPECT_EQ(storage.changes(), changes);
  EXPECT_EQ(storage.disk().Contents("f"), "abc");
  EXPECT_TRUE(file->WriteAt(0, AsBytes("xyz")).ok());  // once
}

TEST(SimStorageTest, AFaultForEverStays) {
  SimStorage storage;
  auto file = MustOpen(storage, "f");
  storage.SetFault(SimFault{.at = 1, .for_ever = true, .only = SimCall::kSyncData});
  EXPECT_TRUE(file->WriteAt(0, AsBytes("xyz")).ok());
  EXPECT_FALSE(file->SyncData().ok());
  EXPECT_FALSE(file->SyncData().ok());
}

TEST(SimStorageTest, ATornWriteFailsAndLeavesSomeOfItsSectors) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SimStorage storage(SimDisk(), {.seed = seed});
    auto file = MustOpen(storage, "f");
    ASSERT_TRUE(file->WriteAt(0, AsBytes(std::string(1024, 'a'))).ok());
    storage.SetFault(
        SimFault{.at = 1, .effect = SimFault::Effect::kTorn, .only = SimCall::kWriteAt});
    EXPECT_FALSE(file->WriteAt(0, AsBytes(std::string(1024, 'b'))).ok());
    const std::string bytes = storage.disk().Contents("f");
    seen.insert({bytes[0], bytes[512]});
  }
  EXPECT_EQ(seen, (std::set<std::string>{"aa", "ab", "ba", "bb"}));
}

TEST(SimStorageTest, AMisdirectedWriteSaysOkAndLandsElsewhere) {
  SimStorage storage;
  auto file = MustOpen(storage, "f");
  ASSERT_TRUE(file->WriteZeros(8192).ok());
  storage.SetFault(
      SimFault{.at = 1, .effect = SimFault::Effect::kMisdirect, .only = SimCall::kWriteAt});
  EXPECT_TRUE(file->WriteAt(0, AsBytes("x")).ok());
  EXPECT_EQ(storage.disk().Contents("f")[0], '\0');
  EXPECT_EQ(storage.disk().Contents("f")[4096], 'x');
}

TEST(SimStorageTest, AFullDiskRefusesToGrowAndOverwritesStillWork) {
  SimStorage storage(SimDisk({.bytes_max = 8192}));
  auto file = MustOpen(storage, "f");
  ASSERT_TRUE(file->WriteZeros(4096).ok());
  const Status full = file->WriteZeros(16384);
  EXPECT_EQ(DetailOf(full), Detail::kDiskFull);
  EXPECT_EQ(*storage.FreeBytes(), 0u);
  EXPECT_TRUE(file->WriteAt(0, AsBytes("x")).ok());
  EXPECT_EQ(DetailOf(file->WriteAt(8192, AsBytes("x"))), Detail::kDiskFull);
  file.reset();
  ASSERT_TRUE(storage.Remove("f").ok());
  EXPECT_EQ(*storage.FreeBytes(), 8192u);
}

TEST(SimStorageTest, ALyingSyncLeavesEverythingLoose) {
  SimStorage storage(SimDisk(), {.lying_syncs = true});
  auto file = MustOpen(storage, "f");
  ASSERT_TRUE(file->WriteAt(0, AsBytes("x")).ok());
  ASSERT_TRUE(file->SyncData().ok());
  ASSERT_TRUE(storage.SyncFolder("").ok());
  EXPECT_EQ(storage.disk().Loose().size(), 3u);
}

TEST(SimStorageTest, AfterThePowerWentOffNothingWorksAndNothingChanges) {
  SimStorage storage;
  auto file = MustOpen(storage, "f");
  storage.PowerOffAt(storage.operations() + 2);
  EXPECT_TRUE(file->WriteAt(0, AsBytes("x")).ok());
  EXPECT_FALSE(file->WriteAt(0, AsBytes("y")).ok());
  EXPECT_FALSE(file->SyncData().ok());
  EXPECT_FALSE(storage.OpenFile("g", OpenMode::kCreate).ok());
  EXPECT_EQ(storage.disk().Contents("f"), "x");
}

TEST(SimStorageTest, TheObserverSeesTheDiskBeforeEachOperation) {
  SimStorage storage;
  std::vector<std::string> seen;
  storage.SetObserver([&](const SimOperation& operation, const SimDisk& disk) {
    seen.push_back(std::string(SimCallName(operation.call)) + " " +
                   std::to_string(disk.Loose().size()));
  });
  auto file = MustOpen(storage, "f");
  ASSERT_TRUE(file->WriteAt(0, AsBytes("x")).ok());
  ASSERT_TRUE(file->SyncData().ok());
  ASSERT_TRUE(storage.SyncFolder("").ok());
  EXPECT_EQ(seen,
            (std::vector<std::string>{"OpenFile 0", "WriteAt 1", "SyncData 3", "SyncFolder 1"}));
}

TEST(SimStorageTest, ALockBelongsToOneOpenFileUntilThatIsClosed) {
  SimStorage storage;
  auto first = MustOpen(storage, "LOCK");
  auto second = MustOpen(storage, "LOCK");
  EXPECT_TRUE(first->TryLock().ok());
  EXPECT_TRUE(first->TryLock().ok());
  EXPECT_EQ(DetailOf(second->TryLock()), Detail::kLocked);
  first.reset();
  EXPECT_TRUE(second->TryLock().ok());
}

TEST(SimQueueTest, BatchesCompleteInTheOrderThatTheSeedPicks) {
  const auto run = [](uint64_t seed) {
    SimStorage storage(SimDisk(), {.seed = seed});
    auto file = MustOpen(storage, "f");
    auto queue = *storage.NewWriteQueue();
    const Block block('x');
    for (uint64_t id = 0; id < 8; ++id) {
      const WriteOp op{file.get(), id * 4096, block.bytes};
      EXPECT_TRUE(queue->Submit({id, WriteKind::kPlain, {&op, 1}}).ok());
    }
    std::vector<uint64_t> order;
    for (int i = 0; i < 8; ++i) order.push_back(queue->WaitOne(absl::ZeroDuration())->id);
    EXPECT_EQ(queue->WaitOne(absl::ZeroDuration()).status().code(), StatusCode::kDeadlineExceeded);
    return order;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(SimQueueTest, AFullQueueStartsNothing) {
  SimStorage storage(SimDisk(), {.depth_max = 1});
  auto file = MustOpen(storage, "f");
  const Block block('x');
  auto queue = *storage.NewWriteQueue();
  const WriteOp op{file.get(), 0, block.bytes};
  ASSERT_TRUE(queue->Submit({1, WriteKind::kDurable, {&op, 1}}).ok());
  EXPECT_EQ(DetailOf(queue->Submit({2, WriteKind::kDurable, {&op, 1}})), Detail::kLimit);
  EXPECT_EQ(queue->WaitOne(absl::ZeroDuration())->id, 1u);
  EXPECT_FALSE(queue->WaitOne(absl::ZeroDuration()).ok());
}

TEST(SimQueueTest, AFaultAtAWaitIsTheResultOfThatBatch) {
  SimStorage storage;
  auto file = MustOpen(storage, "f");
  const Block block('x');
  auto queue = *storage.NewWriteQueue();
  const WriteOp op{file.get(), 0, block.bytes};
  ASSERT_TRUE(queue->Submit({7, WriteKind::kDurable, {&op, 1}}).ok());
  storage.SetFault(SimFault{.at = 1, .only = SimCall::kWaitOne});
  const auto completion = queue->WaitOne(absl::ZeroDuration());
  ASSERT_TRUE(completion.ok());
  EXPECT_EQ(completion->id, 7u);
  EXPECT_FALSE(completion->status.ok());
}

TEST(SimQueueTest, ALostRequestFailsTheWaitItself) {
  SimStorage storage;
  auto file = MustOpen(storage, "f");
  const Block block('x');
  auto queue = *storage.NewWriteQueue();
  const WriteOp op{file.get(), 0, block.bytes};
  ASSERT_TRUE(queue->Submit({7, WriteKind::kDurable, {&op, 1}}).ok());
  storage.SetFault(
      SimFault{.at = 1, .effect = SimFault::Effect::kQueueLost, .only = SimCall::kWaitOne});
  EXPECT_EQ(queue->WaitOne(absl::ZeroDuration()).status().code(), StatusCode::kUnavailable);
}

TEST(SimQueueTest, TheDestructorWaitsForWhatIsInFlight) {
  SimStorage storage;
  auto file = MustOpen(storage, "f");
  const Block block('x');
  {
    auto queue = *storage.NewWriteQueue();
    const WriteOp op{file.get(), 0, block.bytes};
    ASSERT_TRUE(queue->Submit({1, WriteKind::kDurable, {&op, 1}}).ok());
  }
  EXPECT_EQ(storage.disk().Contents("f"), std::string(4096, 'x'));
}

TEST(SimClockTest, MovesOnlyWhenToldOrWhenAskedWithJumpsOn) {
  SimClock clock;
  const absl::Duration start = clock.Now();
  EXPECT_GT(clock.Until(start + absl::Seconds(5)), absl::ZeroDuration());
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(1));
  clock.JumpWhenAsked(absl::Seconds(2));
  EXPECT_EQ(clock.Until(start + absl::Seconds(5)), absl::ZeroDuration());
  EXPECT_EQ(clock.Now(), start + absl::Seconds(3));
  clock.Until(start + absl::Seconds(4));
  EXPECT_EQ(clock.Now(), start + absl::Seconds(4));
}

}  // namespace
}  // namespace holdfast
