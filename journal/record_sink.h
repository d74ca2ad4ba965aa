// RecordSink: what the stores see of the journal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "holdfast/commit.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/batch_draft.h"
#include "journal/format/record_ref.h"
#include "journal/record_block.h"

namespace holdfast {

// What a batch is for, when space is short: puts are refused first.
enum class Claim {
  kGrow,     // adds state (a put): refused while the reserve is not whole
  kShrink,   // ends state or moves it on (a remove, an offset): may use one segment of it
  kReclaim,  // states again what is alive, so that a segment can go: may use one more
};

// A mutation, made by its own thread or by one that holds the sequencer already, is: encode (no
// lock) → take the sequencer → Reserve → judge against the state →
// Append → release → answer with a Commit. Between Reserve and Append nothing may release the
// sequencer.
class RecordSink : public CommitSource {
 public:
  explicit RecordSink(Mutex& sequencer) : sequencer_(sequencer) {}

  Mutex& sequencer() const ABSL_LOCK_RETURNED(sequencer_) { return sequencer_; }

  // Makes sure that a batch of up to `batch_bytes` can be appended next: may write a group out,
  // wait for the disk or for the next segment, releasing the sequencer meanwhile.
  // Errors: kResourceExhausted  no room (kDiskFull), or the batch is over the limit (kLimit);
  //                             nothing was written
  //         kUnavailable        poisoned
  //         kFailedPrecondition kClosed, kReadOnly
  virtual Status Reserve(uint64_t batch_bytes, Claim claim)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) = 0;

  // True: Reserve answers at once, and does not release the sequencer meanwhile.
  virtual bool HasRoom(uint64_t batch_bytes, Claim claim) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) = 0;

  // Numbers the records of `draft`, applies each to its state machine, and puts the batch into the
  // open group. Cannot fail. Returns the LSN of the first record.
  // Needs: a Reserve for at least that many bytes just before; 1 .. 65,535 records.
  virtual Lsn Append(const BatchDraft& draft) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) = 0;

  // The newest record; none: nothing was ever appended. Where it is still the same, so is the state
  // of every store.
  virtual Lsn appended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) = 0;

  // Starts what Append left to do (writing a group if the device is free). Call after the sequencer
  // was released, once per mutation.
  virtual void Kick() ABSL_LOCKS_EXCLUDED(sequencer_) = 0;

  // The record with number `lsn` in the batch at `ref`, as it stands there (header and fields),
  // checked against the batch's checksum and for its LSN; from memory as long as it is there.
  // Errors: kDataLoss     the bytes fail a check
  //         kUnavailable  kIo: the read failed; try again
  virtual StatusOr<std::string> ReadRecord(const RecordRef& ref, Lsn lsn)
      ABSL_LOCKS_EXCLUDED(sequencer_) = 0;

  // The same for many: adds answers to `records` in the order of `places`. Those that follow each
  // other closely share a read, so give them in order of place.
  struct Place {
    RecordRef ref;
    Lsn lsn;
  };
  virtual void ReadRecords(std::span<const Place> places, RecordBlock& records)
      ABSL_LOCKS_EXCLUDED(sequencer_) {
    for (const Place& place : places) {
      const StatusOr<std::string> record = ReadRecord(place.ref, place.lsn);
      if (record.ok()) {
        records.Add(AsBytes(*record));
      } else {
        records.AddFailure(record.status());
      }
    }
  }
  // Whether it pays to read in a thread of its own while what was read before is used. False until
  // something was read; false for ever where the order of reads follows from a seed.
  virtual bool reads_ahead() const { return false; }

  // True once a write or a sync has failed: from then on only what was Reached() may be shown.
  virtual bool poisoned() const = 0;

  // A Commit for `lsn`.
  Commit CommitAt(Lsn lsn, bool changed) { return Commit(this, lsn.value(), changed); }

 protected:
  Mutex& sequencer_;  // Borrowed; guards the order of records and the state of every store.
};

}  // namespace holdfast
