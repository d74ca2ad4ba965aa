// The seam to the disk: a Storage is one directory, a File one file in it, a WriteQueue the
// asynchronous way to write. Cold work (open, recover, prepare) uses the blocking calls; the commit
// path uses the queue, so that io_uring can overlap and the simulated disk can complete in any
// order its seed says.
//
// Names are relative to the directory ("MARK", "journal/0000000000000001.seg"); nobody above this
// floor joins a path.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "journal/base/bytes.h"
#include "journal/base/status.h"

namespace holdfast {

// Errors of every call below, besides those it names:
//   kNotFound            no such file
//   kResourceExhausted   kDiskFull: no space, quota, file-size limit or descriptors
//   kFailedPrecondition  kReadOnly: permission or read-only file system
//   kUnavailable         kIo: anything else the operating system reports; the message names file
//                        and errno
// Threads: any, for different files; one file's calls are serialised by its owner, except ReadAt,
// which may run beside anything.
class File {
 public:
  virtual ~File() = default;

  // Fills `buffer` from `offset`; fewer bytes only at the end of the file. Any alignment.
  virtual StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) = 0;
  // Writes all of `bytes`. Any alignment. Not durable.
  virtual Status WriteAt(uint64_t offset, ByteView bytes) = 0;
  // Durable: every write to this file completed before the call, and its size.
  virtual Status SyncData() = 0;
  // Really writes zeros over [0, bytes), growing the file as needed, so that later overwrites need
  // no allocation; or returns kDiskFull and may leave a shorter file. Not durable.
  virtual Status WriteZeros(uint64_t bytes) = 0;
  virtual Status Truncate(uint64_t bytes) = 0;
  virtual StatusOr<uint64_t> Size() = 0;
  // Exclusive lock on this descriptor, kept until the File is destroyed and no request made through
  // it is in flight. Not blocking.
  // Errors: kFailedPrecondition  kLocked
  virtual Status TryLock() = 0;
  // Offsets, sizes and memory of writes through a WriteQueue must be multiples of it.
  virtual uint64_t alignment() const = 0;
  // How many reads a reader from front to back should keep in flight. 1: the device gains nothing
  // from a second one, or the order of calls has to follow from the caller alone (simulated disk).
  virtual size_t read_depth() const { return 1; }
};

enum class OpenMode { kReadOnly, kReadWrite, kCreate };  // kCreate: read-write, made if missing

struct FileUse {
  bool direct =
      false;  // bypass the page cache where the file system allows it (else buffered, told once)
};

struct WriteOp {
  File* file = nullptr;
  uint64_t offset = 0;
  ByteView bytes;
};

enum class WriteKind { kPlain, kDurable, kFlush };

struct WriteBatch {
  uint64_t id = 0;
  WriteKind kind = WriteKind::kPlain;
  std::span<const WriteOp> writes;
};

struct Completion {
  uint64_t id = 0;
  Status status;
};

// Asynchronous writes. Completions come in any order, and are certain to come only while somebody
// is in WaitOne: a backend may leave work to the thread that waits.
// Threads: Submit from one thread at a time, WaitOne from one thread at a time, beside each other.
class WriteQueue {
 public:
  // Waits for what is in flight. What was not handed back by WaitOne may be written or not.
  virtual ~WriteQueue() = default;

  // Starts the batch. A short write is completed at the right offset before it counts.
  // Durable: kPlain not. kDurable its own ranges only, when it completes. kFlush names one file
  //          (one op without bytes) and covers the writes to it that had completed before Submit.
  // Owns:    borrows the bytes (not the span of ops) until the batch completes.
  // Errors:  kResourceExhausted kLimit  depth_max() batches are out; nothing was started
  //          kUnavailable               the queue itself failed, see WaitOne; may be written or not
  virtual Status Submit(const WriteBatch& batch) = 0;

  // The next completion. Blocks until there is one or `timeout` is over; a write that the waiting
  // thread carries out itself is not cut short.
  // Errors: kDeadlineExceeded  nothing completed in time
  //         kUnavailable       the queue itself failed: what is in flight will never be known
  virtual StatusOr<Completion> WaitOne(absl::Duration timeout) = 0;

  // How many batches may be out.
  virtual size_t depth_max() const = 0;
  // Whether batches that are out make progress side by side. False: one after the other, so that
  // few and big ones are better.
  virtual bool overlaps() const { return true; }
};

class Storage {
 public:
  virtual ~Storage() = default;

  virtual StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name, OpenMode mode,
                                                   FileUse use) = 0;
  StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name, OpenMode mode) {
    return OpenFile(name, mode, FileUse{});
  }
  // Names of the entries of a subdirectory ("" is the directory itself), without the folder,
  // sorted.
  virtual StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Makes a subdirectory; one that exists is fine.
  virtual Status MakeFolder(const std::string& folder) = 0;
  // Replaces `to`. Durable after SyncFolder of both folders.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& name) = 0;
  // Durable: every create, rename and remove in the folder completed before.
  virtual Status SyncFolder(const std::string& folder) = 0;
  virtual StatusOr<uint64_t> FreeBytes() = 0;
  // Queue for files of this storage. The files of its batches must outlive it.
  virtual StatusOr<std::unique_ptr<WriteQueue>> NewWriteQueue() = 0;

  // Changes with every boot of the operating system: the same value means that nothing written was
  // lost by the machine since. Empty if unknown.
  virtual std::string host_boot_id() = 0;
  // "io_uring", "posix", "simulated"; and why not another.
  virtual std::string backend() const = 0;
  virtual std::string backend_reason() const = 0;
  // For messages: the directory as the user gave it.
  virtual std::string display_path() const = 0;
};

}  // namespace holdfast
