// SegmentScan: what stands at a place of one segment file, and what its group headers say, wherever
// they stand: the evidence for the table in torn_tail.h.
#pragma once

#include <cstdint>
#include <vector>

#include "journal/base/status.h"
#include "journal/format/frame.h"
#include "journal/io/read_window.h"

namespace holdfast {

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
// `segment_bytes` bounds what a group may claim. Where nothing before `empty_through` bears the
// stamp, it is not read further. Memory: 24 bytes a group. Closes the window: the file may go at
// once.
StatusOr<SegmentTrace> TraceSegment(ReadWindow& window, const Life& life, uint64_t segment_bytes,
                                    uint64_t empty_through = UINT64_MAX);

}  // namespace holdfast
