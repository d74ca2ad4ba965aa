// Compactor: states the live records of one sealed segment again, by ordinary appends with new
// numbers, so that nobody needs the segment any more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "journal/base/status.h"
#include "journal/journal_reader.h"
#include "journal/record_sink.h"
#include "journal/segment_ledger.h"
#include "journal/state_machine.h"

namespace holdfast {

// A copy is made by compare-and-append: under one hold of the sequencer a record is asked for (does
// the state still rests on it?) and stated again, so a copy never lands behind its own tombstone.
// Threads: one at a time.
class Compactor {
 public:
  struct Counts {
    uint64_t read_bytes = 0;
    uint64_t restated_records = 0;
    uint64_t restated_bytes = 0;
  };

  // All borrowed. `salt` is the store's. A batch gets no more than `batch_bytes_max`, unless a
  // single record is larger.
  Compactor(Storage& storage, RecordSink& sink, const StateMachines& machines, uint64_t salt,
            uint64_t batch_bytes_max);

  // Turns to `segment`, from its first record.
  // Errors: kDataLoss     its first two blocks fail their checks
  //         kUnavailable  a read failed
  Status Begin(const SealedSegment& segment);
  // Leaves the segment where it is: it is about to go. Nothing happens if there is none.
  void Stop() { reader_.reset(); }
  bool active() const { return reader_ != nullptr; }
  SegmentId segment() const { return segment_.segment; }

  // Reads on for about `piece_bytes` and states again what is live in them. False: that was the
  // end of the segment.
  // Errors: kDataLoss           damage; what stands behind it was not looked at
  //         kResourceExhausted  kDiskFull: not even the reserve has room; kLimit: a record that is
  //                             larger than what this journal takes
  //         kUnavailable        a read failed, or the journal is poisoned
  StatusOr<bool> Step(uint64_t piece_bytes) ABSL_LOCKS_EXCLUDED(sink_.sequencer());

  // Since it was made.
  const Counts& counts() const { return counts_; }

 private:
  struct Candidate {
    Lsn lsn;
    size_t begin = 0, end = 0;  // in bytes_, header and fields
  };

  StatusOr<bool> ReadPiece(uint64_t piece_bytes);
  Status RestatePiece();
  size_t Fill(size_t from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sink_.sequencer());

  Storage& storage_;
  RecordSink& sink_;
  const StateMachines& machines_;
  const uint64_t salt_;
  const uint64_t batch_bytes_max_;
  SealedSegment segment_;
  std::vector<ChainSegment> chain_;  // the one segment; borrowed by reader_
  std::unique_ptr<JournalReader> reader_;
  uint64_t counted_bytes_ = 0;  // of reader_, in counts_ already
  std::string bytes_;
  std::vector<Candidate> candidates_;
  BatchDraft draft_;
  Counts counts_;
};

}  // namespace holdfast
