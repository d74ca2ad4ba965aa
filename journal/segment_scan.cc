#include "journal/segment_scan.h"

#include <algorithm>

#include "journal/format/codec.h"
#include "journal/format/segment_header.h"

namespace holdfast {

Status ReadWindow::Open(File& file) {
  file_ = &file;
  begin_ = held_ = 0;
  ASSIGN_OR_RETURN(file_bytes_, file.Size());
  return absl::OkStatus();
}

StatusOr<ByteView> ReadWindow::At(uint64_t offset, uint64_t length) {
  if (offset >= file_bytes_) return ByteView();
  length = std::min(length, file_bytes_ - offset);
  if (offset < begin_ || offset + length > begin_ + held_) {
    const uint64_t begin = AlignDown(offset, kIoAlignment);
    const uint64_t asked = AlignUp(offset + length - begin, kIoAlignment);
    const uint64_t wanted =
        std::min(std::max(kReadAheadBytes, asked), AlignUp(file_bytes_ - begin, kIoAlignment));
    if (buffer_.size() < wanted) {
      buffer_ = AlignedBuffer();  // The old one goes first: never two large ones at a time.
      buffer_ = AlignedBuffer(wanted);
    }
    begin_ = held_ = 0;  // A failed read leaves nothing behind.
    ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(begin, buffer_.span().first(wanted)));
    begin_ = begin;
    held_ = got;
    bytes_read_ += got;
  }
  const uint64_t end = begin_ + held_;  // A file that shrank meanwhile ends earlier.
  if (offset >= end) return ByteView();
  return buffer_.view().subspan(offset - begin_, std::min(length, end - offset));
}

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

StatusOr<SegmentTrace> TraceSegment(ReadWindow& window, const Life& life, uint64_t segment_bytes) {
  SegmentTrace trace;
  const uint64_t end = std::min(segment_bytes, window.file_bytes());
  for (uint64_t offset = kSegmentHeaderBytes; offset < end; offset += kBlockBytes) {
    ASSIGN_OR_RETURN(const ByteView bytes, window.At(offset, kGroupHeaderBytes));
    const GroupView view = ReadGroupHeader(bytes, life, offset, segment_bytes - offset);
    if (view.shape == Shape::kNoStamp) continue;
    const uint64_t length = view.shape == Shape::kValid ? view.header.length : kBlockBytes;
    trace.stamped_end = std::max(trace.stamped_end, offset + length);
    if (view.shape != Shape::kValid) continue;
    trace.engine_ns = std::max(trace.engine_ns, view.header.engine_ns);
    if (view.header.is_link()) continue;
    trace.groups.push_back({offset, view.header.synced, view.header.promised});
    trace.highest_lsn =
        std::max(trace.highest_lsn, view.header.first_lsn + (view.header.records - 1u));
  }
  return trace;
}

}  // namespace holdfast
