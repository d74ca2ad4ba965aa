// GroupAssembler: where batches go. The open group, the closed ones until they are written, the
// memory of both, and the turn to the next segment.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/commit_queue.h"
#include "journal/group_buffer.h"
#include "journal/segment_set.h"

namespace holdfast {

// Group numbers are those of CommitQueue: one is used up by each Close and each PushLink.
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
  GroupBuffer& Outgoing(GroupNumber number) { return *outgoing_[number - outgoing_first_]; }
  size_t outgoing_count() const { return outgoing_count_; }
  // Its memory is used again.
  void OnWritten(GroupNumber number);

  // The record, if its group is not written yet.
  std::optional<std::string> Find(const RecordRef& ref, Lsn lsn) const;
  // Every batch at a lower place (segment << 32 | offset) is written.
  uint64_t unwritten_place() const;

 private:
  std::unique_ptr<GroupBuffer> TakeBuffer(uint64_t bytes);
  void Push(std::unique_ptr<GroupBuffer> group);

  SegmentSet& segments_;  // Borrowed from the same owner.
  const uint64_t group_bytes_max_;
  std::unique_ptr<GroupBuffer> open_;                  // null: none has a place yet
  std::deque<std::unique_ptr<GroupBuffer>> outgoing_;  // null: written already
  GroupNumber outgoing_first_ = 1;
  size_t outgoing_count_ = 0;
  std::vector<std::unique_ptr<GroupBuffer>> pool_;  // of group_bytes_max_ each
};

}  // namespace holdfast
