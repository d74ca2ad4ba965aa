// What every WriteQueue owes, over all three of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "tests/journal/io/storage_cases.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

constexpr uint64_t kBlock = 4096;

class WriteQueueSuite : public StorageTest {
 protected:
  void SetUp() override {
    StorageTest::SetUp();
    if (storage_ == nullptr) return;
    file_ = Open("segment");
    ASSERT_OK(file_->WriteZeros(256 * kBlock));
    StatusOr<std::unique_ptr<WriteQueue>> queue = storage_->NewWriteQueue();
    ASSERT_OK(queue);
    queue_ = *std::move(queue);
  }
  void TearDown() override { queue_.reset(); }

  Status Submit(uint64_t id, WriteKind kind, File& file, uint64_t offset, ByteView bytes) {
    const WriteOp op{.file = &file, .offset = offset, .bytes = bytes};
    return queue_->Submit({.id = id, .kind = kind, .writes = {&op, 1}});
  }
  Status Flush(uint64_t id) {
    const WriteOp op{.file = file_.get()};
    return queue_->Submit({.id = id, .kind = WriteKind::kFlush, .writes = {&op, 1}});
  }
  // Ids of the next `count` completions, which must be OK.
  std::set<uint64_t> Complete(size_t count) {
    std::set<uint64_t> ids;
    for (size_t i = 0; i < count; ++i) {
      StatusOr<Completion> completion = queue_->WaitOne(absl::InfiniteDuration());
      EXPECT_OK(completion);
      if (!completion.ok()) return ids;
      EXPECT_OK(completion->status);
      EXPECT_TRUE(ids.insert(completion->id).second);
    }
    return ids;
  }
  char ByteAt(uint64_t offset) {
    std::byte byte{};
    CHECK(*file_->ReadAt(offset, {&byte, 1}) == 1);
    return static_cast<char>(byte);
  }

  std::unique_ptr<File> file_;
  std::unique_ptr<WriteQueue> queue_;
};

INSTANTIATE_TEST_SUITE_P(Queues, WriteQueueSuite,
                         testing::Values(StorageCase::kPosix, StorageCase::kUring,
                                         StorageCase::kSimulated),
                         CaseName);

// Proves: G3
TEST_P(WriteQueueSuite, EveryBatchCompletesOnceWithItsBytesInPlace) {
  for (const uint64_t seed : Seeds(5)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::string model(256 * kBlock, '\0');
    ASSERT_OK(file_->WriteZeros(model.size()));
    std::map<uint64_t, AlignedBuffer> out;
    uint64_t id_last = 0;
    // Ranges of one round never overlap: the order of completions is free.
    for (uint64_t round = 0; round < 30; ++round) {
      const size_t depth = 1 + rng.Below(queue_->depth_max());
      const uint64_t room = 256 / depth;
      for (size_t i = 0; i < depth; ++i) {
        const uint64_t id = ++id_last;
        if (rng.OneIn(6)) {
          ASSERT_OK(Flush(id));
          out[id];
          continue;
        }
        const uint64_t blocks = 1 + rng.Below(std::max<uint64_t>(1, room - 1));
        const uint64_t offset = (i * room + rng.Below(room - blocks + 1)) * kBlock;
        const char fill = static_cast<char>('a' + id % 26);
        out[id] = Filled(blocks * kBlock, fill);
        model.replace(offset, blocks * kBlock, std::string(blocks * kBlock, fill));
        const WriteKind kind = rng.OneIn(3) ? WriteKind::kPlain : WriteKind::kDurable;
        ASSERT_OK(Submit(id, kind, *file_, offset, out[id].view()));
      }
      for (const uint64_t id : Complete(depth)) ASSERT_EQ(out.erase(id), 1U);
      ASSERT_TRUE(out.empty());
    }
    EXPECT_EQ(ReadAll(*file_) == model, true);
  }
}

