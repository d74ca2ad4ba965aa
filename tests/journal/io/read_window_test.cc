#include "journal/io/read_window.h"

#include <gtest/gtest.h>

#include <memory>

#include "journal/base/seeded_rng.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/memory_file.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr uint64_t kBytes = uint64_t{8} << 20;

// One read at a time, and several in flight.
class ReadWindowTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { ASSERT_OK(window_.Open(file_)); }

  MemoryFile file_{kBytes, GetParam()};
  ReadWindow window_;
};

TEST_P(ReadWindowTest, ShowsAnyPlaceAndLength) {
  SeededRng rng(2);
  for (int count = 0; count < 60; ++count) {
    const uint64_t offset = rng.Next() % kBytes;
    const uint64_t length = 1 + rng.Next() % (count % 10 == 0 ? kBytes : 100'000);
    ASSERT_OK_AND_ASSIGN(const ByteView bytes, window_.At(offset, length));
    ASSERT_EQ(bytes.size(), std::min(length, kBytes - offset));
    ASSERT_TRUE(AreBytesAt(offset, bytes)) << offset << " + " << length;
  }
}

TEST_P(ReadWindowTest, FromFrontToBackNothingIsReadTwice) {
  for (uint64_t offset = 0; offset < kBytes; offset += 70'000) {
    ASSERT_OK_AND_ASSIGN(const ByteView bytes, window_.At(offset, 70'000));
    ASSERT_TRUE(AreBytesAt(offset, bytes)) << offset;
  }
  // One at a time, what crosses the end of a window is read again.
  EXPECT_LE(window_.bytes_read(), kBytes + (GetParam() == 1 ? 9 * 70'000 + 9 * kIoAlignment : 0));
}

TEST_P(ReadWindowTest, APeekReadsNothingAhead) {
  for (uint64_t offset = 100; offset < kBytes; offset += kReadAheadBytes) {
    ASSERT_OK_AND_ASSIGN(const ByteView bytes, window_.Peek(offset, 64));
    EXPECT_EQ(bytes.size(), 64u);
    EXPECT_TRUE(AreBytesAt(offset, bytes));
  }
  EXPECT_EQ(window_.bytes_read(), 8 * kIoAlignment);
  ASSERT_OK_AND_ASSIGN(const ByteView behind, window_.Peek(kBytes, 64));
  EXPECT_TRUE(behind.empty());
}

TEST_P(ReadWindowTest, EndsWithItsFile) {
  ASSERT_OK_AND_ASSIGN(const ByteView tail, window_.At(kBytes - 10, 100));
  EXPECT_EQ(tail.size(), 10u);
  ASSERT_OK_AND_ASSIGN(const ByteView behind, window_.At(kBytes, 100));
  EXPECT_TRUE(behind.empty());
  ASSERT_OK(file_.Truncate(5000));  // beside a live writer
  ASSERT_OK_AND_ASSIGN(const ByteView shrunk, window_.At(4096, 4096));
  EXPECT_EQ(shrunk.size(), 904u);
}

TEST_P(ReadWindowTest, AFailedReadLeavesNothingBehind) {
  ASSERT_OK(window_.At(0, 10));
  file_.SetBad(6 * kReadAheadBytes);
  EXPECT_FAILS(window_.At(6 * kReadAheadBytes, 10), kUnavailable, kIo);
  EXPECT_OK(window_.At(0, 10));
  file_.SetBad(std::nullopt);
  ASSERT_OK_AND_ASSIGN(const ByteView again, window_.At(6 * kReadAheadBytes, 10));
  EXPECT_TRUE(AreBytesAt(6 * kReadAheadBytes, again));
}

TEST_P(ReadWindowTest, AFileMayGoOnceTheWindowIsClosed) {
  for (int count = 0; count < 20; ++count) {
    MemoryFile file(kBytes, GetParam());
    const ReadWindow::Closer closer(window_);
    ASSERT_OK(window_.Open(file));
    ASSERT_OK_AND_ASSIGN(const ByteView bytes, window_.At(10'000, 100));
    EXPECT_TRUE(AreBytesAt(10'000, bytes));
  }
  EXPECT_EQ(window_.file_bytes(), 0u);
}

TEST_P(ReadWindowTest, GoesFromFilesOfOneKindToTheOther) {
  MemoryFile other(kBytes, 4 - GetParam());
  for (int count = 0; count < 4; ++count) {
    ASSERT_OK(window_.Open(count % 2 == 0 ? other : file_));
    ASSERT_OK_AND_ASSIGN(const ByteView bytes, window_.At(kReadAheadBytes - 7, 100));
    EXPECT_TRUE(AreBytesAt(kReadAheadBytes - 7, bytes));
  }
  window_.Close();
}

INSTANTIATE_TEST_SUITE_P(Depth, ReadWindowTest, testing::Values(1, 3));

// The order of calls is the caller's own there, so that a seed repeats a run.
TEST(ReadWindowOnASimulatedDiskTest, ReadsWhenItIsAskedAndNeverAhead) {
  SimStorage storage{SimDisk()};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<File> file,
                       storage.OpenFile("file", OpenMode::kCreate));
  EXPECT_EQ(file->read_depth(), 1u);
  ASSERT_OK(file->WriteZeros(kBytes));
  ReadWindow window;
  ASSERT_OK(window.Open(*file));
  for (uint64_t read = 1; read <= 3; ++read) {
    ASSERT_OK(window.At((read - 1) * kReadAheadBytes, kReadAheadBytes));
    EXPECT_EQ(window.bytes_read(), read * kReadAheadBytes);
  }
}

}  // namespace
}  // namespace holdfast
