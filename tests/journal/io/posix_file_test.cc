#include "journal/io/posix_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>

#include "tests/support/recording_log.h"
#include "tests/support/sanitized.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {
namespace {

class PosixFileTest : public testing::Test {
 protected:
  PosixFileTest() : refusal_(std::make_shared<DirectRefusal>(&log_)) {
    const std::string path = dir_.Sub("file");
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
    CHECK(fd >= 0);
    file_ = std::make_unique<PosixFile>(
        fd, PosixFile::Options{.writable = true, .direct = true, .path = path}, refusal_);
  }

  RecordingLog log_;
  TempDir dir_;
  std::shared_ptr<DirectRefusal> refusal_;
  std::unique_ptr<PosixFile> file_;
  AlignedBuffer buffer_{5 * 4096};
};

using WriteProgressTest = PosixFileTest;

// Proves: G3
TEST_F(WriteProgressTest, AShortWriteGoesOnAtTheRightPlace) {
  WriteProgress progress(*file_, 8192, buffer_.view());
  ASSERT_OK(progress.Advance((progress.Next(), 4096)));
  const WriteProgress::Request next = progress.Next();
  EXPECT_EQ(next.offset, 8192U + 4096);
  EXPECT_EQ(next.bytes.data(), buffer_.data() + 4096);
  EXPECT_EQ(next.bytes.size(), 4U * 4096);
  ASSERT_OK(progress.Advance(4 * 4096));
  EXPECT_TRUE(progress.done());
}

// Direct I/O takes whole blocks only.
TEST_F(WriteProgressTest, ABlockThatIsHalfThereIsWrittenOnceMore) {
  WriteProgress progress(*file_, 0, buffer_.view());
  ASSERT_OK(progress.Advance((progress.Next(), 4096 + 512)));
  EXPECT_EQ(progress.Next().offset, 4096U);
}

TEST_F(WriteProgressTest, ABufferedWriteGoesOnAtTheByte) {
  file_->DropDirect();
  WriteProgress progress(*file_, 0, buffer_.view());
  ASSERT_OK(progress.Advance((progress.Next(), 1)));
  EXPECT_EQ(progress.Next().offset, 1U);
}

TEST_F(WriteProgressTest, WhatSaysAgainIsTriedAgainWithTheSameBytes) {
  WriteProgress progress(*file_, 0, buffer_.view());
  for (const int again : {EINTR, EAGAIN, EBUSY, ECANCELED}) {
    ASSERT_OK(progress.Advance((progress.Next(), -again)));
    EXPECT_EQ(progress.Next().offset, 0U);
    EXPECT_EQ(progress.Next().bytes.size(), buffer_.size());
  }
}

TEST_F(WriteProgressTest, AWriteThatNeverMovesFailsInTheEnd) {
  for (const int64_t result : {int64_t{0}, int64_t{100}, int64_t{-EAGAIN}}) {
    WriteProgress progress(*file_, 0, buffer_.view());
    Status status;
    int tries = 0;
    while (status.ok() && ++tries < 1000) status = progress.Advance((progress.Next(), result));
    EXPECT_FAILS(status, kUnavailable, kIo);
    EXPECT_LT(tries, 1000);
  }
}

TEST_F(WriteProgressTest, AnyOtherErrorIsFinal) {
  WriteProgress progress(*file_, 0, buffer_.view());
  EXPECT_FAILS(progress.Advance((progress.Next(), -EIO)), kUnavailable, kIo);
  EXPECT_FAILS(progress.Advance((progress.Next(), -ENOSPC)), kResourceExhausted, kDiskFull);
}

// Some file systems take O_DIRECT at open and refuse the first request.
TEST_F(WriteProgressTest, RefusedDirectIoGoesOnBufferedAndIsToldOnce) {
  WriteProgress first(*file_, 0, buffer_.view());
  WriteProgress second(*file_, 0, buffer_.view());
  ASSERT_OK(first.Advance((first.Next(), 4096)));
  ASSERT_EQ(first.Next().offset, 4096U);
  ASSERT_EQ(second.Next().offset, 0U);
  ASSERT_OK(first.Advance(-EINVAL));
  ASSERT_OK(second.Advance(-EINVAL));  // was on its way when the first one learned of it
  EXPECT_FALSE(file_->direct());
  EXPECT_EQ(fcntl(file_->fd(), F_GETFL) & O_DIRECT, 0);
  EXPECT_EQ(first.Next().offset, 4096U);
  EXPECT_EQ(log_.Count("direct I/O refused"), 1U);
  EXPECT_NE(refusal_->reason(), "");
  EXPECT_FAILS(first.Advance(-EINVAL), kUnavailable, kIo);  // now it means what it says
}

TEST_F(PosixFileTest, AFileThatTurnedBufferedKeepsItsBytes) {
  const std::string text(10'000, 'x');
  ASSERT_OK(file_->WriteAt(100, AsBytes(text)));
  file_->DropDirect();
  ASSERT_OK(file_->WriteAt(200, AsBytes("y")));
  std::string read(10'100, '?');
  ASSERT_OK_AND_ASSIGN(const size_t got,
                       file_->ReadAt(0, {reinterpret_cast<std::byte*>(read.data()), read.size()}));
  EXPECT_EQ(got, 10'100U);
  std::string expected = std::string(100, '\0') + text;
  expected.replace(200, 1, "y");
  EXPECT_EQ(read == expected, true);
}

// Runs `body` in a child that gets no more memory in pieces of 64 KiB or more; its answer is the
// exit code.
int WithoutMemory(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{.rlim_cur = 1, .rlim_max = 1};
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(100);
    void* volatile piece = nullptr;  // A compiler may leave out an allocation that nobody sees.
    do {
      piece = std::malloc(size_t{64} << 10);
    } while (piece != nullptr);
    _exit(body());
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

// Without memory a call fails, and the process goes on.
TEST_F(PosixFileTest, NoMemoryIsAnErrorOfTheCall) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  ASSERT_OK(file_->WriteZeros(8192));
  std::vector<std::byte> unaligned((size_t{256} << 10) + 1);
  const auto exhausted = [](const Status& status) {
    return status.code() == StatusCode::kResourceExhausted && DetailOf(status) == Detail::kLimit;
  };
  const int failed = WithoutMemory([&] {
    const bool zeros = exhausted(file_->WriteZeros(uint64_t{4} << 20));
    const bool write = exhausted(file_->WriteAt(1, unaligned));
    const bool read = exhausted(file_->ReadAt(1, unaligned).status());
    const bool buffer = exhausted(AlignedBuffer::Make(uint64_t{1} << 20).status());
    const bool small = file_->ReadAt(0, buffer_.span()).ok();  // needs none
    return (zeros ? 0 : 1) + (write ? 0 : 2) + (read ? 0 : 4) + (buffer ? 0 : 8) + (small ? 0 : 16);
  });
  EXPECT_EQ(failed, 0);
  ASSERT_OK(file_->WriteAt(1, unaligned));
}

}  // namespace
}  // namespace holdfast
