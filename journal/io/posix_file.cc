#include "journal/io/posix_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "journal/io/errno_status.h"
#include "journal/io/file_size_signal.h"

namespace holdfast {
namespace {

// Large enough to stream, small enough to allocate for a call.
constexpr uint64_t kBounceBytesMax = uint64_t{256} << 10;
constexpr uint64_t kZeroBytes = uint64_t{1} << 20;

// How often a call that made no progress is made again before it counts as failed.
constexpr int kIoRetriesMax = 100;
// The kernel takes a little less than 2 GiB at a time.
constexpr size_t kRequestBytesMax = size_t{1} << 30;

// Failures that say "again", not "no".
bool IsRetriable(int64_t error) {
  return error == EINTR || error == EAGAIN || error == EBUSY || error == ECANCELED;
}

bool IsAlignedIo(uint64_t offset, const std::byte* data, size_t size) {
  return IsAligned(offset, kIoAlignment) && IsAligned(size, kIoAlignment) &&
         IsAligned(reinterpret_cast<uintptr_t>(data), kIoAlignment);
}

uint64_t BounceBytes(uint64_t offset, size_t size) {
  return std::min(kBounceBytesMax, AlignUp(offset % kIoAlignment + size, kIoAlignment));
}

}  // namespace

void DirectRefusal::Tell(const std::string& path, int error) {
  std::string reason;
  {
    MutexLock lock(mu_);
    if (!reason_.empty()) return;
    reason_ = fmt::format("direct I/O refused ({}): buffered writes with fdatasync",
                          std::generic_category().message(error));
    reason = reason_;
  }
  if (log_ != nullptr) log_->Log(LogLevel::kWarning, fmt::format("{}: {}", path, reason));
}

std::string DirectRefusal::reason() {
  MutexLock lock(mu_);
  return reason_;
}

PosixFile::PosixFile(int fd, Options options, std::shared_ptr<DirectRefusal> refusal)
    : fd_(fd),
      options_(std::move(options)),
      refusal_(std::move(refusal)),
      direct_(options_.direct) {
  CHECK(fd_ >= 0);
}

PosixFile::~PosixFile() { close(fd_); }

Status PosixFile::Failed(int error, std::string_view action) const {
  return ErrnoStatus(error, options_.path, action);
}

void PosixFile::DropDirect() {
  if (!direct_.exchange(false)) return;
  const int flags = fcntl(fd_, F_GETFL);
  // Should this fail, the same EINVAL comes back from the next call and is an error then.
  if (flags >= 0) fcntl(fd_, F_SETFL, flags & ~O_DIRECT);
  refusal_->Tell(options_.path, EINVAL);
}

StatusOr<size_t> PosixFile::ReadAt(uint64_t offset, ByteSpan buffer) {
  AlignedBuffer bounce;
  size_t done = 0;
  while (done < buffer.size()) {
    const uint64_t at = offset + done;
    const ByteSpan rest = buffer.subspan(done);
    const bool bounced = direct() && !IsAlignedIo(at, rest.data(), rest.size());
    if (bounced && bounce.size() == 0) {
      ASSIGN_OR_RETURN(bounce, AlignedBuffer::Make(BounceBytes(at, rest.size())));
    }
    ASSIGN_OR_RETURN(const size_t got,
                     bounced ? ReadThroughBounce(at, rest, bounce) : ReadSome(at, rest));
    if (got == 0) break;
    done += got;
  }
  return done;
}

// One successful system call's worth; 0 at the end of the file.
StatusOr<size_t> PosixFile::ReadSome(uint64_t offset, ByteSpan buffer) {
  for (int retries = 0;;) {
    const bool was_direct = direct();
    const ssize_t got = pread(fd_, buffer.data(), buffer.size(), Narrow<off_t>(offset));
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EINVAL && was_direct) {
      DropDirect();
      continue;
    }
    if (!IsRetriable(errno) || ++retries > kIoRetriesMax) {
      return Failed(errno, fmt::format("read of {} bytes at offset {}", buffer.size(), offset));
    }
  }
}

StatusOr<size_t> PosixFile::ReadThroughBounce(uint64_t offset, ByteSpan buffer,
                                              AlignedBuffer& bounce) {
  const uint64_t start = AlignDown(offset, kIoAlignment);
  const size_t skip = static_cast<size_t>(offset - start);
  const size_t want = std::min<size_t>(bounce.size(), AlignUp(skip + buffer.size(), kIoAlignment));
  ASSIGN_OR_RETURN(const size_t got, ReadSome(start, bounce.span().first(want)));
  if (got <= skip) return size_t{0};
  const size_t usable = std::min(got - skip, buffer.size());
  std::memcpy(buffer.data(), bounce.data() + skip, usable);
  return usable;
}

Status PosixFile::RefuseIfNotWritable() const {
  if (options_.writable) return absl::OkStatus();
  return WrongState(Detail::kReadOnly, "{}: opened for reading only", options_.path);
}

Status PosixFile::WriteAt(uint64_t offset, ByteView bytes) {
  RETURN_IF_ERROR(RefuseIfNotWritable());
  if (direct() && !IsAlignedIo(offset, bytes.data(), bytes.size())) {
    return WriteThroughBounce(offset, bytes);
  }
  return WriteAligned(offset, bytes);
}

Status PosixFile::WriteAligned(uint64_t offset, ByteView bytes) {
  const FileSizeSignalBlock no_signal;
  WriteProgress progress(*this, offset, bytes);
  while (!progress.done()) {
    const WriteProgress::Request next = progress.Next();
    const ssize_t wrote =
        pwrite(fd_, next.bytes.data(), next.bytes.size(), Narrow<off_t>(next.offset));
    RETURN_IF_ERROR(progress.Advance(wrote < 0 ? -errno : wrote));
  }
  return absl::OkStatus();
}

