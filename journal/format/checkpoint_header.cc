#include "journal/format/checkpoint_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>

#include "journal/base/check.h"
#include "journal/base/checksum.h"
#include "journal/format/compression.h"

namespace holdfast {
namespace {

constexpr char kHeaderMagic[8] = {'H', 'O', 'L', 'D', 'C', 'K', 'P', '\n'};
constexpr char kFooterMagic[8] = {'H', 'O', 'L', 'D', 'C', 'K', 'E', '\n'};
constexpr size_t kCheckOffset = kBlockBytes - sizeof(uint64_t);

// Places that seed checks: the header, then the blocks, and the footer, wherever it lies.
constexpr uint64_t kHeaderPlace = 0;
constexpr uint64_t kFirstBlockPlace = 1;
constexpr uint64_t kFooterPlace = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kBlocksMax = kFooterPlace - kFirstBlockPlace;

uint64_t SeedOf(const CheckpointKey& key, uint64_t place) {
  return SeedAt({.salt = key.salt, .segment = 0, .stamp = key.from.value()}, place);
}

// As they lie on disk; zeros up to the check in the last 8 bytes of the block. Magic, version and
// check stand at the same places in every version.
struct HeaderBytes {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint8_t store_id[16];
  uint64_t from;
  uint64_t epoch;
  int64_t engine_ns;
  int64_t created_ns;
  uint64_t pinned;
};
static_assert(sizeof(HeaderBytes) == 72);
static_assert(offsetof(HeaderBytes, store_id) == 16 && offsetof(HeaderBytes, from) == 32);

struct FooterBytes {
  char magic[8];
  uint32_t version;
  uint32_t sections;
  uint64_t from;
  uint64_t through;
  uint64_t blocks;
  uint64_t blocks_end;
};
static_assert(sizeof(FooterBytes) == 48);
struct SectionBytes {
  uint32_t number;
  uint32_t reserved;
  uint64_t entries;
  uint64_t raw_bytes;
};
static_assert(sizeof(SectionBytes) == 24);
static_assert(sizeof(FooterBytes) + kCheckpointSectionsMax * sizeof(SectionBytes) <= kCheckOffset);

struct BlockBytes {
  uint32_t number;
  uint32_t section;
  uint32_t raw_bytes;
  uint32_t stored_bytes;
  uint8_t codec;
  uint8_t reserved[7];
  uint64_t check;
};
static_assert(sizeof(BlockBytes) == kCheckpointBlockHeaderBytes);
static_assert(offsetof(BlockBytes, check) == 24);

constexpr uint8_t kCodecNone = 0;
constexpr uint8_t kCodecZstd = 1;

template <typename T>
ByteView BytesOf(const T& value) {
  return AsBytes(std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
}

void Seal(std::vector<std::byte>& block, uint64_t seed) {
  const uint64_t check = Checksum(ByteView(block).first(kCheckOffset), seed);
  std::memcpy(block.data() + kCheckOffset, &check, sizeof check);
}

// Size, magic, check and version, in this order.
Status CheckBlock(std::string_view what, ByteView block, const char* magic, uint64_t seed) {
  if (block.size() != kBlockBytes) {
    return DataLoss("{}: {} bytes, want {}", what, block.size(), kBlockBytes);
  }
  if (std::memcmp(block.data(), magic, sizeof kHeaderMagic) != 0) {
    return DataLoss("{}: no magic", what);
  }
  uint64_t check = 0;
  std::memcpy(&check, block.data() + kCheckOffset, sizeof check);
  if (check != Checksum(block.first(kCheckOffset), seed)) {
    return DataLoss("{}: it fails its check", what);
  }
  uint32_t version = 0;
  std::memcpy(&version, block.data() + sizeof kHeaderMagic, sizeof version);
  if (version > kCheckpointVersion) {
    return WrongState(Detail::kNewerFormat, "{}: version {}; this program reads up to {}", what,
                      version, kCheckpointVersion);
  }
  return version == 0 ? DataLoss("{}: version 0", what) : absl::OkStatus();
}

bool IsZero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

uint64_t BlockCheck(const BlockBytes& header, ByteView stored, const CheckpointKey& key) {
  const uint64_t seed = SeedOf(key, kFirstBlockPlace + header.number);
  return Checksum(stored, Checksum(BytesOf(header).first(offsetof(BlockBytes, check)), seed));
}

constexpr std::string_view kSuffix = ".ckp";
constexpr std::string_view kTempPrefix = "tmp-";
constexpr size_t kDigits = 16;

Lsn ParseDigits(std::string_view digits) {
  uint64_t value = 0;
  if (digits.size() != kDigits ||
      digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return Lsn();
  }
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return Lsn(value);
}

}  // namespace

std::vector<std::byte> EncodeCheckpointHeader(const CheckpointHeader& header,
                                              const CheckpointKey& key) {
  CHECK(header.from && header.from == key.from);
  HeaderBytes bytes{.version = kCheckpointVersion,
                    .from = header.from.value(),
                    .epoch = header.epoch.value(),
                    .engine_ns = header.engine_ns,
                    .created_ns = header.created_ns,
                    .pinned = header.pinned.value()};
  std::memcpy(bytes.magic, kHeaderMagic, sizeof kHeaderMagic);
  std::memcpy(bytes.store_id, header.store_id.data(), sizeof bytes.store_id);
  std::vector<std::byte> block(kCheckpointHeaderBytes);
  std::memcpy(block.data(), &bytes, sizeof bytes);
  Seal(block, SeedOf(key, kHeaderPlace));
  return block;
}

StatusOr<CheckpointHeader> DecodeCheckpointHeader(ByteView block, const CheckpointKey& key) {
  RETURN_IF_ERROR(CheckBlock("checkpoint header", block, kHeaderMagic, SeedOf(key, kHeaderPlace)));
  HeaderBytes bytes;
  std::memcpy(&bytes, block.data(), sizeof bytes);
  const ByteView rest = block.first(kCheckOffset).subspan(sizeof bytes);
  if (bytes.reserved != 0 || bytes.from != key.from.value() || bytes.epoch == 0 || !IsZero(rest)) {
    return DataLoss("checkpoint header: a field is out of its range");
  }
  CheckpointHeader header{.from = Lsn(bytes.from),
                          .epoch = Epoch(bytes.epoch),
                          .engine_ns = bytes.engine_ns,
                          .created_ns = bytes.created_ns,
                          .pinned = SegmentId(bytes.pinned)};
  std::memcpy(header.store_id.data(), bytes.store_id, sizeof bytes.store_id);
  return header;
}

std::optional<StoreId> CheckpointOwner(ByteView block) {
  HeaderBytes bytes;
  if (block.size() < sizeof bytes) return std::nullopt;
  std::memcpy(&bytes, block.data(), sizeof bytes);
  if (std::memcmp(bytes.magic, kHeaderMagic, sizeof kHeaderMagic) != 0) return std::nullopt;
  StoreId owner;
  std::memcpy(owner.data(), bytes.store_id, sizeof bytes.store_id);
  return owner;
}

std::vector<std::byte> EncodeCheckpointFooter(const CheckpointFooter& footer,
                                              const CheckpointKey& key) {
  CHECK(footer.from == key.from && footer.through >= footer.from);
  CHECK(footer.sections.size() <= kCheckpointSectionsMax);
  FooterBytes bytes{.version = kCheckpointVersion,
                    .sections = static_cast<uint32_t>(footer.sections.size()),
                    .from = footer.from.value(),
                    .through = footer.through.value(),
                    .blocks = footer.blocks,
                    .blocks_end = footer.blocks_end};
  std::memcpy(bytes.magic, kFooterMagic, sizeof kFooterMagic);
  std::vector<std::byte> block(kCheckpointFooterBytes);
  std::memcpy(block.data(), &bytes, sizeof bytes);
  std::byte* place = block.data() + sizeof bytes;
  for (const CheckpointSection& section : footer.sections) {
    const SectionBytes entry{.number = section.number,
                             .reserved = 0,
                             .entries = section.entries,
                             .raw_bytes = section.raw_bytes};
    std::memcpy(place, &entry, sizeof entry);
    place += sizeof entry;
  }
  Seal(block, SeedOf(key, kFooterPlace));
  return block;
}

StatusOr<CheckpointFooter> DecodeCheckpointFooter(ByteView block, const CheckpointKey& key,
                                                  uint64_t file_bytes) {
  RETURN_IF_ERROR(CheckBlock("checkpoint footer", block, kFooterMagic, SeedOf(key, kFooterPlace)));
  const auto out_of_range = [] {
    return DataLoss("checkpoint footer: a field is out of its range");
  };
  FooterBytes bytes;
  std::memcpy(&bytes, block.data(), sizeof bytes);
  if (file_bytes < kCheckpointHeaderBytes + kCheckpointFooterBytes ||
      bytes.from != key.from.value() || bytes.through < bytes.from || bytes.blocks > kBlocksMax ||
      bytes.sections > kCheckpointSectionsMax || bytes.blocks_end < kCheckpointHeaderBytes ||
      bytes.blocks_end > file_bytes - kCheckpointFooterBytes ||
      file_bytes - kCheckpointFooterBytes != AlignUp(bytes.blocks_end, kBlockBytes) ||
      bytes.blocks > bytes.blocks_end / kCheckpointBlockHeaderBytes) {
    return out_of_range();
  }
  CheckpointFooter footer{.from = Lsn(bytes.from),
                          .through = Lsn(bytes.through),
                          .blocks = bytes.blocks,
                          .blocks_end = bytes.blocks_end,
                          .sections = {}};
  uint64_t raw_bytes_left = bytes.blocks * kCheckpointBlockBytesMax;
  ByteView rest = block.first(kCheckOffset).subspan(sizeof bytes);
  for (uint32_t i = 0; i < bytes.sections; ++i) {
    SectionBytes entry;
    std::memcpy(&entry, rest.data(), sizeof entry);
    rest = rest.subspan(sizeof entry);
    if (entry.number == 0 || entry.reserved != 0 || entry.entries > entry.raw_bytes ||
        entry.raw_bytes > raw_bytes_left ||
        (i > 0 && entry.number <= footer.sections.back().number)) {
      return out_of_range();
    }
    raw_bytes_left -= entry.raw_bytes;
    footer.sections.push_back(
        {.number = entry.number, .entries = entry.entries, .raw_bytes = entry.raw_bytes});
  }
  if (!IsZero(rest)) return out_of_range();
  return footer;
}

CheckpointBlock AppendCheckpointBlock(uint32_t number, uint32_t section, std::string_view raw,
                                      const CheckpointKey& key, std::string& out) {
  CHECK(!raw.empty() && raw.size() <= kCheckpointBlockBytesMax);
  CHECK(section != 0 && number < kBlocksMax);
  const size_t begin = out.size();
  out.resize(begin + kCheckpointBlockHeaderBytes);
  const bool compressed = AppendCompressed(raw, out);
  if (!compressed) out.append(raw);
  const size_t stored = out.size() - begin - kCheckpointBlockHeaderBytes;
  BlockBytes header{.number = number,
                    .section = section,
                    .raw_bytes = static_cast<uint32_t>(raw.size()),
                    .stored_bytes = static_cast<uint32_t>(stored),
                    .codec = compressed ? kCodecZstd : kCodecNone,
                    .reserved = {},
                    .check = 0};
  header.check =
      BlockCheck(header, AsBytes(out).subspan(begin + kCheckpointBlockHeaderBytes, stored), key);
  std::memcpy(out.data() + begin, &header, sizeof header);
  CheckpointBlock block{.number = number,
                        .section = section,
                        .raw_bytes = header.raw_bytes,
                        .stored_bytes = header.stored_bytes,
                        .compressed = compressed};
  out.resize(begin + block.bytes(), '\0');
  return block;
}

StatusOr<CheckpointBlock> DecodeCheckpointBlockHeader(ByteView bytes) {
  BlockBytes header;
  if (bytes.size() < sizeof header) return DataLoss("checkpoint block: its header is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool compressed = header.codec == kCodecZstd;
  if (header.section == 0 || header.raw_bytes == 0 || header.raw_bytes > kCheckpointBlockBytesMax ||
      header.stored_bytes == 0 || header.codec > kCodecZstd || !IsZero(BytesOf(header.reserved)) ||
      (compressed ? header.stored_bytes >= header.raw_bytes
                  : header.stored_bytes != header.raw_bytes)) {
    return DataLoss("checkpoint block: a field of its header is out of its range");
  }
  return CheckpointBlock{.number = header.number,
                         .section = header.section,
                         .raw_bytes = header.raw_bytes,
                         .stored_bytes = header.stored_bytes,
                         .compressed = compressed};
}

StatusOr<ByteView> OpenCheckpointBlock(const CheckpointBlock& block, ByteView bytes,
                                       uint32_t number, const CheckpointKey& key,
                                       std::string& scratch) {
  if (bytes.size() < block.bytes()) return DataLoss("checkpoint block {}: cut short", number);
  BlockBytes header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const ByteView stored = bytes.subspan(sizeof header, block.stored_bytes);
  if (header.check != BlockCheck(header, stored, key)) {
    return DataLoss("checkpoint block {}: it fails its check", number);
  }
  if (block.number != number) {
    return DataLoss("checkpoint block {}: number {} stands there", number, block.number);
  }
  const uint64_t padding = block.bytes() - sizeof header - block.stored_bytes;
  if (!IsZero(bytes.subspan(sizeof header + block.stored_bytes, padding))) {
    return DataLoss("checkpoint block {}: its padding is not zero", number);
  }
  if (!block.compressed) return stored;
  scratch.resize(block.raw_bytes);
  RETURN_IF_ERROR(Decompress(AsText(stored), scratch.data(), block.raw_bytes));
  return AsBytes(scratch);
}

std::string CheckpointFileName(Lsn from) {
  return fmt::format("{}/{:016x}{}", kCheckpointFolder, from.value(), kSuffix);
}

Lsn ParseCheckpointFileName(std::string_view bare_name) {
  if (!bare_name.ends_with(kSuffix)) return Lsn();
  return ParseDigits(bare_name.substr(0, bare_name.size() - kSuffix.size()));
}

std::string CheckpointTempName(Lsn from) {
  return fmt::format("{}/{}{:016x}", kCheckpointFolder, kTempPrefix, from.value());
}

bool IsCheckpointTempName(std::string_view bare_name) { return bare_name.starts_with(kTempPrefix); }

}  // namespace holdfast
