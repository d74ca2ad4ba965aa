#include "journal/io/read_window.h"

#include <algorithm>
#include <cstring>

#include "journal/base/check.h"

namespace holdfast {

Status ReadWindow::Open(File& file) {
  Close();
  ASSIGN_OR_RETURN(file_bytes_, file.Size());
  file_ = &file;
  uses_ahead_ = file.read_depth() > 1;
  if (uses_ahead_ && ahead_ == nullptr) {
    ahead_ = std::make_unique<ReadAhead>(ReadAhead::Options{.threads = file.read_depth()});
  }
  if (uses_ahead_) ahead_->Open(file, file_bytes_);
  return absl::OkStatus();
}

void ReadWindow::Close() {
  if (uses_ahead_) ahead_->Close();
  uses_ahead_ = false;
  file_ = nullptr;
  file_bytes_ = begin_ = held_ = 0;
}

StatusOr<ByteView> ReadWindow::At(uint64_t offset, uint64_t length) {
  if (offset >= file_bytes_) return ByteView();
  CHECK(file_ != nullptr);
  length = std::min(length, file_bytes_ - offset);
  if (Holds(offset, length)) return buffer_.view().subspan(offset - begin_, length);
  if (uses_ahead_ && length <= ahead_->span_bytes_max()) return FromAhead(offset, length);
  return FromBuffer(offset, length, kReadAheadBytes);
}

StatusOr<ByteView> ReadWindow::Peek(uint64_t offset, uint64_t length) {
  if (offset >= file_bytes_) return ByteView();
  CHECK(file_ != nullptr);
  length = std::min(length, file_bytes_ - offset);
  if (Holds(offset, length)) return buffer_.view().subspan(offset - begin_, length);
  return FromBuffer(offset, length, kIoAlignment);
}

uint64_t ReadWindow::bytes_read() const {
  return bytes_read_ + (ahead_ == nullptr ? 0 : ahead_->bytes_read());
}

void ReadWindow::Reserve(uint64_t bytes) {
  begin_ = held_ = 0;
  if (buffer_.size() >= bytes) return;
  buffer_ = AlignedBuffer();  // The old one goes first: never two large ones at a time.
  buffer_ = AlignedBuffer(bytes);
}

StatusOr<ByteView> ReadWindow::FromAhead(uint64_t offset, uint64_t length) {
  ASSIGN_OR_RETURN(const ReadAhead::Bytes bytes, ahead_->At(offset, length));
  if (bytes.tail.empty()) return bytes.head;
  // Once in a lap of the ring.
  const uint64_t together = bytes.head.size() + bytes.tail.size();
  Reserve(together);
  std::memcpy(buffer_.data(), bytes.head.data(), bytes.head.size());
  std::memcpy(buffer_.data() + bytes.head.size(), bytes.tail.data(), bytes.tail.size());
  begin_ = offset;
  held_ = together;
  return buffer_.view().first(together);
}

StatusOr<ByteView> ReadWindow::FromBuffer(uint64_t offset, uint64_t length,
                                          uint64_t read_bytes_min) {
  const uint64_t begin = AlignDown(offset, kIoAlignment);
  const uint64_t asked = AlignUp(offset + length - begin, kIoAlignment);
  const uint64_t wanted =
      std::min(std::max(read_bytes_min, asked), AlignUp(file_bytes_ - begin, kIoAlignment));
  Reserve(wanted);  // A failed read leaves nothing behind.
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(begin, buffer_.span().first(wanted)));
  begin_ = begin;
  held_ = got;
  bytes_read_ += got;
  const uint64_t end = begin_ + held_;  // A file that shrank meanwhile ends earlier.
  if (offset >= end) return ByteView();
  return buffer_.view().subspan(offset - begin_, std::min(length, end - offset));
}

}  // namespace holdfast
