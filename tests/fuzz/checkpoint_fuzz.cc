#include <algorithm>
#include <cstring>

#include "journal/base/check.h"
#include "journal/base/checksum.h"
#include "journal/format/checkpoint_header.h"
#include "tests/fuzz/targets.h"

namespace holdfast {
namespace {

constexpr CheckpointKey kKey{.salt = 11, .from = Lsn(42)};

uint64_t SeedOf(uint64_t place) {
  return SeedAt({.salt = kKey.salt, .segment = 0, .stamp = kKey.from.value()}, place);
}

// What is accepted can be written, and is then read as the same.
void JudgeHeader(ByteView block) {
  const StatusOr<CheckpointHeader> header = DecodeCheckpointHeader(block, kKey);
  if (!header.ok()) return;
  const std::vector<std::byte> again = EncodeCheckpointHeader(*header, kKey);
  CHECK(std::equal(again.begin() + 12, again.end() - 8, block.begin() + 12));
}

void JudgeFooter(ByteView block) {
  for (const uint64_t file_bytes : {2 * kBlockBytes, 3 * kBlockBytes}) {
    const StatusOr<CheckpointFooter> footer = DecodeCheckpointFooter(block, kKey, file_bytes);
    if (!footer.ok()) continue;
    CHECK(footer->sections.size() <= kCheckpointSectionsMax);
    CHECK(footer->blocks_end + kCheckpointFooterBytes <= file_bytes);
    CHECK_OK(DecodeCheckpointFooter(EncodeCheckpointFooter(*footer, kKey), kKey, file_bytes));
  }
}

void JudgeBlocks(ByteView bytes) {
  std::string scratch;
  for (uint32_t number = 0; number < 4; ++number) {
    const StatusOr<CheckpointBlock> block = DecodeCheckpointBlockHeader(bytes);
    if (!block.ok()) return;
    const auto entries = OpenCheckpointBlock(*block, bytes, number, kKey, scratch);
    if (!entries.ok()) return;
    CHECK(entries->size() == block->raw_bytes && entries->size() <= kCheckpointBlockBytesMax);
    bytes = bytes.subspan(block->bytes());
  }
}

void MakeGood(std::vector<std::byte>& block, uint64_t place) {
  const uint64_t check = Checksum(ByteView(block).first(kBlockBytes - 8), SeedOf(place));
  std::memcpy(block.data() + kBlockBytes - 8, &check, sizeof check);
}

}  // namespace

void FuzzCheckpoint(ByteView input) {
  JudgeHeader(input);
  JudgeFooter(input);
  JudgeBlocks(input);
  (void)ParseCheckpointFileName(AsText(input));  // any answer; it must not crash

  std::vector<std::byte> block(input.begin(), input.end());
  block.resize(kBlockBytes);
  MakeGood(block, 0);
  JudgeHeader(block);
  MakeGood(block, UINT32_MAX);
  JudgeFooter(block);

  // One block, its number 0, with its check made good.
  if (input.size() < kCheckpointBlockHeaderBytes) return;
  std::vector<std::byte> one(input.begin(), input.end());
  std::memset(one.data(), 0, sizeof(uint32_t));
  const StatusOr<CheckpointBlock> header = DecodeCheckpointBlockHeader(one);
  if (!header.ok() || header->bytes() > one.size()) return;
  const ByteView stored = ByteView(one).subspan(kCheckpointBlockHeaderBytes, header->stored_bytes);
  const uint64_t check = Checksum(stored, Checksum(ByteView(one).first(24), SeedOf(1)));
  std::memcpy(one.data() + 24, &check, sizeof check);
  JudgeBlocks(one);
}

}  // namespace holdfast
