#include "journal/format/compression.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <string>

#include "journal/base/seeded_rng.h"

namespace holdfast {
namespace {

std::string Noise(size_t size, uint64_t seed) {
  SeededRng rng(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.Next());
  return bytes;
}

std::string Json(size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) text += "{\"id\":" + std::to_string(i) + ",\"on\":true}";
  text.resize(size);
  return text;
}

std::string Frame(std::string_view raw) {
  std::string frame(ZSTD_compressBound(raw.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 1));
  return frame;
}

StoredEvent Compressed(std::string_view frame, uint64_t raw_bytes) {
  return {.raw_bytes = raw_bytes, .compressed = true, .bytes = frame};
}

// Proves: D1
TEST(CompressionTest, EventsOfEverySizeRoundTrip) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{kCompressBytesMin - 1},
                            size_t{kCompressBytesMin}, size_t{100'000}, size_t{16} << 20}) {
    for (const std::string& event : {Json(size), Noise(size, size)}) {
      std::string scratch;
      const StoredEvent stored = PackEvent(event, scratch);
      EXPECT_EQ(stored.raw_bytes, event.size());
      const StatusOr<std::string> raw = UnpackEvent(stored);
      ASSERT_TRUE(raw.ok()) << raw.status();
      EXPECT_TRUE(*raw == event);
    }
  }
}

TEST(CompressionTest, IsKeptOnlyWhereItSavesAnEighth) {
  std::string scratch;
  EXPECT_FALSE(PackEvent(Json(kCompressBytesMin - 1), scratch).compressed);
  EXPECT_TRUE(PackEvent(Json(kCompressBytesMin), scratch).compressed);
  EXPECT_FALSE(PackEvent(Noise(100'000, 1), scratch).compressed);
  for (size_t plain = 80'000; plain <= 100'000; plain += 1'000) {
    const std::string event = Noise(plain, 2) + std::string(100'000 - plain, 'x');
    const StoredEvent stored = PackEvent(event, scratch);
    if (stored.compressed) {
      EXPECT_LE(stored.bytes.size(), event.size() - event.size() / 8);
    } else {
      EXPECT_GT(plain, 87'000u);
    }
  }
}

// Proves: G4
TEST(CompressionTest, EveryCutFrameIsRefused) {
  const std::string event = Json(10'000);
  const std::string frame = Frame(event);
  for (size_t size = 0; size < frame.size(); ++size) {
    const StatusOr<std::string> raw =
        UnpackEvent(Compressed(std::string_view(frame).substr(0, size), event.size()));
    EXPECT_EQ(raw.status().code(), StatusCode::kDataLoss) << size;
  }
}

TEST(CompressionTest, DamagedFramesNeverCrash) {
  const std::string event = Json(5'000);
  std::string frame = Frame(event);
  for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
    frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << bit % 8));
    const StatusOr<std::string> raw = UnpackEvent(Compressed(frame, event.size()));
    EXPECT_EQ(raw.ok() ? raw->size() : event.size(), event.size());
    frame[bit / 8] = static_cast<char>(frame[bit / 8] ^ (1 << bit % 8));
  }
}

TEST(CompressionTest, ASizeThatIsNotTheFramesIsRefused) {
  const std::string frame = Frame(Json(10'000));
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{9'999}, uint64_t{10'001}, uint64_t{1} << 29, uint64_t{1} << 62}) {
    EXPECT_EQ(UnpackEvent(Compressed(frame, size)).status().code(), StatusCode::kDataLoss);
  }
  EXPECT_TRUE(UnpackEvent(Compressed(frame, 10'000), 10'000).ok());
  EXPECT_EQ(UnpackEvent(Compressed(frame, 10'000), 9'999).status().code(), StatusCode::kDataLoss);
}

// A small frame that unpacks to much more than the limit is refused by its size, before memory is
// taken.
TEST(CompressionTest, ABombIsRefused) {
  const std::string bomb = Frame(std::string(size_t{64} << 20, '\0'));
  ASSERT_LT(bomb.size(), 10'000u);
  EXPECT_FALSE(UnpackEvent(Compressed(bomb, uint64_t{64} << 20), uint64_t{16} << 20).ok());
  EXPECT_FALSE(UnpackEvent(Compressed(bomb, 1'000), uint64_t{16} << 20).ok());
}

TEST(CompressionTest, ExactlyOneFrameIsTaken) {
  const std::string event = Json(10'000);
  const std::string frame = Frame(event);
  const std::string skippable("\x50\x2a\x4d\x18\x01\x00\x00\x00x", 9);
  for (const std::string& bytes : {frame + frame, frame + '\0', frame + skippable,
                                   skippable + frame, skippable, std::string()}) {
    EXPECT_FALSE(UnpackEvent(Compressed(bytes, event.size())).ok());
  }
}

TEST(CompressionTest, AFrameThatNeedsADictionaryIsRefused) {
  const std::string event = Json(10'000);
  // A frame header with a dictionary id, built by hand: single segment, 2-byte size, 1-byte id.
  std::string frame("\x28\xb5\x2f\xfd\x61\x2a\x10\x26", 8);
  frame += Frame(event).substr(7);
  EXPECT_FALSE(UnpackEvent(Compressed(frame, event.size())).ok());
}

TEST(CompressionTest, APlainEventOfAnotherSizeIsRefused) {
  EXPECT_FALSE(UnpackEvent({.raw_bytes = 4, .compressed = false, .bytes = "abc"}).ok());
  EXPECT_TRUE(UnpackEvent({.raw_bytes = 3, .compressed = false, .bytes = "abc"}).ok());
  EXPECT_FALSE(UnpackEvent({.raw_bytes = 3, .compressed = false, .bytes = "abc"}, 2).ok());
}

TEST(CompressionTest, AFrameIsAppendedBehindWhatIsThere) {
  for (const size_t size : {size_t{1'000}, size_t{100'000}, size_t{1} << 20}) {
    const std::string raw = Json(size);
    std::string out = "before";
    ASSERT_TRUE(AppendCompressed(raw, out));
    ASSERT_TRUE(out.starts_with("before"));
    const std::string_view frame = std::string_view(out).substr(6);
    EXPECT_LE(frame.size(), size - size / 8);
    std::string back(size, '\0');
    ASSERT_TRUE(Decompress(frame, back.data(), back.size()).ok());
    EXPECT_TRUE(back == raw);
  }
}

TEST(CompressionTest, NothingIsAppendedWhereItDoesNotPay) {
  for (const std::string& raw : {std::string(), std::string("x"), Noise(7, 1), Noise(100'000, 1)}) {
    std::string out = "before";
    EXPECT_FALSE(AppendCompressed(raw, out));
    EXPECT_EQ(out, "before");
  }
}

// Proves: G4
TEST(CompressionTest, ABlockIsWholeOrRefused) {
  const std::string raw = Json(10'000);
  std::string frame;
  ASSERT_TRUE(AppendCompressed(raw, frame));
  std::string back(raw.size() + 1, '\0');
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_EQ(Decompress(std::string_view(frame).substr(0, size), back.data(), raw.size()).code(),
              StatusCode::kDataLoss)
        << size;
  }
  for (const uint64_t size : {raw.size() - 1, raw.size() + 1, size_t{0}}) {
    EXPECT_EQ(Decompress(frame, back.data(), size).code(), StatusCode::kDataLoss) << size;
  }
  EXPECT_EQ(Decompress(frame + frame, back.data(), raw.size()).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Decompress(frame, back.data(), raw.size()).ok());
}

}  // namespace
}  // namespace holdfast
