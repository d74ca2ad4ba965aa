// RecordReader: records read back from the segments, each checked before it is shown.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/frame.h"
#include "journal/format/record_ref.h"
#include "journal/io/aligned_buffer.h"
#include "journal/io/read_ahead.h"
#include "journal/io/storage.h"
#include "journal/record_block.h"
#include "journal/record_sink.h"

namespace holdfast {

// Keeps the descriptors of the segments read last, at most `files_max`; from the first visit of
// many records on, also a ring of 4 MiB and the threads that read ahead into it.
// Threads: any.
class RecordReader {
 public:
  // `salt` is the store's: what a segment's redundant header says is not needed to read its
  // batches.
  RecordReader(Storage& storage, uint64_t salt, size_t files_max)
      : storage_(storage), salt_(salt), files_max_(files_max) {}

  // The record `lsn` of the batch at `ref`: header and fields. Every check bears the life of the
  // segment, so what passes is of that life, whoever removes or reuses the file meanwhile; where
  // one fails, name and life are looked at again before it is called damage.
  // Errors: kDataLoss     the batch fails a check, or does not hold the record
  //         kUnavailable  kIo: it could not be read, or its segment is gone: ask for the place
  //                       again
  StatusOr<std::string> Read(const RecordRef& ref, Lsn lsn) ABSL_LOCKS_EXCLUDED(mu_);
  // The same for many, in the order of `places`; neighbours there that are neighbours on disk too
  // share a read of at most kWindowBytes (or one batch).
  // They are added to `records`.
  void ReadMany(std::span<const RecordSink::Place> places, RecordBlock& records)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Whether a file said that several reads at a time pay.
  bool reads_ahead() const { return reads_ahead_.load(std::memory_order_relaxed); }

  // Segments below are no part of the store any more: their descriptors are let go, now or when the
  // last read under way is done.
  void ForgetBelow(SegmentId segment) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr uint64_t kWindowBytes = uint64_t{1} << 20;
  // Buffers of this size are used again; one is kept.
  static constexpr uint64_t kKeptBytesMin = uint64_t{64} << 10;
  static constexpr uint64_t kKeptBytesMax = 2 * kWindowBytes;
  // Reads of many records of this size are likely to go on behind their end.
  static constexpr uint64_t kStreamBytesMin = uint64_t{128} << 10;
  static constexpr uint64_t kGapBytesMax = uint64_t{32} << 10;  // read rather than skipped

  struct Source {
    std::unique_ptr<File> file;
    Life life;
  };
  // Shared by the cache and the reads under way; whichever goes last closes the file.
  using SharedSource = std::shared_ptr<Source>;
  struct Entry {
    uint32_t segment = 0;
    SharedSource source;
  };

  // Reads what all of `places` need with one call, and adds their records to `records`.
  void ReadWindow(std::span<const RecordSink::Place> places, RecordBlock& records)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The same, of one file.
  void ReadFrom(const StatusOr<SharedSource>& source, std::span<const RecordSink::Place> places,
                RecordBlock& records);
  // What stands under the segment's name now. What was read before is forgotten unless it is that.
  enum class Presence { kSame, kOther, kGone };
  Presence LookAgain(uint32_t segment, const Source& source) ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(uint32_t segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StatusOr<SharedSource> Find(uint32_t segment) ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<SharedSource> Open(uint32_t segment);

  // Reads `bytes` from `offset` on in the stream and adds the records; false, with none added, if
  // somebody else is in it or not all of them are whole.
  bool TryStream(const SharedSource& source, uint64_t offset, uint64_t bytes,
                 std::span<const RecordSink::Place> places,
                 RecordBlock& records) ABSL_LOCKS_EXCLUDED(mu_, stream_mu_);
  Status ReadStream(const SharedSource& source, uint64_t offset, uint64_t bytes,
                    std::span<const RecordSink::Place> places, RecordBlock& records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stream_mu_);
  void CloseStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(stream_mu_);
  // At least so large. A large one goes back by KeepBuffer, to be used again.
  StatusOr<AlignedBuffer> TakeBuffer(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void KeepBuffer(AlignedBuffer buffer) ABSL_LOCKS_EXCLUDED(mu_);

  Storage& storage_;  // Borrowed; outlives this object.
  const uint64_t salt_;
  const size_t files_max_;
  std::atomic<bool> reads_ahead_ = false;
  Mutex mu_;                                    // Never held across a read.
  std::list<Entry> used_ ABSL_GUARDED_BY(mu_);  // the one used last comes first
  std::unordered_map<uint32_t, std::list<Entry>::iterator> places_ ABSL_GUARDED_BY(mu_);
  uint32_t oldest_ ABSL_GUARDED_BY(mu_) = 0;  // none below is kept
  AlignedBuffer kept_ ABSL_GUARDED_BY(mu_);

  // A visit of everything reads whole segments from front to back: one at a time is read ahead, and
  // stays open until another one is or it is forgotten.
  Mutex stream_mu_;  // Held across a read: who cannot have it at once reads without. Before mu_.
  SharedSource stream_source_ ABSL_GUARDED_BY(stream_mu_);
  std::unique_ptr<ReadAhead> stream_ ABSL_GUARDED_BY(stream_mu_);
};

}  // namespace holdfast
