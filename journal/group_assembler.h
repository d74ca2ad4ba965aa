// GroupAssembler: where batches go. The open group, the closed ones, the memory of both, and the
// turn to the next segment.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "journal/commit_queue.h"
#include "journal/group_buffer.h"
#include "journal/io/aligned_buffer.h"
#include "journal/segment_set.h"

namespace holdfast {

// Group numbers are those of CommitQueue: one is used up by each Close and each PushLink.
// Groups lie one behind the other in a ring, and are found there by readers until the ring comes
// round: what was appended last costs no read.
// Threads: guarded by its owner.
class GroupAssembler {
 public:
  // `group_bytes_max` is a multiple of 4 KiB. A single batch may make a larger group.
  GroupAssembler(SegmentSet& segments, uint64_t group_bytes_max);

  // Whether the open group takes a batch of that many bytes.
  bool Fits(uint64_t batch_bytes) const { return open_ != nullptr && open_->Fits(batch_bytes); }
  bool has_batches() const { return open_ != nullptr && !open_->empty(); }
  // Whether an empty group for such a batch fits into the active segment. Needs: !has_batches()
  bool HasPlace(uint64_t batch_bytes) const;
  // Opens a group at the segment's end. Needs: HasPlace, !has_batches()
  void Open(uint64_t batch_bytes);
  // Needs: Fits
  RecordRef Add(const BatchDraft& draft, Lsn first) { return open_->Add(draft, first); }
  uint64_t open_bytes() const { return open_->length(); }
  // The open group takes no more. Needs: has_batches()
  void Close();
  // The next segment becomes active, `link` its first group. Needs: !has_batches(), prepared
  // segments
  void PushLink(Link link, const GroupHeader& header);

  // A group that is closed and not written yet.
  GroupBuffer& Outgoing(GroupNumber number) { return *closed_[number - closed_first_].group; }
  size_t outgoing_count() const { return outgoing_count_; }
  // Its memory may be used again.
  void OnWritten(GroupNumber number);

  // The record, if its group is still in memory. One that is not written yet is.
  std::optional<std::string> Find(const RecordRef& ref, Lsn lsn) const;
  // No batch at a lower place (segment << 32 | offset) is in memory.
  uint64_t kept_from() const;

 private:
  struct Closed {
    std::unique_ptr<GroupBuffer> group;
    bool written = false;
  };
  std::unique_ptr<GroupBuffer> TakeBuffer(uint64_t bytes);
  // Where the group begins in the ring; none: its memory is its own, or was.
  std::optional<uint64_t> RingPlaceOf(const GroupBuffer& group) const;
  // Gives up the oldest groups, as far as they lie between these places of the ring. False: one of
  // them is not written.
  bool Vacate(uint64_t begin, uint64_t end);
  void ForgetOldest();
  void Push(std::unique_ptr<GroupBuffer> group);

  SegmentSet& segments_;  // Borrowed from the same owner.
  const uint64_t group_bytes_max_;
  AlignedBuffer ring_;
  uint64_t ring_end_ = 0;              // where the next group goes, if it fits in there
  std::unique_ptr<GroupBuffer> open_;  // null: none has a place yet
  std::deque<Closed> closed_;          // in order of place, and that of the ring
  GroupNumber closed_first_ = 1;
  size_t outgoing_count_ = 0;  // of those in closed_, not written yet
};

}  // namespace holdfast
