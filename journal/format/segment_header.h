// The first two blocks of a segment: its header (redundant: file name, MARK and groups say the
// same) and its Link group, which fixes the end of the segment before it (FORMAT.md §2, §3).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/frame.h"

namespace holdfast {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint64_t kSegmentHeaderBytes = kBlockBytes;
inline constexpr uint64_t kLinkBytes = kBlockBytes;
inline constexpr uint64_t kFirstGroupOffset = kSegmentHeaderBytes + kLinkBytes;  // after the Link
inline constexpr uint64_t kSegmentBytesMin = uint64_t{64} << 10;
inline constexpr uint64_t kSegmentBytesMax = uint64_t{1} << 30;

using StoreId = std::array<uint8_t, 16>;

struct SegmentHeader {
  uint32_t format_version = kFormatVersion;
  StoreId store_id{};
  uint64_t salt = 0;
  SegmentId segment;
  uint64_t life = 0;  // stamp
  uint64_t segment_bytes = 0;
  Epoch epoch;
  int64_t created_ns = 0;  // wall
  Life life_of() const { return {salt, static_cast<uint32_t>(segment.value()), life}; }
};

// One block: magic, fields, check over the block (seeded with nothing: it is read before a salt is
// known).
std::vector<std::byte> EncodeSegmentHeader(const SegmentHeader& header);
// Errors: kDataLoss            not a segment header, or it fails its check
//         kFailedPrecondition  kNewerFormat; the message names the version needed
StatusOr<SegmentHeader> DecodeSegmentHeader(ByteView block);

enum class LinkReason : uint8_t { kRotation = 1, kOpen = 2 };

// The chain. LSNs of what stands behind this Link start at `first`; (first .. through) were copied
// from the predecessor by an open, the next new one is `next`.
struct Link {
  SegmentId previous;  // none: the first segment of the store
  uint64_t previous_life = 0;
  uint64_t previous_end = 0;  // valid bytes of the predecessor; what lies beyond is dead for ever
  Lsn previous_last_lsn;      // last LSN before previous_end
  Lsn first;                  // must come behind this Link
  Lsn through;                // last LSN copied; first - 1 if none
  Lsn next;                   // must come after `through`
  Epoch epoch;
  std::string host_boot_id;  // at most 64 bytes
  uint64_t id_salt = 0;      // of the delivery ids of this boot
  int64_t wall_ns = 0;
  SegmentId oldest;
  LinkReason reason = LinkReason::kRotation;
};

// One block: a Link group for `offset` kSegmentHeaderBytes of that life.
std::vector<std::byte> EncodeLinkGroup(const Link& link, const GroupHeader& header,
                                       const Life& life);
struct LinkView {
  Shape shape = Shape::kNoStamp;
  GroupHeader header;  // both only if kValid
  Link link;
};
LinkView DecodeLinkGroup(ByteView block, const Life& life);
// Whether what no check covers, behind a valid Link in its block, is zero.
bool LinkPaddingIsZero(ByteView block);

// "journal/0000000000000001.seg"; and back (0 if the bare file name is not one).
std::string SegmentFileName(SegmentId segment);
SegmentId ParseSegmentFileName(const std::string& bare_name);

}  // namespace holdfast
