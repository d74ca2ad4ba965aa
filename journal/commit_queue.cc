#include "journal/commit_queue.h"

#include <algorithm>

#include "journal/base/check.h"

namespace holdfast {
namespace {

// Up to this many blocked callers a second group in flight is worth more than a bigger first one.
constexpr size_t kFewCallers = 2;
constexpr size_t kDepthForFew = 2;
// Nobody is blocked: callers go on while their groups are out. A further group should be worth a
// write.
constexpr size_t kDepthForCallbacks = 4;
constexpr uint64_t kFurtherGroupBytes = uint64_t{32} << 10;

// Waking many callers takes longer than one rejoin wait.
constexpr int kRejoinWaitsMax = 4;

}  // namespace

CommitQueue::CommitQueue(const CommitQueueOptions& options, const CommitPositions& start)
    : options_(options), positions_(start) {
  CHECK(options.depth_max > 0);
  CHECK(start.synced == start.appended && start.written == start.appended);
}

// --- What to do ---

CommitQueue::Step CommitQueue::Next(absl::Duration now, const CommitDemand& demand) {
  if (stopped_) return {};
  NoteTime(now);
  if (next_write_ < open_group() && writes_in_flight_ < options_.depth_max) {
    return {.kind = Step::Kind::kWrite, .group = next_write_, .durable = Durable()};
  }
  if (const std::optional<Step> flush = FlushStep()) return *flush;
  if (open_bytes_ > 0) return OpenGroupStep(now, demand);
  return {};
}

// Starts the timers that are needed, and turns what is due or too much into a wanted sync.
void CommitQueue::NoteTime(absl::Duration now) {
  if (Durable()) return;
  const bool synced_level = options_.durability == Durability::kSynced;
  const GroupNumber last = open_bytes_ > 0 ? open_group() : open_group() - 1;
  if (last > sync_through_ && last >= first_) {
    if (!sync_due_) {
      sync_due_ = now + (synced_level ? options_.commit_interval : options_.written_sync_interval);
    }
    if (now >= *sync_due_) OnSyncWanted();
  }
  if (!syncing() && unsynced_bytes() >= options_.unsynced_bytes_flush) {
    // The open group goes on filling, unless it is all there is.
    sync_through_ = groups_.empty() ? open_group() : open_group() - 1;
  }
  if (open_bytes_ > 0 && !write_due_ && !synced_level) write_due_ = now + options_.commit_interval;
}

std::optional<CommitQueue::Step> CommitQueue::FlushStep() const {
  if (flush_through_ != 0 || !syncing() || groups_.empty()) return std::nullopt;
  // One file at a time: a flush covers no other, and S could not pass the first one's end before.
  const GroupNumber front_last = LastOfFrontSegment();
  const bool one_file = front_last + 1 == open_group();
  const GroupNumber target = one_file ? sync_through_ : std::min(sync_through_, front_last);
  if (unwritten_ <= target) return std::nullopt;
  return Step{.kind = Step::Kind::kFlush, .segment = groups_.front().segment};
}

CommitQueue::Step CommitQueue::OpenGroupStep(absl::Duration now, const CommitDemand& demand) {
  const Step close{.kind = Step::Kind::kClose};
  if (Ripe(demand)) return close;
  if (write_due_ && now >= *write_due_ && writes_in_flight_ < options_.depth_max) return close;
  if (has_interval() || awaited_ == 0 || writes_in_flight_ >= WriteDepth(demand)) return {};
  if (!StillRejoining(now)) return close;
  if (writes_in_flight_ > 0) return {};  // its completion is soon enough to look again
  return {.kind = Step::Kind::kHold, .until = awaited_until_};
}

bool CommitQueue::StillRejoining(absl::Duration now) {
  if (now < awaited_until_) return true;
  if (awaited_ == awaited_at_start_ || rejoin_waits_ >= kRejoinWaitsMax) return false;
  awaited_at_start_ = awaited_;
  awaited_until_ = now + options_.rejoin_wait;
  ++rejoin_waits_;
  return true;
}

bool CommitQueue::Ripe(const CommitDemand& demand) const {
  if (stopped_ || open_bytes_ == 0 || writes_in_flight_ >= options_.depth_max) return false;
  if (sync_through_ >= open_group()) return true;
  if (has_interval()) return open_bytes_ >= options_.group_bytes_full;
  if (writes_in_flight_ == 0) return awaited_ == 0;
  if (writes_in_flight_ >= WriteDepth(demand)) return false;
  return awaited_ == 0 && (demand.blocked > 0 || open_bytes_ >= kFurtherGroupBytes);
}

size_t CommitQueue::WriteDepth(const CommitDemand& demand) const {
  if (!options_.writes_overlap) return 1;
  if (demand.blocked > kFewCallers) return 1;
  return std::min(options_.depth_max, demand.blocked > 0 ? kDepthForFew : kDepthForCallbacks);
}

absl::Duration CommitQueue::DueAt() const {
  absl::Duration due = absl::InfiniteDuration();
  if (sync_due_) due = std::min(due, *sync_due_);
  if (write_due_) due = std::min(due, *write_due_);
  return due;
}

// --- What happens ---

void CommitQueue::OnAppend(Lsn last, uint64_t group_bytes) {
  CHECK(last > positions_.appended);
  CHECK(group_bytes >= open_bytes_);
  positions_.appended = last;
  open_bytes_ = group_bytes;
  if (awaited_ > 0) --awaited_;
}

void CommitQueue::OnClose(SegmentId segment, uint64_t end) {
  CHECK(open_bytes_ > 0);
  CHECK(groups_.empty() || segment >= groups_.back().segment);
  groups_.push_back(
      {.last = positions_.appended, .segment = segment, .end = end, .bytes = open_bytes_});
  unsynced_bytes_ += open_bytes_;
  open_bytes_ = 0;
  awaited_ = 0;
  write_due_.reset();
}

void CommitQueue::OnLink(SegmentId segment, uint64_t end, uint64_t group_bytes) {
  CHECK(open_bytes_ == 0);
  open_bytes_ = group_bytes;
  OnClose(segment, end);
}

void CommitQueue::OnSyncWanted() {
  sync_through_ = open_bytes_ > 0 ? open_group() : open_group() - 1;
  sync_due_.reset();
}

void CommitQueue::OnReleased(size_t callers, absl::Duration until) {
  if (callers == 0 || options_.rejoin_wait == absl::ZeroDuration()) return;
  awaited_ = awaited_at_start_ = callers;
  rejoin_waits_ = 1;
  awaited_until_ = until;
}

uint64_t CommitQueue::OnSubmitted(const Step& step) {
  if (step.kind == Step::Kind::kWrite) {
    CHECK(step.group == next_write_);
    Group& group = At(step.group);
    group.state = State::kInFlight;
    group.durable = step.durable;
    ++next_write_;
    ++writes_in_flight_;
    return step.group * 2;
  }
  CHECK(step.kind == Step::Kind::kFlush);
  CHECK(flush_through_ == 0);
  flush_through_ = std::min(unwritten_ - 1, LastOfFrontSegment());
  flush_id_ = ++flush_count_ * 2 + 1;
  return flush_id_;
}

CommitQueue::Done CommitQueue::OnCompleted(uint64_t id) {
  Done done{.was_write = id % 2 == 0};
  const bool synced_level = options_.durability == Durability::kSynced;
  done.satisfied_from = synced_level ? first_ : unwritten_;
  if (done.was_write) {
    done.group = id / 2;
    Group& group = At(done.group);
    CHECK(group.state == State::kInFlight);
    group.state = group.durable ? State::kSynced : State::kWritten;
    --writes_in_flight_;
  } else {
    CHECK(id == flush_id_);
    for (GroupNumber number = first_; number <= flush_through_; ++number) {
      At(number).state = State::kSynced;
    }
    flush_through_ = 0;
  }
  Advance();
  done.satisfied_to = synced_level ? first_ : unwritten_;
  return done;
}

// The one setter of written and synced: both move over what has no gap.
void CommitQueue::Advance() {
  while (unwritten_ < open_group() && At(unwritten_).state >= State::kWritten) {
    positions_.written = At(unwritten_).last;
    ++unwritten_;
  }
  while (!groups_.empty() && groups_.front().state == State::kSynced) {
    const Group& group = groups_.front();
    positions_.synced = group.last;
    positions_.end_segment = group.segment;
    positions_.end_offset = group.end;
    unsynced_bytes_ -= group.bytes;
    groups_.pop_front();
    ++first_;
  }
  if (all_synced()) sync_due_.reset();
  CHECK(positions_.synced <= positions_.written);
  CHECK(positions_.written <= positions_.appended);
}

// --- What is ---

GroupNumber CommitQueue::GroupOf(Lsn lsn) const {
  CHECK(lsn <= positions_.appended);
  const auto found = std::lower_bound(groups_.begin(), groups_.end(), lsn,
                                      [](const Group& g, Lsn wanted) { return g.last < wanted; });
  return first_ + static_cast<GroupNumber>(found - groups_.begin());
}

GroupNumber CommitQueue::LastOfFrontSegment() const {
  const auto end = std::upper_bound(groups_.begin(), groups_.end(), groups_.front().segment,
                                    [](SegmentId s, const Group& g) { return s < g.segment; });
  return first_ + static_cast<GroupNumber>(end - groups_.begin()) - 1;
}

}  // namespace holdfast
