// SegmentSet: the segments that a running journal writes: the active one, those made ahead of need,
// and those left behind whose bytes are not all synced yet.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "journal/base/status.h"
#include "journal/segment.h"
#include "journal/segment_ledger.h"

namespace holdfast {

// Threads: guarded by its owner; only Make() runs without the lock.
class SegmentSet {
 public:
  struct Options {
    uint64_t segment_bytes = 0;  // of new segments
    // Prepared segments that are kept for recovery, compaction and what else shrinks the state.
    size_t reserve = 3;
    size_t spares_max = 2;                                    // files kept to be used again
    absl::Duration retry_interval = absl::Milliseconds(100);  // after a full disk
  };
  // What is there already.
  struct Start {
    Segment active;
    uint64_t end = 0;                   // where the next group goes in `active`
    uint64_t life_counter = 0;          // lives used up by this boot
    std::vector<SealedSegment> sealed;  // the chain before `active`
    std::vector<SegmentId> spares;      // spare files of Options::segment_bytes, usable
  };
  SegmentSet(const Options& options, const StoreIdentity& identity, Start start);

  // --- The active segment ---
  const Segment& active() const { return *writing_.back(); }
  uint64_t end() const { return end_; }
  uint64_t room() const { return active().header.segment_bytes - end_; }
  // The next group goes behind these bytes.
  void Extend(uint64_t group_bytes);
  // The first segment made ahead becomes the active one; its Link comes first. `last`: the newest
  // record of the one before.
  // Needs: prepared() > 0
  void Rotate(Lsn last);
  // The open file of a segment that is still written or synced.
  // Needs: it is.
  File& FileOf(SegmentId segment) const;
  // Every segment below `segment` is synced to its end: their descriptors are let go.
  void ReleaseBelow(SegmentId segment);

  // --- The sealed segments, and their files ---
  const SegmentLedger& sealed() const { return sealed_; }
  // The oldest one left the chain; its file was removed, or renamed to the spare name.
  enum class Fate { kRemoved, kSpare };
  void OnRetired(Fate fate);
  // Whether the file of the oldest sealed one should be used again. Where the files take more than
  // they may (`over_limit`), at most every second: so writers go on, and the disk shrinks.
  bool WantsAsSpare(bool over_limit) const;
  // Files of every kind, those in the making not.
  uint64_t disk_bytes() const;

  // --- The next segments ---
  size_t prepared() const { return prepared_.size(); }
  size_t spares() const { return spares_.size(); }
  // More segments should be made ahead of need: one, and the reserve once the journal rotates or
  // soon will. After a full disk: from spare files at once, otherwise not before somebody needs one
  // and the interval is over.
  bool WantsNext(absl::Duration now) const;
  // What the files would take then, unless a spare one is used again.
  uint64_t disk_bytes_with_next() const { return disk_bytes() + options_.segment_bytes; }
  // Whether a file beyond the limit of space may have to be made: for compaction, which ends the
  // excess. Everybody else waits.
  bool lacks_for_compaction() const { return prepared_.size() < 2; }
  void OnNeeded() { needed_ = true; }
  bool needed() const { return needed_ && !shortage_.ok(); }
  // Errors: an attempt to make one ran into a full disk, and the reserve is not whole again
  const Status& shortage() const { return shortage_; }
  // The next segment to make: its header, and the spare file to make it of (none: a new one). Used
  // up by taking it.
  struct Plan {
    SegmentHeader header;
    SegmentId spare;
  };
  Plan TakeNext(absl::Time wall);
  // Makes the segment and gives it its name: zeros, header, sync, rename, sync of the folder.
  // Errors: kResourceExhausted  kDiskFull: nothing is left behind
  //         others              a write or sync failed
  static StatusOr<Segment> Make(Storage& storage, const Plan& plan);
  void OnMade(Segment segment);
  void OnShortage(Status full, absl::Duration now);
  // Something else needs the room of a segment made ahead more: the newest of them is none any
  // more, its file is to be removed, and no new one is tried before `retry_at`. None: too few.
  // Needs: none is being made
  SegmentId GiveUpPrepared(absl::Duration retry_at);

  // Whether a batch that adds state may still be taken: yes while it leaves the reserve alone, or
  // the reserve is about to be made.
  enum class Reserve {
    kWhole,    // yes
    kUnknown,  // wait for the attempt under way
    kShort,    // no: what is left is for what shrinks the state
  };
  // `rotating`: the batch would need the next segment.
  Reserve reserve(bool rotating) const;
  uint64_t made() const { return made_; }

 private:
  size_t wanted() const;

  const Options options_;
  const StoreIdentity identity_;
  std::deque<std::unique_ptr<Segment>> writing_;  // oldest first; the last is active
  std::deque<std::unique_ptr<Segment>> prepared_;
  SegmentLedger sealed_;
  std::deque<SegmentId> spares_;
  Fate last_fate_ = Fate::kRemoved;  // of a retired file
  uint64_t end_;
  uint64_t life_counter_;
  SegmentId last_id_;  // active or prepared, or being made
  bool rotated_ = false;
  uint64_t made_ = 0;
  bool needed_ = false;  // since the last attempt
  Status shortage_;
  bool failed_ = false;  // the last attempt
  absl::Duration retry_at_ = -absl::InfiniteDuration();
};

}  // namespace holdfast
