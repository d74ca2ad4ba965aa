// SegmentSet: the segments that a running journal writes: the active one, those made ahead of need,
// and those left behind whose bytes are not all synced yet.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "journal/base/status.h"
#include "journal/segment.h"

namespace holdfast {

// Threads: guarded by its owner; only Make() runs without the lock.
class SegmentSet {
 public:
  struct Options {
    uint64_t segment_bytes = 0;                               // of new segments
    absl::Duration retry_interval = absl::Milliseconds(100);  // after a full disk
  };
  // `end` = where the next group goes in `active`; `life_counter` = lives used up by this boot.
  SegmentSet(const Options& options, const StoreIdentity& identity, Segment active, uint64_t end,
             uint64_t life_counter);

  // --- The active segment ---
  const Segment& active() const { return *writing_.back(); }
  uint64_t end() const { return end_; }
  uint64_t room() const { return active().header.segment_bytes - end_; }
  // The next group goes behind these bytes.
  void Extend(uint64_t group_bytes);
  // The first segment made ahead becomes the active one; its Link comes first.
  // Needs: prepared() > 0
  void Rotate();
  // The open file of a segment that is still written or synced.
  // Needs: it is.
  File& FileOf(SegmentId segment) const;
  // Every segment below `segment` is synced to its end: their descriptors are let go.
  void ReleaseBelow(SegmentId segment);

  // --- The next segments ---
  size_t prepared() const { return prepared_.size(); }
  // More segments should be made ahead of need. After a full disk: not before somebody needs one
  // and the interval is over.
  bool WantsNext(absl::Duration now) const;
  void OnNeeded() { needed_ = true; }
  bool needed() const { return needed_ && !shortage_.ok(); }
  // Errors: the last attempt to make one ran into a full disk
  const Status& shortage() const { return shortage_; }
  // The header of the next segment to make: used up by taking it.
  SegmentHeader TakeNextHeader(absl::Time wall);
  // Makes the segment and gives it its name: zeros, header, sync, rename, sync of the folder.
  // Errors: kResourceExhausted  kDiskFull: nothing is left behind
  //         others              a write or sync failed
  static StatusOr<Segment> Make(Storage& storage, const SegmentHeader& header);
  void OnMade(Segment segment);
  void OnShortage(Status full, absl::Duration now);

  // Whether a batch that adds state may still be taken: yes while more room is prepared, or may
  // come.
  enum class Reserve {
    kWhole,    // yes
    kUnknown,  // wait for the attempt under way
    kShort,    // no: what is left is for what shrinks the state
  };
  // `rotating`: the batch would need the next segment.
  Reserve reserve(bool rotating) const;
  uint64_t made() const { return made_; }

 private:
  const Options options_;
  const StoreIdentity identity_;
  std::deque<std::unique_ptr<Segment>> writing_;  // oldest first; the last is active
  std::deque<std::unique_ptr<Segment>> prepared_;
  uint64_t end_;
  uint64_t life_counter_;
  SegmentId last_id_;  // active or prepared, or being made
  bool rotated_ = false;
  uint64_t made_ = 0;
  bool needed_ = false;  // since the last attempt
  Status shortage_;
  absl::Duration retry_at_ = -absl::InfiniteDuration();
};

}  // namespace holdfast
