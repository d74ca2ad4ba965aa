#include "journal/format/segment_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>

#include "journal/base/check.h"
#include "journal/base/checksum.h"

namespace holdfast {
namespace {

constexpr char kMagic[8] = {'H', 'O', 'L', 'D', 'S', 'E', 'G', '\n'};

// The header as it lies on disk, from +0; zeros up to the check in the last 8 bytes of the block.
// Magic, version and check stand at the same places in every version of the format.
struct HeaderBytes {
  char magic[8];
  uint32_t format_version;
  uint32_t reserved;
  uint8_t store_id[16];
  uint64_t salt;
  uint64_t segment;
  uint64_t life;
  uint64_t segment_bytes;
  uint64_t epoch;
  int64_t created_ns;
};
static_assert(sizeof(HeaderBytes) == 80);
static_assert(offsetof(HeaderBytes, salt) == 32 && offsetof(HeaderBytes, created_ns) == 72);
constexpr size_t kHeaderCheckOffset = kSegmentHeaderBytes - sizeof(uint64_t);

// The Link as it lies on disk, behind the header of its group.
constexpr size_t kBootIdBytesMax = 64;
struct LinkBytes {
  uint64_t check;  // of all that follows here
  uint64_t previous;
  uint64_t previous_life;
  uint64_t previous_end;
  uint64_t previous_last_lsn;
  uint64_t first;
  uint64_t through;
  uint64_t next;
  uint64_t epoch;
  uint64_t id_salt;
  int64_t wall_ns;
  uint64_t oldest;
  uint8_t reason;
  uint8_t boot_id_bytes;
  uint8_t reserved[6];
  char boot_id[kBootIdBytesMax];
};
static_assert(sizeof(LinkBytes) == 168);
static_assert(offsetof(LinkBytes, reason) == 96 && offsetof(LinkBytes, boot_id) == 104);

uint64_t LinkCheck(const LinkBytes& bytes, const Life& life) {
  const std::string_view text(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  return Checksum(AsBytes(text).subspan(sizeof bytes.check),
                  SeedAt(life, kSegmentHeaderBytes + kGroupHeaderBytes));
}

bool IsSegment(uint64_t id) { return id > 0 && id <= std::numeric_limits<uint32_t>::max(); }
bool IsSegmentSize(uint64_t bytes) {
  return bytes >= kSegmentBytesMin && bytes <= kSegmentBytesMax && IsAligned(bytes, kBlockBytes);
}

// What every Link says, whatever its store went through.
bool IsConsistent(const Link& link) {
  if (link.host_boot_id.size() > kBootIdBytesMax) return false;
  if (link.reason != LinkReason::kRotation && link.reason != LinkReason::kOpen) return false;
  if (!link.epoch || !IsSegment(link.oldest.value()) || !link.first) return false;
  if (link.through + 1 < link.first || link.next <= link.through) return false;
  if (!link.previous) return link.previous_end == 0 && link.previous_life == 0;
  return IsSegment(link.previous.value()) && link.previous_life != 0 &&
         link.previous_end >= kFirstGroupOffset && link.previous_end <= kSegmentBytesMax &&
         IsAligned(link.previous_end, kBatchAlignment);  // a copied window may begin inside a group
}

}  // namespace

std::vector<std::byte> EncodeSegmentHeader(const SegmentHeader& header) {
  CHECK(IsSegment(header.segment.value()));
  CHECK(IsSegmentSize(header.segment_bytes));
  CHECK(header.life != 0);
  HeaderBytes bytes{.format_version = header.format_version,
                    .salt = header.salt,
                    .segment = header.segment.value(),
                    .life = header.life,
                    .segment_bytes = header.segment_bytes,
                    .epoch = header.epoch.value(),
                    .created_ns = header.created_ns};
  std::memcpy(bytes.magic, kMagic, sizeof kMagic);
  std::memcpy(bytes.store_id, header.store_id.data(), sizeof bytes.store_id);
  std::vector<std::byte> block(kSegmentHeaderBytes);
  std::memcpy(block.data(), &bytes, sizeof bytes);
  const uint64_t check = Checksum(ByteView(block).first(kHeaderCheckOffset), 0);
  std::memcpy(block.data() + kHeaderCheckOffset, &check, sizeof check);
  return block;
}

StatusOr<SegmentHeader> DecodeSegmentHeader(ByteView block) {
  if (block.size() < kSegmentHeaderBytes) {
    return DataLoss("segment header: {} bytes, want {}", block.size(), kSegmentHeaderBytes);
  }
  HeaderBytes bytes;
  std::memcpy(&bytes, block.data(), sizeof bytes);
  uint64_t check = 0;
  std::memcpy(&check, block.data() + kHeaderCheckOffset, sizeof check);
  if (std::memcmp(bytes.magic, kMagic, sizeof kMagic) != 0) {
    return DataLoss("segment header: no magic");
  }
  if (check != Checksum(block.first(kHeaderCheckOffset), 0)) {
    return DataLoss("segment header: it fails its check");
  }
  if (bytes.format_version > kFormatVersion) {
    return WrongState(Detail::kNewerFormat,
                      "segment header: format version {}; this program reads up to {}",
                      bytes.format_version, kFormatVersion);
  }
  if (bytes.format_version == 0 || bytes.reserved != 0 || bytes.life == 0 ||
      !IsSegment(bytes.segment) || !IsSegmentSize(bytes.segment_bytes)) {
    return DataLoss("segment header: a field is out of its range");
  }
  SegmentHeader header{.format_version = bytes.format_version,
                       .salt = bytes.salt,
                       .segment = SegmentId(bytes.segment),
                       .life = bytes.life,
                       .segment_bytes = bytes.segment_bytes,
                       .epoch = Epoch(bytes.epoch),
                       .created_ns = bytes.created_ns};
  std::memcpy(header.store_id.data(), bytes.store_id, sizeof bytes.store_id);
  return header;
}

std::vector<std::byte> EncodeLinkGroup(const Link& link, const GroupHeader& header,
                                       const Life& life) {
  CHECK(IsConsistent(link));
  LinkBytes bytes{.check = 0,
                  .previous = link.previous.value(),
                  .previous_life = link.previous_life,
                  .previous_end = link.previous_end,
                  .previous_last_lsn = link.previous_last_lsn.value(),
                  .first = link.first.value(),
                  .through = link.through.value(),
                  .next = link.next.value(),
                  .epoch = link.epoch.value(),
                  .id_salt = link.id_salt,
                  .wall_ns = link.wall_ns,
                  .oldest = link.oldest.value(),
                  .reason = static_cast<uint8_t>(link.reason),
                  .boot_id_bytes = static_cast<uint8_t>(link.host_boot_id.size()),
                  .reserved = {},
                  .boot_id = {}};
  std::memcpy(bytes.boot_id, link.host_boot_id.data(), link.host_boot_id.size());
  bytes.check = LinkCheck(bytes, life);

  std::vector<std::byte> block(kLinkBytes);
  std::memcpy(block.data() + kGroupHeaderBytes, &bytes, sizeof bytes);
  SealGroup(block,
            {.length = kLinkBytes,
             .flags = GroupHeader::kLink,
             .synced = header.synced,
             .promised = header.promised,
             .engine_ns = header.engine_ns},
            life, kSegmentHeaderBytes);
  return block;
}

LinkView DecodeLinkGroup(ByteView block, const Life& life) {
  const GroupView group = ReadGroupHeader(block, life, kSegmentHeaderBytes, kLinkBytes);
  LinkView view{.shape = group.shape};
  if (group.shape != Shape::kValid) return view;
  view.shape = Shape::kStampedBad;
  if (!group.header.is_link() || block.size() < kGroupHeaderBytes + sizeof(LinkBytes)) return view;

  LinkBytes bytes;
  std::memcpy(&bytes, block.data() + kGroupHeaderBytes, sizeof bytes);
  if (bytes.check != LinkCheck(bytes, life) || bytes.boot_id_bytes > kBootIdBytesMax) return view;
  Link link{.previous = SegmentId(bytes.previous),
            .previous_life = bytes.previous_life,
            .previous_end = bytes.previous_end,
            .previous_last_lsn = Lsn(bytes.previous_last_lsn),
            .first = Lsn(bytes.first),
            .through = Lsn(bytes.through),
            .next = Lsn(bytes.next),
            .epoch = Epoch(bytes.epoch),
            .host_boot_id = std::string(bytes.boot_id, bytes.boot_id_bytes),
            .id_salt = bytes.id_salt,
            .wall_ns = bytes.wall_ns,
            .oldest = SegmentId(bytes.oldest),
            .reason = static_cast<LinkReason>(bytes.reason)};
  if (!IsConsistent(link)) return view;
  view.shape = Shape::kValid;
  view.header = group.header;
  view.link = std::move(link);
  return view;
}

bool LinkPaddingIsZero(ByteView block) {
  const ByteView padding =
      block.subspan(std::min(block.size(), kGroupHeaderBytes + sizeof(LinkBytes)));
  return std::all_of(padding.begin(), padding.end(), [](std::byte b) { return b == std::byte{0}; });
}

namespace {
constexpr std::string_view kSuffix = ".seg";
constexpr size_t kIdDigits = 16;
}  // namespace

std::string SegmentFileName(SegmentId segment) {
  return fmt::format("journal/{:016x}{}", segment.value(), kSuffix);
}

SegmentId ParseSegmentFileName(const std::string& bare_name) {
  const std::string_view name = bare_name;
  if (name.size() != kIdDigits + kSuffix.size() || !name.ends_with(kSuffix)) return SegmentId();
  const std::string_view digits = name.substr(0, kIdDigits);
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return SegmentId();
  uint64_t id = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
  return IsSegment(id) ? SegmentId(id) : SegmentId();
}

}  // namespace holdfast
