// ReadWindow: the bytes of one file after the other, from front to back or anywhere, as views. What
// replays, judges or loads a file reads it through this.
#pragma once

#include <cstdint>
#include <memory>

#include "journal/base/status.h"
#include "journal/io/aligned_buffer.h"
#include "journal/io/read_ahead.h"
#include "journal/io/storage.h"

namespace holdfast {

inline constexpr uint64_t kReadAheadBytes = uint64_t{1} << 20;

// Large aligned reads: with several in flight (ReadAhead) where the file says that this pays, else
// one of at least kReadAheadBytes at a time, made by the thread that asks, in an order that follows
// from what is asked for.
// Memory: 4 MiB for the reads in flight, and one buffer: at least kReadAheadBytes of a file that is
// read one at a time, at most what one call asks for.
// Threads: one at a time.
class ReadWindow {
 public:
  // Looks at `file` from here on; forgets the file before it, keeps the memory. Borrowed until
  // Close(), the next Open() or the end of this object: reads may be in flight until then.
  Status Open(File& file);
  void Close();
  // The bytes [offset, offset + length), fewer where the file ends. Valid until the next call.
  // Errors: as File::ReadAt; the next call reads anew
  StatusOr<ByteView> At(uint64_t offset, uint64_t length);

  // The same where little of what follows is going to be asked for: reads whole blocks, and nothing
  // ahead.
  StatusOr<ByteView> Peek(uint64_t offset, uint64_t length);

  uint64_t file_bytes() const { return file_bytes_; }
  // From all files; what was read ahead and never asked for included.
  uint64_t bytes_read() const;

  // Closes the window at the end of a block, for a file that lives no longer than it.
  class Closer {
   public:
    explicit Closer(ReadWindow& window) : window_(window) {}
    ~Closer() { window_.Close(); }
    Closer(const Closer&) = delete;
    Closer& operator=(const Closer&) = delete;

   private:
    ReadWindow& window_;
  };

 private:
  void Reserve(uint64_t bytes);
  StatusOr<ByteView> FromAhead(uint64_t offset, uint64_t length);
  StatusOr<ByteView> FromBuffer(uint64_t offset, uint64_t length, uint64_t read_bytes_min);
  bool Holds(uint64_t offset, uint64_t length) const {
    return offset >= begin_ && offset + length <= begin_ + held_;
  }

  File* file_ = nullptr;
  uint64_t file_bytes_ = 0;
  std::unique_ptr<ReadAhead> ahead_;  // of the first file that wants it, then of all that do
  bool uses_ahead_ = false;           // this file does
  AlignedBuffer buffer_;
  uint64_t begin_ = 0;  // what the buffer holds: [begin_, begin_ + held_) of the file
  uint64_t held_ = 0;
  uint64_t bytes_read_ = 0;  // into the buffer
};

}  // namespace holdfast
