#include "journal/io/read_ahead.h"

#include <gtest/gtest.h>

#include "journal/base/seeded_rng.h"
#include "tests/support/memory_file.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr uint64_t kPiece = kIoAlignment;
constexpr uint64_t kPieces = 8;

class ReadAheadTest : public testing::Test {
 protected:
  // Asks for the bytes, and compares them; returns how many there were.
  uint64_t Check(ReadAhead& ahead, uint64_t offset, uint64_t length) {
    const StatusOr<ReadAhead::Bytes> bytes = ahead.At(offset, length);
    EXPECT_OK(bytes);
    if (!bytes.ok()) return 0;
    EXPECT_TRUE(AreBytesAt(offset, bytes->head)) << offset;
    EXPECT_TRUE(AreBytesAt(offset + bytes->head.size(), bytes->tail)) << offset;
    return bytes->head.size() + bytes->tail.size();
  }

  MemoryFile file_{100 * kPiece + 77, 3};
};

TEST_F(ReadAheadTest, FromFrontToBackEveryByteIsReadOnce) {
  for (const uint64_t threads : {0, 1, 3}) {
    SCOPED_TRACE(threads);
    ReadAhead ahead({.piece_bytes = kPiece, .pieces = kPieces, .threads = threads});
    MemoryFile file(100 * kPiece + 77, 3);
    ahead.Open(file, 100 * kPiece + 77);
    for (uint64_t offset = 0; offset < 100 * kPiece + 77; offset += 1'000) {
      EXPECT_EQ(Check(ahead, offset, 1'000), std::min<uint64_t>(1'000, 100 * kPiece + 77 - offset));
    }
    EXPECT_EQ(file.reads(), 101);
    EXPECT_EQ(Check(ahead, 100 * kPiece + 77, 1), 0u);
  }
}

TEST_F(ReadAheadTest, AnyPlaceAndLengthIsShown) {
  ReadAhead ahead({.piece_bytes = kPiece, .pieces = kPieces, .threads = 3});
  ahead.Open(file_, 100 * kPiece + 77);
  SeededRng rng(1);
  for (int count = 0; count < 400; ++count) {
    const uint64_t offset = rng.Next() % (101 * kPiece);
    const uint64_t length = rng.Next() % (ahead.span_bytes_max() + 1);
    const uint64_t there = 100 * kPiece + 77 - std::min(offset, 100 * kPiece + 77);
    EXPECT_EQ(Check(ahead, offset, length), std::min(length, there));
    if (count % 20 == 0) ahead.Open(file_, 100 * kPiece + 77);
  }
}

TEST_F(ReadAheadTest, SeveralReadsAreInFlight) {
  ReadAhead ahead({.piece_bytes = kPiece, .pieces = kPieces, .threads = 3});
  file_.Gather(3);  // Would hang if they came one after the other.
  ahead.Open(file_, 100 * kPiece);
  EXPECT_EQ(Check(ahead, 0, 10), 10u);
  EXPECT_GE(file_.reading_max(), 3);
}

TEST_F(ReadAheadTest, ReadsNoFurtherThanTheRing) {
  ReadAhead ahead({.piece_bytes = kPiece, .pieces = kPieces, .threads = 3});
  ahead.Open(file_, 100 * kPiece);
  EXPECT_EQ(Check(ahead, 0, 10), 10u);
  ahead.Close();
  EXPECT_LE(file_.reads(), static_cast<int>(kPieces));
  EXPECT_LE(ahead.bytes_read(), kPieces * kPiece);
}

TEST_F(ReadAheadTest, AFailureIsToldWhereItIsAndNotBefore) {
  ReadAhead ahead({.piece_bytes = kPiece, .pieces = kPieces, .threads = 3});
  ahead.Open(file_, 100 * kPiece);
  file_.SetBad(5 * kPiece + 3);
  for (uint64_t piece = 0; piece < 5; ++piece) {
    EXPECT_EQ(Check(ahead, piece * kPiece, kPiece), kPiece) << piece;
  }
  EXPECT_FAILS(ahead.At(5 * kPiece, 1), kUnavailable, kIo);
  EXPECT_EQ(Check(ahead, 6 * kPiece, kPiece), kPiece);
  EXPECT_FAILS(ahead.At(4 * kPiece, 2 * kPiece), kUnavailable, kIo);
  file_.SetBad(std::nullopt);
  EXPECT_EQ(Check(ahead, 4 * kPiece, 2 * kPiece), 2 * kPiece);
}

TEST_F(ReadAheadTest, AFileThatShrinksEndsEarlier) {
  ReadAhead ahead({.piece_bytes = kPiece, .pieces = kPieces, .threads = 3});
  ahead.Open(file_, 100 * kPiece);
  ASSERT_OK(file_.Truncate(50 * kPiece + 9));
  EXPECT_EQ(Check(ahead, 50 * kPiece, 100), 9u);
  EXPECT_EQ(Check(ahead, 49 * kPiece, 3 * kPiece), kPiece + 9);
  EXPECT_EQ(Check(ahead, 60 * kPiece, 100), 0u);
}

TEST_F(ReadAheadTest, AFileMayGoOnceItIsClosed) {
  ReadAhead ahead({.piece_bytes = kPiece, .pieces = kPieces, .threads = 3});
  for (int count = 0; count < 200; ++count) {
    MemoryFile file(100 * kPiece, 3);
    ahead.Open(file, 100 * kPiece);
    EXPECT_EQ(Check(ahead, 3 * kPiece, 100), 100u);
    ahead.Close();
  }
}

}  // namespace
}  // namespace holdfast
