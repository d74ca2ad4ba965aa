// ShortIoStorage moves one block per call: reads and writes are cut into pieces that the storage
// below meets, orders, tears and fails one at a time.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "tests/support/forwarding_storage.h"

namespace holdfast {

class ShortIoFile final : public ForwardingFile {
 public:
  ShortIoFile(std::unique_ptr<File> inner, size_t block_bytes)
      : ForwardingFile(std::move(inner)), block_bytes_(block_bytes) {}

  StatusOr<size_t> ReadAt(uint64_t offset, ByteSpan buffer) override {
    size_t done = 0;
    while (done < buffer.size()) {
      const size_t want = std::min(block_bytes_, buffer.size() - done);
      ASSIGN_OR_RETURN(const size_t got,
                       ForwardingFile::ReadAt(offset + done, buffer.subspan(done, want)));
      done += got;
      if (got < want) break;
    }
    return done;
  }

  Status WriteAt(uint64_t offset, ByteView bytes) override {
    for (size_t done = 0; done < bytes.size(); done += block_bytes_) {
      RETURN_IF_ERROR(ForwardingFile::WriteAt(
          offset + done, bytes.subspan(done, std::min(block_bytes_, bytes.size() - done))));
    }
    return absl::OkStatus();
  }

 private:
  const size_t block_bytes_;
};

// Threads: one. The batch is told as complete when its last piece is, with the first error of any.
class ShortIoQueue final : public ForwardingQueue {
 public:
  ShortIoQueue(std::unique_ptr<WriteQueue> inner, size_t block_bytes)
      : ForwardingQueue(std::move(inner)), block_bytes_(block_bytes) {}
  ~ShortIoQueue() override {
    while (!outstanding_.empty() && WaitOne(absl::ZeroDuration()).ok()) {
    }
  }

  Status Submit(const WriteBatch& batch) override {
    if (outstanding_.size() >= depth_max()) {
      return Exhausted(Detail::kLimit, "{} batches are out", outstanding_.size());
    }
    Outstanding& out = outstanding_[batch.id];
    for (const WriteOp& op : batch.writes) {
      size_t done = 0;
      do {
        WriteOp piece = op;
        piece.offset += done;
        piece.bytes = op.bytes.subspan(done, std::min(block_bytes_, op.bytes.size() - done));
        backlog_.push_back({batch.id, batch.kind, piece});
        ++out.pieces;
        done += block_bytes_;
      } while (done < op.bytes.size());
    }
    return Pump();
  }

  StatusOr<Completion> WaitOne(absl::Duration timeout) override {
    while (true) {
      RETURN_IF_ERROR(Pump());
      ASSIGN_OR_RETURN(const Completion piece, ForwardingQueue::WaitOne(timeout));
      const auto owner = owners_.find(piece.id);
      CHECK(owner != owners_.end());
      const uint64_t id = owner->second;
      owners_.erase(owner);
      Outstanding& out = outstanding_.at(id);
      out.status.Update(piece.status);
      if (--out.pieces > 0) continue;
      Completion done{id, out.status};
      outstanding_.erase(id);
      return done;
    }
  }

  size_t depth_max() const override {
    return std::max<size_t>(1, ForwardingQueue::depth_max() / 4);
  }

 private:
  struct Outstanding {
    size_t pieces = 0;
    Status status;
  };
  struct Piece {
    uint64_t batch = 0;
    WriteKind kind = WriteKind::kPlain;
    WriteOp op;
  };

  Status Pump() {
    while (!backlog_.empty() && owners_.size() < ForwardingQueue::depth_max()) {
      const Piece& piece = backlog_.front();
      const uint64_t id = ++piece_last_;
      const Status status = ForwardingQueue::Submit({id, piece.kind, {&piece.op, 1}});
      if (!status.ok()) return status;
      owners_[id] = piece.batch;
      backlog_.pop_front();
    }
    return absl::OkStatus();
  }

  const size_t block_bytes_;
  uint64_t piece_last_ = 0;
  std::deque<Piece> backlog_;
  std::map<uint64_t, uint64_t> owners_;  // piece to batch
  std::map<uint64_t, Outstanding> outstanding_;
};

class ShortIoStorage final : public ForwardingStorage {
 public:
  ShortIoStorage(Storage& inner, size_t block_bytes)
      : ForwardingStorage(inner), block_bytes_(block_bytes) {}

 protected:
  std::unique_ptr<File> Wrap(std::unique_ptr<File> file) override {
    return std::make_unique<ShortIoFile>(std::move(file), block_bytes_);
  }
  std::unique_ptr<WriteQueue> WrapQueue(std::unique_ptr<WriteQueue> queue) override {
    return std::make_unique<ShortIoQueue>(std::move(queue), block_bytes_);
  }

 private:
  const size_t block_bytes_;
};

}  // namespace holdfast
