#include "journal/segment_scan.h"

#include <algorithm>

#include "journal/format/codec.h"
#include "journal/format/segment_header.h"

namespace holdfast {
namespace {

// Behind a group this large the next header is read by itself: one block takes less than what lies
// between the two.
constexpr uint64_t kSparseGroupBytes = uint64_t{128} << 10;

}  // namespace

StatusOr<GroupOnDisk> ReadGroup(ReadWindow& window, const Life& life, uint64_t offset,
                                uint64_t segment_bytes, Lsn next) {
  GroupOnDisk group;
  const uint64_t room = segment_bytes > offset ? segment_bytes - offset : 0;
  if (room < kBlockBytes) return group;
  ASSIGN_OR_RETURN(const ByteView block, window.At(offset, kBlockBytes));
  const GroupView view = ReadGroupHeader(block, life, offset, room);
  group.shape = view.shape;
  if (view.shape == Shape::kValid && !view.header.is_link()) {
    group.readable = true;
    group.header = view.header;
    ASSIGN_OR_RETURN(group.bytes, window.At(offset, view.header.length));
    return group;
  }
  if (view.shape == Shape::kValid) group.shape = Shape::kStampedBad;  // A Link has one place only.
  if (!next || block.size() < kGroupHeaderBytes + kBatchHeaderBytes) return group;

  // A large batch is read only if its length can be true: the end of a segment that was used before
  // would otherwise cost a group's worth of reading for nothing.
  const uint64_t claimed =
      kGroupHeaderBytes + Decoder(block.subspan(kGroupHeaderBytes)).Fixed<uint32_t>();
  const uint64_t limit = std::min(room, kGroupBytesMax);
  if (claimed > limit) return group;
  ASSIGN_OR_RETURN(const ByteView first, window.At(offset, std::max(claimed, kBlockBytes)));
  group.header = BatchCursor::HeaderFor(next, limit);
  if (BatchCursor(first, group.header, life, offset).Next() != BatchCursor::Step::kBatch) {
    return group;
  }
  group.readable = group.headerless = true;
  ASSIGN_OR_RETURN(group.bytes, window.At(offset, limit));
  return group;
}

StatusOr<SegmentTrace> TraceSegment(ReadWindow& window, const Life& life, uint64_t segment_bytes,
                                    uint64_t empty_through) {
  const ReadWindow::Closer closer(window);
  SegmentTrace trace;
  const uint64_t end = std::min(segment_bytes, window.file_bytes());
  bool sparse = false;
  uint64_t length = kBlockBytes;
  for (uint64_t offset = kSegmentHeaderBytes; offset < end; offset += length) {
    if (offset >= empty_through && trace.stamped_end == 0) break;
    ASSIGN_OR_RETURN(const ByteView bytes, sparse ? window.Peek(offset, kGroupHeaderBytes)
                                                  : window.At(offset, kGroupHeaderBytes));
    const GroupView view = ReadGroupHeader(bytes, life, offset, segment_bytes - offset);
    const bool valid = view.shape == Shape::kValid;
    // No other group of this life begins inside of one: places are given out once.
    length = valid ? view.header.length : kBlockBytes;
    sparse = length >= kSparseGroupBytes;
    if (view.shape == Shape::kNoStamp) continue;
    trace.stamped_end = std::max(trace.stamped_end, offset + length);
    if (!valid) continue;
    trace.engine_ns = std::max(trace.engine_ns, view.header.engine_ns);
    if (view.header.is_link()) continue;
    trace.groups.push_back({offset, view.header.synced, view.header.promised});
    trace.highest_lsn =
        std::max(trace.highest_lsn, view.header.first_lsn + (view.header.records - 1u));
  }
  return trace;
}

}  // namespace holdfast
