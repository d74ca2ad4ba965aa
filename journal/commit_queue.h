// CommitQueue: the brain of group commit. What to write next, plain or durable, when to flush, and
// who is satisfied by what came back. Pure: no lock, no clock, no disk; events in, steps out.
//
// Groups have numbers, from 1 in the order of their places. The group with the highest number is
// open and takes batches; the others are closed and wait, are in flight, written or synced. Link
// groups count like any other, so that no position ever passes one that is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "holdfast/options.h"
#include "journal/base/strong.h"

namespace holdfast {

using GroupNumber = uint64_t;

struct CommitQueueOptions {
  Durability durability = Durability::kSynced;
  // 0: write-through. Otherwise groups go out as they fill; what is left, and the sync, each
  // interval.
  absl::Duration commit_interval;
  absl::Duration written_sync_interval =
      absl::Seconds(1);  // level written: longest time without sync
  // After a group completed: how long the callers that it released may take to come back with their
  // next batch before a group closes without them; renewed a few times while
  // they keep coming. 0: not at all.
  absl::Duration rejoin_wait;
  uint64_t group_bytes_full = uint64_t{256}
                              << 10;  // with an interval: a group of this size goes out
  uint64_t unsynced_bytes_flush = uint64_t{16} << 20;  // so much unsynced starts a sync
  size_t depth_max = 8;                                // writes that may be out
  // False: a second write does not begin before the first has ended, so a bigger group is better.
  bool writes_overlap = true;
};

// Where the groups stand. synced <= written <= appended, always.
struct CommitPositions {
  Lsn appended, written, synced;
  SegmentId end_segment;  // where the bytes of `synced` end, Links included
  uint64_t end_offset = 0;
  bool operator==(const CommitPositions&) const = default;
};

// Who waits just now; the shell counts.
struct CommitDemand {
  size_t blocked = 0;      // threads in Wait()
  bool callbacks = false;  // some callback waits
};

class CommitQueue {
 public:
  // Everything up to `start.appended` is synced.
  CommitQueue(const CommitQueueOptions& options, const CommitPositions& start);

  // --- What happens ---

  // A batch went into the open group, which is now `group_bytes` long; `last` is its last LSN.
  void OnAppend(Lsn last, uint64_t group_bytes);
  // The open group ends at `end` of `segment` and takes no more batches; the next one is open and
  // empty.
  void OnClose(SegmentId segment, uint64_t end);
  // As an append and a close in one: the first group of `segment`. Needs: the open group is empty.
  void OnLink(SegmentId segment, uint64_t end, uint64_t group_bytes);
  // Somebody needs everything appended so far synced, now.
  void OnSyncWanted();
  // `callers` were just released and may come back with another batch until `until`.
  void OnReleased(size_t callers, absl::Duration until);

  struct Step {
    enum class Kind {
      kNone,   // nothing to start: wait for a completion, an event, or DueAt()
      kClose,  // close the open group (OnClose), then ask again
      kWrite,  // submit `group`
      kFlush,  // submit a flush of `segment`
      kHold,   // look again before `until`, or when Ripe()
    };
    Kind kind = Kind::kNone;
    GroupNumber group = 0;
    bool durable = false;
    SegmentId segment;
    absl::Duration until;
  };
  Step Next(absl::Duration now, const CommitDemand& demand);
  // The step was (or is just being) submitted. Returns the id to submit it under.
  uint64_t OnSubmitted(const Step& step);

  struct Done {
    bool was_write = false;
    GroupNumber group = 0;           // that was written
    GroupNumber satisfied_from = 0;  // groups [from, to) reached the level in force just now
    GroupNumber satisfied_to = 0;
  };
  // What was submitted under `id` completed with OK.
  Done OnCompleted(uint64_t id);
  // A write or sync failed, or will never be known: no position moves any more, no step is given.
  void Stop() { stopped_ = true; }

  // --- What is ---

  const CommitPositions& positions() const { return positions_; }
  // The position that confirms at the level in force.
  Lsn reached() const {
    return options_.durability == Durability::kSynced ? positions_.synced : positions_.written;
  }
  // Whether Next() would close the open group now, whatever the time. Cheap: asked at each append.
  bool Ripe(const CommitDemand& demand) const;
  // When Next() may answer differently without an event. Infinite: never.
  absl::Duration DueAt() const;
  // The group that holds `lsn`, if it is not synced yet. Needs: lsn <= appended.
  GroupNumber GroupOf(Lsn lsn) const;
  GroupNumber open_group() const { return first_ + groups_.size(); }
  GroupNumber next_to_write() const { return next_write_; }
  // Every group below has been synced.
  GroupNumber first_unsynced() const { return first_; }
  size_t in_flight() const { return writes_in_flight_ + (flush_through_ != 0 ? 1 : 0); }
  // Some sync is wanted or under way.
  bool syncing() const { return sync_through_ >= first_; }
  // Bytes of groups that are not known to be durable, the open one included.
  uint64_t unsynced_bytes() const { return unsynced_bytes_ + open_bytes_; }
  bool all_synced() const { return groups_.empty() && open_bytes_ == 0; }
  bool has_interval() const { return options_.commit_interval > absl::ZeroDuration(); }

 private:
  enum class State : uint8_t { kClosed, kInFlight, kWritten, kSynced };
  struct Group {
    Lsn last;  // of it and all before
    SegmentId segment;
    uint64_t end = 0;
    uint64_t bytes = 0;
    State state = State::kClosed;
    bool durable = false;
  };

  Group& At(GroupNumber number) { return groups_[number - first_]; }
  const Group& At(GroupNumber number) const { return groups_[number - first_]; }
  bool Durable() const { return options_.durability == Durability::kSynced && !has_interval(); }
  size_t WriteDepth(const CommitDemand& demand) const;
  void NoteTime(absl::Duration now);
  std::optional<Step> FlushStep() const;
  Step OpenGroupStep(absl::Duration now, const CommitDemand& demand);
  bool StillRejoining(absl::Duration now);
  GroupNumber LastOfFrontSegment() const;
  void Advance();

  const CommitQueueOptions options_;
  CommitPositions positions_;
  bool stopped_ = false;

  std::deque<Group> groups_;    // closed and not in the synced prefix
  GroupNumber first_ = 1;       // number of groups_.front()
  GroupNumber next_write_ = 1;  // the first that was not submitted
  GroupNumber unwritten_ = 1;   // the first that is not written
  uint64_t unsynced_bytes_ = 0;
  uint64_t open_bytes_ = 0;  // 0: the open group is empty
  size_t writes_in_flight_ = 0;

  GroupNumber sync_through_ = 0;   // groups up to here are to be synced as soon as can be
  GroupNumber flush_through_ = 0;  // a flush is in flight that covers up to here; 0: none
  uint64_t flush_id_ = 0;
  uint64_t flush_count_ = 0;

  // When the interval is over, since the first append that was not synced. None: nothing appended
  // since.
  std::optional<absl::Duration> sync_due_;
  std::optional<absl::Duration> write_due_;  // level written: the open group goes out

  size_t awaited_ = 0;           // released callers that have not come back
  size_t awaited_at_start_ = 0;  // of the current wait
  int rejoin_waits_ = 0;         // since they were released
  absl::Duration awaited_until_ = -absl::InfiniteDuration();
};

}  // namespace holdfast