TEST_P(WriteQueueSuite, ABatchMayWriteManyPlacesOfSeveralFiles) {
  auto other = Open("other");
  const AlignedBuffer a = Filled(kBlock, 'a');
  const AlignedBuffer b = Filled(2 * kBlock, 'b');
  std::vector<WriteOp> ops;
  for (uint64_t i = 0; i < 100; ++i) {
    ops.push_back({.file = file_.get(), .offset = 2 * i * kBlock, .bytes = a.view()});
    ops.push_back({.file = other.get(), .offset = 2 * i * kBlock, .bytes = b.view()});
  }
  ASSERT_OK(queue_->Submit({.id = 7, .kind = WriteKind::kDurable, .writes = ops}));
  ops.clear();  // The span of the operations is not borrowed.
  EXPECT_EQ(Complete(1), std::set<uint64_t>{7});
  EXPECT_EQ(ReadAll(*other) == std::string(200 * kBlock, 'b'), true);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(ByteAt(2 * i * kBlock), 'a');
    ASSERT_EQ(ByteAt((2 * i + 1) * kBlock), '\0');
  }
}

TEST_P(WriteQueueSuite, OneBatchTooManyIsRefusedAndNothingIsStarted) {
  const AlignedBuffer a = Filled(kBlock, 'a');
  const AlignedBuffer b = Filled(kBlock, 'b');
  const size_t depth = queue_->depth_max();
  for (uint64_t id = 0; id < depth; ++id) {
    ASSERT_OK(Submit(id, WriteKind::kDurable, *file_, id * kBlock, a.view()));
  }
  EXPECT_FAILS(Submit(depth, WriteKind::kPlain, *file_, 200 * kBlock, b.view()), kResourceExhausted,
               kLimit);
  EXPECT_EQ(Complete(depth).size(), depth);
  EXPECT_EQ(ByteAt(200 * kBlock), '\0');
  ASSERT_OK(Submit(depth, WriteKind::kPlain, *file_, 200 * kBlock, b.view()));
  EXPECT_EQ(Complete(1), std::set<uint64_t>{depth});
  EXPECT_EQ(ByteAt(200 * kBlock), 'b');
}

TEST_P(WriteQueueSuite, AnEmptyQueueRunsOutOfTimeAndStaysUsable) {
  EXPECT_FAILS(queue_->WaitOne(absl::ZeroDuration()), kDeadlineExceeded, kNone);
  EXPECT_FAILS(queue_->WaitOne(absl::Milliseconds(1)), kDeadlineExceeded, kNone);
  const AlignedBuffer a = Filled(kBlock, 'a');
  ASSERT_OK(Submit(1, WriteKind::kDurable, *file_, 0, a.view()));
  EXPECT_EQ(Complete(1), std::set<uint64_t>{1});
}

// A caller that only looks in now and then gets everything too.
TEST_P(WriteQueueSuite, PollingWithoutWaitingCompletesEverything) {
  const AlignedBuffer a = Filled(kBlock, 'a');
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_OK(Submit(id, WriteKind::kDurable, *file_, id * kBlock, a.view()));
  }
  std::set<uint64_t> ids;
  while (ids.size() < 3) {
    StatusOr<Completion> completion = queue_->WaitOne(absl::ZeroDuration());
    if (completion.ok()) {
      EXPECT_OK(completion->status);
      ids.insert(completion->id);
    } else {
      ASSERT_FAILS(completion, kDeadlineExceeded, kNone);
    }
  }
}

TEST_P(WriteQueueSuite, AQueueThatGoesWaitsForWhatIsInFlight) {
  for (uint64_t round = 0; round < 20; ++round) {
    {
      AlignedBuffer a = Filled(16 * kBlock, 'a');
      for (uint64_t id = 0; id < queue_->depth_max(); ++id) {
        const WriteKind kind = id % 2 == 0 ? WriteKind::kPlain : WriteKind::kDurable;
        ASSERT_OK(Submit(id, kind, *file_, (id % 16) * 16 * kBlock, a.view()));
      }
      if (round % 2 == 0) Complete(1);
      queue_.reset();
      std::memset(a.data(), 'x', a.size());  // Nobody may read it any more.
    }
    EXPECT_EQ(ReadAll(*file_).find('x'), std::string::npos);
    ASSERT_OK_AND_ASSIGN(queue_, storage_->NewWriteQueue());
  }
}

