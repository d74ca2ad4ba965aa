#include "journal/segment_scan.h"

#include <algorithm>

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
    const uint64_t wanted =
        std::max(kReadAheadBytes, AlignUp(offset + length - begin, kIoAlignment));
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
