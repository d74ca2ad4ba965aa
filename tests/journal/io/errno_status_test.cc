#include "journal/io/errno_status.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Proves: G3
TEST(ErrnoStatusTest, TheCodeSaysWhatTheCallerDoes) {
  const auto status = [](int error) { return ErrnoStatus(error, "dir/file", "write"); };
  for (const int full : {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE}) {
    EXPECT_FAILS(status(full), kResourceExhausted, kDiskFull);
  }
  for (const int refused : {EROFS, EACCES, EPERM}) {
    EXPECT_FAILS(status(refused), kFailedPrecondition, kReadOnly);
  }
  for (const int failed : {EIO, ESTALE, EBADF, EINVAL, ENOMEM, ENODEV}) {
    EXPECT_FAILS(status(failed), kUnavailable, kIo);
  }
  EXPECT_FAILS(status(ENOENT), kNotFound, kNone);
}

TEST(ErrnoStatusTest, TheMessageSaysWhereAndWhatToDo) {
  const Status status = ErrnoStatus(ENOSPC, "dir/file", "write of 4096 bytes at offset 8192");
  EXPECT_EQ(
      Message(status),
      "dir/file: write of 4096 bytes at offset 8192: No space left on device (errno 28); free "
      "some space on its file system");
}

}  // namespace
}  // namespace holdfast