// Submit and WaitOne from two threads: nothing is lost, nothing is told twice.
TEST_P(WriteQueueSuite, OneThreadSubmitsWhileAnotherWaits) {
  constexpr uint64_t kBatches = 600;
  const AlignedBuffer a = Filled(kBlock, 'a');
  std::atomic<uint64_t> completed = 0;
  std::set<uint64_t> ids;
  std::thread waiter([&] {
    while (ids.size() < kBatches) {
      StatusOr<Completion> completion = queue_->WaitOne(absl::InfiniteDuration());
      if (completion.status().code() == StatusCode::kDeadlineExceeded) continue;
      CHECK(completion.ok());
      CHECK(completion->status.ok());
      CHECK(ids.insert(completion->id).second);
      completed.store(ids.size());
    }
  });
  SeededRng rng(1);
  for (uint64_t id = 0; id < kBatches;) {
    const WriteKind kind = id % 5 == 0 ? WriteKind::kPlain : WriteKind::kDurable;
    const Status status = Submit(id, kind, *file_, (id % 256) * kBlock, a.view());
    if (status.code() == StatusCode::kResourceExhausted) {
      std::this_thread::yield();
      continue;
    }
    CHECK(status.ok());
    ++id;
    // Now and then the queue runs empty, so that all ways of waiting are met.
    while (rng.OneIn(20) && completed.load() < id) std::this_thread::yield();
  }
  waiter.join();
  EXPECT_EQ(ids.size(), kBatches);
}

// The next batch comes just when the waiter goes back to wait, over and over: it is never
// forgotten.
TEST_P(WriteQueueSuite, ABatchThatMeetsAThreadOnItsWayToWaitIsCarriedOut) {
  constexpr uint64_t kBatches = 500;
  const AlignedBuffer a = Filled(kBlock, 'a');
  std::atomic<uint64_t> completed = 0;
  std::thread waiter([&] {
    while (completed.load() < kBatches) {
      StatusOr<Completion> completion = queue_->WaitOne(absl::InfiniteDuration());
      if (completion.status().code() == StatusCode::kDeadlineExceeded) continue;
      CHECK(completion.ok());
      CHECK(completion->status.ok());
      completed.fetch_add(1);
    }
  });
  for (uint64_t id = 0; id < kBatches; ++id) {
    ASSERT_OK(Submit(id, WriteKind::kDurable, *file_, (id % 256) * kBlock, a.view()));
    while (completed.load() <= id) std::this_thread::yield();
  }
  waiter.join();
}

// A thread that submits and ends takes nothing with it.
TEST_P(WriteQueueSuite, ABatchOutlivesTheThreadThatSubmittedIt) {
  const AlignedBuffer a = Filled(16 * kBlock, 'a');
  for (uint64_t round = 0; round < 50; ++round) {
    std::thread submitter([&] {
      for (uint64_t id = 0; id < 4; ++id) {
        CHECK(Submit(id, WriteKind::kDurable, *file_, id * 16 * kBlock, a.view()).ok());
      }
      CHECK(Flush(4).ok());
    });
    submitter.join();
    ASSERT_EQ(Complete(5).size(), 5U);
  }
}

using WriteQueueDeathSuite = WriteQueueSuite;
INSTANTIATE_TEST_SUITE_P(Queues, WriteQueueDeathSuite,
                         testing::Values(StorageCase::kPosix, StorageCase::kUring,
                                         StorageCase::kSimulated),
                         CaseName);

TEST_P(WriteQueueDeathSuite, UnalignedWritesAreAFaultOfTheCaller) {
  const AlignedBuffer a = Filled(2 * kBlock, 'a');
  const auto submit = [&](uint64_t offset, ByteView bytes) {
    (void)Submit(1, WriteKind::kPlain, *file_, offset, bytes);  // It does not return.
  };
  EXPECT_DEATH(submit(512, a.view()), "CHECK");
  EXPECT_DEATH(submit(0, a.view().first(100)), "CHECK");
  EXPECT_DEATH(submit(0, a.view().subspan(8, kBlock)), "CHECK");
}

}  // namespace
}  // namespace holdfast
