#include "journal/format/checkpoint_header.h"

#include <gtest/gtest.h>

#include <cstring>

#include "journal/base/checksum.h"
#include "journal/base/seeded_rng.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr CheckpointKey kKey{.salt = 0x5a17, .from = Lsn(42)};
constexpr uint64_t kFileBytes = 4 * kBlockBytes;

CheckpointHeader Header() {
  CheckpointHeader header{.from = kKey.from,
                          .epoch = Epoch(3),
                          .engine_ns = -5,
                          .created_ns = 7,
                          .pinned = SegmentId(9)};
  header.store_id.fill(0xab);
  return header;
}

CheckpointFooter Footer() {
  return {.from = kKey.from,
          .through = Lsn(50),
          .blocks = 2,
          .blocks_end = 2 * kBlockBytes + 8,
          .sections = {{.number = 1, .entries = 10, .raw_bytes = 700}, {.number = 5}}};
}

std::string Entries(size_t bytes, bool random) {
  std::string entries(bytes, 'e');
  SeededRng rng(bytes);
  for (char& c : entries) {
    if (random) c = static_cast<char>(rng.Next());
  }
  return entries;
}

TEST(CheckpointHeaderTest, AHeaderComesBack) {
  ASSERT_OK_AND_ASSIGN(const CheckpointHeader header,
                       DecodeCheckpointHeader(EncodeCheckpointHeader(Header(), kKey), kKey));
  EXPECT_EQ(header.store_id, Header().store_id);
  EXPECT_EQ(header.from, Lsn(42));
  EXPECT_EQ(header.epoch, Epoch(3));
  EXPECT_EQ(header.engine_ns, -5);
  EXPECT_EQ(header.created_ns, 7);
  EXPECT_EQ(header.pinned, SegmentId(9));
}

TEST(CheckpointHeaderTest, AFooterComesBack) {
  ASSERT_OK_AND_ASSIGN(
      const CheckpointFooter footer,
      DecodeCheckpointFooter(EncodeCheckpointFooter(Footer(), kKey), kKey, kFileBytes));
  EXPECT_EQ(footer.from, Lsn(42));
  EXPECT_EQ(footer.through, Lsn(50));
  EXPECT_EQ(footer.blocks, 2u);
  EXPECT_EQ(footer.blocks_end, Footer().blocks_end);
  EXPECT_EQ(footer.sections, Footer().sections);
}

// Proves: G4
TEST(CheckpointHeaderTest, NoByteOfHeaderOrFooterMayFlip) {
  std::vector<std::byte> header = EncodeCheckpointHeader(Header(), kKey);
  std::vector<std::byte> footer = EncodeCheckpointFooter(Footer(), kKey);
  for (size_t i = 0; i < kBlockBytes; ++i) {
    header[i] ^= std::byte{0x10};
    footer[i] ^= std::byte{0x10};
    EXPECT_FAILS(DecodeCheckpointHeader(header, kKey), kDataLoss, kDamage) << i;
    EXPECT_FAILS(DecodeCheckpointFooter(footer, kKey, kFileBytes), kDataLoss, kDamage) << i;
    header[i] ^= std::byte{0x10};
    footer[i] ^= std::byte{0x10};
  }
}

TEST(CheckpointHeaderTest, BytesOfAnotherStoreOrCheckpointNeverPass) {
  const std::vector<std::byte> header = EncodeCheckpointHeader(Header(), kKey);
  const std::vector<std::byte> footer = EncodeCheckpointFooter(Footer(), kKey);
  std::string block, scratch;
  const CheckpointBlock view = AppendCheckpointBlock(0, 1, "entries", kKey, block);
  for (const CheckpointKey& other : {CheckpointKey{.salt = 1, .from = kKey.from},
                                     CheckpointKey{.salt = kKey.salt, .from = Lsn(43)}}) {
    EXPECT_FAILS(DecodeCheckpointHeader(header, other), kDataLoss, kDamage);
    EXPECT_FAILS(DecodeCheckpointFooter(footer, other, kFileBytes), kDataLoss, kDamage);
    EXPECT_FAILS(OpenCheckpointBlock(view, AsBytes(block), 0, other, scratch), kDataLoss, kDamage);
  }
  EXPECT_EQ(CheckpointOwner(header), Header().store_id);
  EXPECT_EQ(CheckpointOwner(footer), std::nullopt);
}

