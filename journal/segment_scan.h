// SegmentScan: large aligned reads of one segment file, and what its group headers say, wherever
// they stand: the evidence for the table in torn_tail.h.
#pragma once

#include <cstdint>
#include <vector>

#include "journal/base/status.h"
#include "journal/format/frame.h"
#include "journal/io/aligned_buffer.h"
#include "journal/io/storage.h"

namespace holdfast {

inline constexpr uint64_t kReadAheadBytes = uint64_t{1} << 20;

// A window that moves over a file. Reads ahead; one buffer, at least kReadAheadBytes, at most what
// one call asks for.
class ReadWindow {
 public:
  // Looks at `file` from here on (borrowed); forgets the file before it, keeps the memory.
  Status Open(File& file);
  // The bytes [offset, offset + length), fewer where the file ends. Valid until the next call.
  StatusOr<ByteView> At(uint64_t offset, uint64_t length);

  uint64_t file_bytes() const { return file_bytes_; }
  uint64_t bytes_read() const { return bytes_read_; }  // from all files

 private:
  File* file_ = nullptr;
  uint64_t file_bytes_ = 0;
  AlignedBuffer buffer_;
  uint64_t begin_ = 0;  // what the buffer holds: [begin_, begin_ + held_) of the file
  uint64_t held_ = 0;
  uint64_t bytes_read_ = 0;
};

// What stands at the place where a group should begin.
struct GroupOnDisk {
  Shape shape = Shape::kNoStamp;  // of its header
  // Whether `header` and `bytes` may go into a BatchCursor: the header is valid, or (`headerless`)
  // it fails and is made up, but a valid batch stands behind it all the same. Then nobody says how
  // long the group is; the next one begins at a block boundary behind its batches.
  bool readable = false;
  bool headerless = false;
  GroupHeader header;
  ByteView bytes;  // borrowed from the window
};
// `next` is the LSN that a group without a header is asked for; none: such groups are not looked
// for.
StatusOr<GroupOnDisk> ReadGroup(ReadWindow& window, const Life& life, uint64_t offset,
                                uint64_t segment_bytes, Lsn next);

// What the headers at all block boundaries of one segment say, its Link's included.
struct SegmentTrace {
  struct Group {
    uint64_t offset = 0;
    Lsn synced, promised;
  };
  std::vector<Group> groups;  // valid ones, Link groups not
  uint64_t stamped_end = 0;   // behind the last block that bears the stamp, whole groups counted
  Lsn highest_lsn;            // in a valid group
  int64_t engine_ns = 0;      // newest in a valid group
  uint64_t last_group() const { return groups.empty() ? 0 : groups.back().offset; }
};
// `segment_bytes` bounds what a group may claim. Memory: 24 bytes a group.
StatusOr<SegmentTrace> TraceSegment(ReadWindow& window, const Life& life, uint64_t segment_bytes);

}  // namespace holdfast
