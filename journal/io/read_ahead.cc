#include "journal/io/read_ahead.h"

#include <algorithm>
#include <system_error>

#include "journal/base/check.h"

namespace holdfast {

ReadAhead::ReadAhead(const Options& options) : options_(options), pieces_(options.pieces) {
  CHECK(IsAligned(options_.piece_bytes, kIoAlignment));
  CHECK(options_.piece_bytes > 0);
  CHECK(options_.pieces >= 2);
}

ReadAhead::~ReadAhead() {
  Close();
  {
    MutexLock lock(mu_);
    ending_ = true;
    work_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ReadAhead::Open(File& file, uint64_t end) {
  Close();
  MutexLock lock(mu_);
  file_ = &file;
  end_ = end;
}

void ReadAhead::Close() {
  MutexLock lock(mu_);
  AwaitReads();
  file_ = nullptr;
}

StatusOr<ReadAhead::Bytes> ReadAhead::At(uint64_t offset, uint64_t length) {
  CHECK(length <= span_bytes_max());
  MutexLock lock(mu_);
  CHECK(file_ != nullptr);
  if (offset >= end_ || length == 0) return Bytes();
  length = std::min(length, end_ - offset);
  if (!begun_ || offset < Begin(first_) || offset >= Begin(next_)) BeginAt(offset);
  const uint64_t before = first_;
  first_ = (offset - begin_) / options_.piece_bytes;
  for (uint64_t freed = before; freed < first_; ++freed) work_.NotifyOne();

  uint64_t stands = 0;  // of the bytes asked for, counted from `offset`
  const uint64_t last = (offset + length - 1 - begin_) / options_.piece_bytes;
  for (uint64_t index = first_; index <= last; ++index) {
    const StatusOr<size_t> got = Land(index).got;
    if (!got.ok()) {
      AwaitReads();
      return got.status();
    }
    const uint64_t behind = Begin(index) + *got;
    stands = behind > offset ? std::min(length, behind - offset) : 0;
    if (*got < options_.piece_bytes) break;
  }
  const uint64_t at = (offset - begin_) % ring_.size();
  const uint64_t head = std::min(stands, ring_.size() - at);
  return Bytes{ring_.view().subspan(at, head), ring_.view().first(stands - head)};
}

uint64_t ReadAhead::bytes_read() const {
  MutexLock lock(mu_);
  return bytes_read_;
}

void ReadAhead::BeginAt(uint64_t offset) {
  AwaitReads();
  if (ring_.size() == 0) ring_ = AlignedBuffer(options_.piece_bytes * options_.pieces);
  begin_ = AlignDown(offset, kIoAlignment);
  first_ = next_ = 0;
  begun_ = true;
  // What one read brings needs no thread.
  if (end_ - begin_ > options_.piece_bytes) StartThreads();
  work_.NotifyAll();
}

void ReadAhead::AwaitReads() {
  begun_ = false;
  while (reading_ > 0) landed_.Wait(mu_);
  for (Piece& piece : pieces_) piece = Piece();
}

bool ReadAhead::CanRead() const {
  return begun_ && next_ < first_ + options_.pieces && Begin(next_) < end_ &&
         pieces_[next_ % options_.pieces].state != PieceState::kReading;
}

void ReadAhead::ReadNext() {
  const uint64_t index = next_++;
  Piece& piece = PieceOf(index);
  piece = {.index = index, .state = PieceState::kReading, .got = size_t{0}};
  ++reading_;
  File& file = *file_;
  const uint64_t offset = Begin(index);
  const uint64_t bytes = std::min(options_.piece_bytes, AlignUp(end_ - offset, kIoAlignment));
  const ByteSpan place =
      ring_.span().subspan(index % options_.pieces * options_.piece_bytes, bytes);
  mu_.Unlock();
  StatusOr<size_t> got = file.ReadAt(offset, place);
  mu_.Lock();
  bytes_read_ += got.ok() ? *got : 0;
  piece.got = std::move(got);
  piece.state = PieceState::kLanded;
  --reading_;
  landed_.NotifyAll();
}

ReadAhead::Piece& ReadAhead::Land(uint64_t index) {
  Piece& piece = PieceOf(index);
  while (piece.state != PieceState::kLanded || piece.index != index) {
    if (next_ <= index && CanRead()) {
      ReadNext();
    } else {
      landed_.Wait(mu_);
    }
  }
  return piece;
}

void ReadAhead::StartThreads() {
  while (threads_.size() < options_.threads) {
    try {
      threads_.emplace_back([this] { Loop(); });
    } catch (const std::system_error&) {
      return;  // No more threads to be had: whoever asks reads.
    }
  }
}

void ReadAhead::Loop() {
  MutexLock lock(mu_);
  while (!ending_) {
    if (CanRead()) {
      ReadNext();
    } else {
      work_.Wait(mu_);
    }
  }
}

}  // namespace holdfast