WriteProgress::Request WriteProgress::Next() {
  CHECK(!done());
  sent_direct_ = file_->direct();
  const ByteView rest = bytes_.subspan(done_);
  return {offset_ + done_, rest.first(std::min(rest.size(), kRequestBytesMax))};
}

Status WriteProgress::Advance(int64_t result) {
  if (result == -EINVAL && sent_direct_) {
    file_->DropDirect();
    return absl::OkStatus();
  }
  if (result < 0 && !IsRetriable(-result)) {
    return file_->Failed(static_cast<int>(-result),
                         fmt::format("write of {} bytes at offset {}", bytes_.size(), offset_));
  }
  size_t progress = result < 0 ? 0 : static_cast<size_t>(result);
  CHECK(progress <= bytes_.size() - done_);
  // What follows a short direct write must start at a block again: a block that is half there is
  // written once more.
  if (sent_direct_ && done_ + progress < bytes_.size()) {
    progress = AlignDown(progress, kIoAlignment);
  }
  done_ += progress;
  retries_ = progress == 0 ? retries_ + 1 : 0;
  if (retries_ <= kIoRetriesMax) return absl::OkStatus();
  return file_->Failed(result < 0 ? static_cast<int>(-result) : EIO,
                       fmt::format("write of {} bytes at offset {} stays at {} after {} tries",
                                   bytes_.size(), offset_, done_, retries_));
}

// Reads the blocks at both ends, so that what stands beside `bytes` stays; whole blocks written
// behind the end of the file are cut off again.
Status PosixFile::WriteThroughBounce(uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t size_before, Size());
  ASSIGN_OR_RETURN(AlignedBuffer bounce, AlignedBuffer::Make(BounceBytes(offset, bytes.size())));
  const uint64_t end = offset + bytes.size();
  for (uint64_t at = offset; at < end;) {
    const uint64_t start = AlignDown(at, kIoAlignment);
    const uint64_t stop = std::min(end, start + bounce.size());
    const uint64_t stop_block = AlignUp(stop, kIoAlignment);
    const ByteSpan blocks = bounce.span().first(static_cast<size_t>(stop_block - start));
    std::fill(blocks.begin(), blocks.end(), std::byte{0});
    if (at != start) {
      RETURN_IF_ERROR(ReadAt(start, blocks.first(kIoAlignment)).status());
    }
    if (stop != stop_block && (at == start || blocks.size() > kIoAlignment)) {
      RETURN_IF_ERROR(
          ReadAt(stop_block - kIoAlignment, blocks.last(static_cast<size_t>(kIoAlignment)))
              .status());
    }
    std::memcpy(blocks.data() + (at - start), bytes.data() + (at - offset),
                static_cast<size_t>(stop - at));
    RETURN_IF_ERROR(WriteAligned(start, blocks));
    at = stop;
  }
  const uint64_t size_wanted = std::max(size_before, end);
  if (AlignUp(end, kIoAlignment) > size_wanted) return Truncate(size_wanted);
  return absl::OkStatus();
}

// A failed sync is never tried again: the kernel may have dropped the pages it failed on.
Status PosixFile::SyncData() {
  if (fdatasync(fd_) != 0) return Failed(errno, "fdatasync");
  return absl::OkStatus();
}

Status PosixFile::WriteZeros(uint64_t bytes) {
  RETURN_IF_ERROR(RefuseIfNotWritable());
  RETURN_IF_ERROR(ReserveBlocks(bytes));
  ASSIGN_OR_RETURN(const AlignedBuffer zeros, AlignedBuffer::Make(std::min(bytes, kZeroBytes)));
  for (uint64_t offset = 0; offset < bytes;) {
    const uint64_t count = std::min(bytes - offset, zeros.size());
    RETURN_IF_ERROR(WriteAt(offset, zeros.view().first(static_cast<size_t>(count))));
    offset += count;
  }
  return absl::OkStatus();
}

// Asks for the space as one piece, and learns of a full disk before anything is written. The size
// stays, so it tells how far zeros were really written. A file system that cannot do it just
// writes.
Status PosixFile::ReserveBlocks(uint64_t bytes) {
  const FileSizeSignalBlock no_signal;
  if (fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, Narrow<off_t>(bytes)) == 0) return absl::OkStatus();
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
    return Failed(errno, fmt::format("reserving {} bytes", bytes));
  }
  return absl::OkStatus();
}

Status PosixFile::Truncate(uint64_t bytes) {
  RETURN_IF_ERROR(RefuseIfNotWritable());
  const FileSizeSignalBlock no_signal;
  while (ftruncate(fd_, Narrow<off_t>(bytes)) != 0) {
    if (errno != EINTR) return Failed(errno, fmt::format("setting its size to {} bytes", bytes));
  }
  return absl::OkStatus();
}

StatusOr<uint64_t> PosixFile::Size() {
  struct stat info{};
  if (fstat(fd_, &info) != 0) return Failed(errno, "reading its size");
  return static_cast<uint64_t>(info.st_size);
}

Status PosixFile::TryLock() {
  while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return WrongState(
          Detail::kLocked,
          "{}: locked by another process, or writes of a killed one are still in flight",
          options_.path);
    }
    if (errno != EINTR) return Failed(errno, "lock");
  }
  return absl::OkStatus();
}

}  // namespace holdfast
