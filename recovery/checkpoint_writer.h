// CheckpointWriter: one checkpoint file, from its first byte to its name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/checkpoint_header.h"
#include "journal/io/aligned_buffer.h"
#include "journal/io/storage.h"

namespace holdfast {

// A checkpoint that is there to be loaded.
struct KeptCheckpoint {
  Lsn from, through;
  uint64_t bytes = 0;  // of the file
};

// How many are kept: a bad one leaves the one before.
inline constexpr size_t kCheckpointsKept = 2;

// Writes under the name CheckpointTempName(), which means nothing to an open, in large aligned
// pieces past the page cache where the file system allows it.
//
// A full disk is no failure of anything else: what was written is removed, and a later checkpoint
// may find room. After any other error the file is left as it stands.
// Threads: one at a time.
// Errors: of all calls: kResourceExhausted kDiskFull, kUnavailable kIo, as Storage. No next call
//         but the destructor.
class CheckpointWriter {
 public:
  // Begins the file, instead of one of that name that an earlier attempt left.
  // Errors: also kResourceExhausted kLimit: no memory for its buffer; there is no file
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(Storage& storage,
                                                            const CheckpointHeader& header,
                                                            uint64_t salt);
  // Removes a file that did not get its name, unless an error said to leave everything.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Turns to the next section, in ascending order.
  void BeginSection(uint32_t section);
  // Whole entries of the section; at most kCheckpointBlockBytesMax at a time.
  Status Add(std::string_view entries);
  // The section that was begun last is complete: about so many entries.
  Status EndSection(uint64_t entries);
  // Completes the file.
  // Durable: its bytes; it has no name yet.
  Status Finish(Lsn through);
  // Gives it its name, and removes all but the newest two; failing to remove costs space only.
  // Durable: the name.
  // Needs: Finish(), S >= through: otherwise the file would know what a power cut takes away
  StatusOr<KeptCheckpoint> Publish();

  // Leaves everything on disk as it is: the journal is poisoned.
  void Leave() { leave_ = true; }

  Lsn from() const { return key_.from; }
  uint64_t bytes() const { return written_ + filled_; }

 private:
  CheckpointWriter(Storage& storage, const CheckpointKey& key, std::unique_ptr<File> file,
                   AlignedBuffer buffer);

  Status SealBlock();
  Status Append(ByteView bytes);
  Status WriteOut();
  Status AppendZerosTo(uint64_t alignment);
  Status Note(Status status);
  void RemoveOlder();

  Storage& storage_;
  const CheckpointKey key_;
  std::unique_ptr<File> file_;
  AlignedBuffer buffer_;
  uint64_t filled_ = 0;   // bytes in the buffer
  uint64_t written_ = 0;  // in the file before them
  std::string raw_;       // of the block that is being filled
  std::string block_;
  CheckpointFooter footer_;
  bool finished_ = false;
  bool published_ = false;
  bool leave_ = false;
};

}  // namespace holdfast
