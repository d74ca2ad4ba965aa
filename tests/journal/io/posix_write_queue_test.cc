#include "journal/io/posix_write_queue.h"

#include <gtest/gtest.h>

#include "tests/journal/io/storage_cases.h"
#include "tests/support/child_process.h"

namespace holdfast {
namespace {

class QueueOwnerTest : public StorageTest {};
INSTANTIATE_TEST_SUITE_P(Queues, QueueOwnerTest,
                         testing::Values(StorageCase::kPosix, StorageCase::kUring), CaseName);

// Proves: G9
TEST_P(QueueOwnerTest, AForkedChildCannotWriteThroughTheQueueOfItsParent) {
  auto file = Open("file");
  ASSERT_OK(file->WriteZeros(4096));
  ASSERT_OK_AND_ASSIGN(auto queue, storage_->NewWriteQueue());
  const AlignedBuffer a = Filled(4096, 'a');
  const WriteOp op{.file = file.get(), .bytes = a.view()};
  const WriteBatch batch{.id = 1, .kind = WriteKind::kDurable, .writes = {&op, 1}};
  EXPECT_EQ(InChild([&]() -> std::string {
              const Status status = queue->Submit(batch);
              queue.reset();  // leaves the parent's ring as it is
              return DetailOf(status) == Detail::kLocked ? "" : status.ToString();
            }),
            "");
  EXPECT_EQ(ReadAll(*file), std::string(4096, '\0'));
  ASSERT_OK(queue->Submit(batch));
  ASSERT_OK(queue->WaitOne(absl::InfiniteDuration()));
  EXPECT_EQ(ReadAll(*file), std::string(4096, 'a'));
}

}  // namespace
}  // namespace holdfast
