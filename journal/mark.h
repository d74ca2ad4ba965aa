// MARK, the superblock: what is known to be durable when nothing newer on disk says so (FORMAT.md
// §5). Two 4 KiB slots that both hold the newest statement, and a third for the heartbeat of the
// engine time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/segment_header.h"
#include "journal/io/storage.h"

namespace holdfast {

inline constexpr char kMarkFile[] = "MARK";

struct Mark {
  uint32_t format_version = kFormatVersion;
  uint64_t sequence = 0;  // of the statement; higher is newer
  StoreId store_id{};
  uint64_t salt = 0;
  Epoch epoch;            // of the boot that wrote it
  Lsn synced;             // S
  SegmentId end_segment;  // where the bytes of S end
  uint64_t end_offset = 0;
  SegmentId newest;
  SegmentId oldest;
  bool clean = false;  // nothing was written after it
  int64_t engine_ns = 0;
};

// Reads the file as it is. Durable statements only: `mark` is the valid slot with the higher
// sequence.
struct MarkView {
  std::optional<Mark> mark;   // none: no slot passes its check
  uint64_t slot = 0;          // where it stands
  int64_t heartbeat_ns = 0;   // 0: none valid
  bool slots_differ = false;  // an interrupted statement, or damage to one slot
  bool slot_bad = false;      // a slot fails its check: a power cut in a statement, or damage
  // Not our file: no slot begins like a statement, whole or torn, or with zeros.
  bool foreign = false;
};
// Errors: kNotFound            no MARK file
//         kFailedPrecondition  kNewerFormat
//         kUnavailable         it could not be read
StatusOr<MarkView> ReadMark(Storage& storage);

// Writes MARK. Owns the open file.
// Threads: one at a time.
class MarkWriter {
 public:
  // Makes the file if it is missing (written once with zeros, synced, the folder synced).
  static StatusOr<std::unique_ptr<MarkWriter>> Open(Storage& storage);

  // One slot, sync, the other slot, sync; the sequence is set here, above every earlier one. The
  // slot that holds the newest statement comes second: it stays whole until the new one does.
  // Durable: when it returns OK. After an error nothing may be confirmed on it.
  Status Write(Mark mark);
  // The heartbeat slot; not synced.
  Status WriteHeartbeat(int64_t engine_ns, uint64_t salt);
  File& file() { return *file_; }

 private:
  MarkWriter(std::unique_ptr<File> file, const MarkView& found);
  std::unique_ptr<File> file_;
  uint64_t sequence_;
  uint64_t trusted_slot_;  // holds the newest statement whole
};

}  // namespace holdfast
