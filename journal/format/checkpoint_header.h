// A checkpoint file: header, blocks of entries, and the footer that alone makes it whole (FORMAT.md
// §8). Bytes only; who writes and reads files is in recovery/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/base/bytes.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/segment_header.h"

namespace holdfast {

inline constexpr char kCheckpointFolder[] = "checkpoint";
inline constexpr uint32_t kCheckpointVersion = 1;
inline constexpr uint64_t kCheckpointHeaderBytes = kBlockBytes;
inline constexpr uint64_t kCheckpointFooterBytes = kBlockBytes;
inline constexpr size_t kCheckpointBlockHeaderBytes = 32;
inline constexpr size_t kCheckpointBlockAlignment = 8;
inline constexpr uint64_t kCheckpointBlockBytesMax = uint64_t{256} << 10;  // before compression
inline constexpr size_t kCheckpointSectionsMax = 64;

// What seeds every check of one file, besides the place: bytes of another store, or of another
// checkpoint, never pass.
struct CheckpointKey {
  uint64_t salt = 0;
  Lsn from;
};

struct CheckpointHeader {
  StoreId store_id{};
  Lsn from;     // newest LSN when the capture began: replay begins behind it
  Epoch epoch;  // of the boot that wrote it
  int64_t engine_ns = 0;
  int64_t created_ns = 0;  // wall
  // The first segment with records of types that its writer did not know and skipped; none: there
  // were none.
  SegmentId pinned;
};

// One block.
std::vector<std::byte> EncodeCheckpointHeader(const CheckpointHeader& header,
                                              const CheckpointKey& key);
// Errors: kDataLoss            not a checkpoint's header, it fails its check, or it names another
//                              LSN than `key`
//         kFailedPrecondition  kNewerFormat
StatusOr<CheckpointHeader> DecodeCheckpointHeader(ByteView block, const CheckpointKey& key);
// Whose file it is, by a header that need not pass any check; none: it has no magic.
std::optional<StoreId> CheckpointOwner(ByteView block);

// What one state machine wrote.
struct CheckpointSection {
  uint32_t number = 0;   // lowest number of the record types that the machine takes
  uint64_t entries = 0;  // about so many, to make room for: at most `raw_bytes`
  uint64_t raw_bytes = 0;
  bool operator==(const CheckpointSection&) const = default;
};

struct CheckpointFooter {
  Lsn from;
  Lsn through;              // newest LSN when the capture ended: no entry holds a higher one
  uint64_t blocks = 0;      // numbered from 0
  uint64_t blocks_end = 0;  // place in the file behind the last one; zeros from there to the footer
  std::vector<CheckpointSection> sections;  // ascending; one without entries is there too
};

std::vector<std::byte> EncodeCheckpointFooter(const CheckpointFooter& footer,
                                              const CheckpointKey& key);
// The footer is the last block of a file of `file_bytes`.
// Errors: kDataLoss            as above
//         kFailedPrecondition  kNewerFormat
StatusOr<CheckpointFooter> DecodeCheckpointFooter(ByteView block, const CheckpointKey& key,
                                                  uint64_t file_bytes);

struct CheckpointBlock {
  uint32_t number = 0;
  uint32_t section = 0;
  uint32_t raw_bytes = 0;
  uint32_t stored_bytes = 0;  // behind its header
  bool compressed = false;
  // Header, stored bytes, and zeros up to the next block.
  uint64_t bytes() const {
    return AlignUp(kCheckpointBlockHeaderBytes + stored_bytes, kCheckpointBlockAlignment);
  }
};

// Appends the block with `raw`, whole entries of one section, to `out`; compressed if that saves an
// eighth.
// Needs: 1 to kCheckpointBlockBytesMax bytes
CheckpointBlock AppendCheckpointBlock(uint32_t number, uint32_t section, std::string_view raw,
                                      const CheckpointKey& key, std::string& out);
// Bounds only: what it says is proved by OpenCheckpointBlock.
// Errors: kDataLoss
StatusOr<CheckpointBlock> DecodeCheckpointBlockHeader(ByteView bytes);
// The entries in `bytes`, which hold the whole block: a view of it, or of `scratch`.
// Errors: kDataLoss  it fails its check, is not block `number`, or does not unpack
StatusOr<ByteView> OpenCheckpointBlock(const CheckpointBlock& block, ByteView bytes,
                                       uint32_t number, const CheckpointKey& key,
                                       std::string& scratch);

// "checkpoint/000000000000002a.ckp"; and back from the bare file name (none if it is not one).
std::string CheckpointFileName(Lsn from);
Lsn ParseCheckpointFileName(std::string_view bare_name);
// What is being written: "checkpoint/tmp-000000000000002a". It means nothing to an open.
std::string CheckpointTempName(Lsn from);
bool IsCheckpointTempName(std::string_view bare_name);

}  // namespace holdfast
