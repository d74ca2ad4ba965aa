// ReadAhead: one file read from front to back with several reads in flight, so that the device and
// whoever digests the bytes are busy at the same time.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "journal/io/aligned_buffer.h"
#include "journal/io/storage.h"

namespace holdfast {

// The file is cut into pieces. Threads of its own read those behind the one asked for last; a piece
// that none of them has begun is read by the thread that asks. So it works, slower, where no thread
// can be started.
// Memory: the ring, one buffer of `piece_bytes * pieces`, from the first At() on.
// Threads: one at a time.
class ReadAhead {
 public:
  struct Options {
    uint64_t piece_bytes = uint64_t{512} << 10;  // a multiple of kIoAlignment
    uint64_t pieces = 8;
    uint64_t threads = 3;  // most reads in flight, besides one of the thread that asks
  };
  explicit ReadAhead(const Options& options);
  // Waits for the reads in flight.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // From here on `file` is read, up to `end`. Borrowed until Close(), the next Open() or the end of
  // this object: it must not be destroyed earlier.
  void Open(File& file, uint64_t end) ABSL_LOCKS_EXCLUDED(mu_);
  // No read is in flight, and none will be begun, when it returns.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  // Where the bytes asked for stand: in the ring, which goes on at its beginning where it ends.
  struct Bytes {
    ByteView head;
    ByteView tail;  // empty unless they cross the end of the ring
  };
  // The bytes [offset, offset + length), fewer where the file ends. Valid until the next call. Any
  // order; what is asked for in order has been read already, a jump begins anew at its place.
  // Needs:  length <= span_bytes_max(); a file
  // Errors: as File::ReadAt, for reads of the pieces asked for and of no other; the next call
  //         begins anew
  StatusOr<Bytes> At(uint64_t offset, uint64_t length) ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t span_bytes_max() const { return options_.piece_bytes * (options_.pieces / 2); }
  // From all files, what nobody asked for included.
  uint64_t bytes_read() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  enum class PieceState { kFree, kReading, kLanded };
  struct Piece {  // its place in the ring
    uint64_t index = 0;
    PieceState state = PieceState::kFree;
    StatusOr<size_t> got = size_t{0};
  };

  void BeginAt(uint64_t offset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CanRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reads the piece `next_`. Releases the lock while it reads.
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until `index` has landed, reading it where nobody else does.
  Piece& Land(uint64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  uint64_t Begin(uint64_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return begin_ + index * options_.piece_bytes;
  }
  Piece& PieceOf(uint64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return pieces_[index % options_.pieces];
  }

  const Options options_;
  std::vector<std::thread> threads_;  // Used by the owner's thread alone.

  mutable Mutex mu_;  // Never held across a read.
  CondVar work_;      // something can be read, or everything ends
  CondVar landed_;
  File* file_ ABSL_GUARDED_BY(mu_) = nullptr;
  uint64_t end_ ABSL_GUARDED_BY(mu_) = 0;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;  // the four below say where
  uint64_t begin_ ABSL_GUARDED_BY(mu_) = 0;  // of piece 0
  uint64_t first_ ABSL_GUARDED_BY(mu_) = 0;  // the first piece that is still wanted
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 0;   // the first that nobody has begun to read
  std::vector<Piece> pieces_ ABSL_GUARDED_BY(mu_);
  AlignedBuffer ring_;  // Each piece of it belongs to who reads it, then to the owner's thread.
  uint64_t reading_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t bytes_read_ ABSL_GUARDED_BY(mu_) = 0;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace holdfast