TEST(CheckpointHeaderTest, ANewerVersionIsNoDamage) {
  std::vector<std::byte> header = EncodeCheckpointHeader(Header(), kKey);
  header[8] = std::byte{2};
  const uint64_t check =
      Checksum(ByteView(header).first(kBlockBytes - 8),
               SeedAt({.salt = kKey.salt, .segment = 0, .stamp = kKey.from.value()}, 0));
  std::memcpy(header.data() + kBlockBytes - 8, &check, sizeof check);
  EXPECT_FAILS(DecodeCheckpointHeader(header, kKey), kFailedPrecondition, kNewerFormat);
}

TEST(CheckpointHeaderTest, AFooterMustFitItsFile) {
  const std::vector<std::byte> footer = EncodeCheckpointFooter(Footer(), kKey);
  for (const uint64_t bytes : {kBlockBytes, 3 * kBlockBytes, 5 * kBlockBytes, kFileBytes + 1}) {
    EXPECT_FAILS(DecodeCheckpointFooter(footer, kKey, bytes), kDataLoss, kDamage) << bytes;
  }
  const auto refused = [](CheckpointFooter changed) {
    EXPECT_FAILS(DecodeCheckpointFooter(EncodeCheckpointFooter(changed, kKey), kKey, kFileBytes),
                 kDataLoss, kDamage);
  };
  CheckpointFooter changed = Footer();
  changed.blocks = uint64_t{1} << 40;
  refused(changed);
  changed = Footer();
  changed.sections[0].raw_bytes = 2 * kCheckpointBlockBytesMax + 1;
  refused(changed);
  changed = Footer();
  changed.sections[0].entries = changed.sections[0].raw_bytes + 1;
  refused(changed);
  changed = Footer();
  std::swap(changed.sections[0], changed.sections[1]);
  refused(changed);
}

TEST(CheckpointHeaderTest, ABlockComesBackCompressedOrNot) {
  for (const bool random : {false, true}) {
    for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{kCheckpointBlockBytesMax}}) {
      const std::string entries = Entries(bytes, random);
      std::string file = "before: ", scratch;
      const CheckpointBlock written = AppendCheckpointBlock(7, 5, entries, kKey, file);
      EXPECT_EQ(file.size(), 8 + written.bytes());
      EXPECT_EQ(written.compressed, !random && bytes > 1);
      const ByteView bytes_of_it = AsBytes(file).subspan(8);
      ASSERT_OK_AND_ASSIGN(const CheckpointBlock block, DecodeCheckpointBlockHeader(bytes_of_it));
      EXPECT_EQ(block.section, 5u);
      EXPECT_EQ(block.raw_bytes, bytes);
      ASSERT_OK_AND_ASSIGN(const ByteView raw,
                           OpenCheckpointBlock(block, bytes_of_it, 7, kKey, scratch));
      EXPECT_EQ(AsText(raw), entries);
      EXPECT_FAILS(OpenCheckpointBlock(block, bytes_of_it, 8, kKey, scratch), kDataLoss, kDamage);
    }
  }
}

// Proves: G4
TEST(CheckpointHeaderTest, NoByteOfABlockMayFlip) {
  for (const bool random : {false, true}) {
    std::string bytes, scratch;
    (void)AppendCheckpointBlock(7, 5, Entries(101, random), kKey, bytes);  // for its bytes
    for (char& byte : bytes) {
      byte ^= 0x04;
      const StatusOr<CheckpointBlock> block = DecodeCheckpointBlockHeader(AsBytes(bytes));
      Status status = block.status();
      if (status.ok()) {
        status = OpenCheckpointBlock(*block, AsBytes(bytes), 7, kKey, scratch).status();
      }
      EXPECT_FAILS(status, kDataLoss, kDamage);
      byte ^= 0x04;
    }
  }
}

TEST(CheckpointHeaderTest, OnlyItsOwnNamesAreCheckpoints) {
  EXPECT_EQ(CheckpointFileName(Lsn(42)), "checkpoint/000000000000002a.ckp");
  EXPECT_EQ(ParseCheckpointFileName("000000000000002a.ckp"), Lsn(42));
  for (const char* name :
       {"", ".ckp", "2a.ckp", "000000000000002A.ckp", "000000000000002a.seg",
        "0000000000000000.ckp", "0000000000000002a.ckp", "tmp-000000000000002a"}) {
    EXPECT_EQ(ParseCheckpointFileName(name), Lsn()) << name;
  }
  EXPECT_TRUE(IsCheckpointTempName("tmp-000000000000002a"));
  EXPECT_FALSE(IsCheckpointTempName("000000000000002a.ckp"));
}

}  // namespace
}  // namespace holdfast
