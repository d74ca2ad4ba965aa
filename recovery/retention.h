// Retention: which segments nobody needs any more, and what would make more of them so. Pure: facts
// in, decisions out; housekeeper.h gathers the facts and does the work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "journal/base/strong.h"

namespace holdfast {

struct RetentionOptions {
  uint64_t segment_bytes = uint64_t{64} << 20;
  // A checkpoint is taken after so many bytes of journal, or as many as the last one had, or a
  // quarter of what is live: whichever is most. 0: one segment.
  uint64_t checkpoint_every_bytes = 0;
  double space_ratio = 3;  // of the bound, see DiskBound
};

struct SegmentFacts {
  SegmentId id;
  Lsn last;
  uint64_t file_bytes = 0;
  uint64_t live_records = 0;
};

// Of one moment: `sealed`, `live_bytes` and `appended` are read under one hold of the sequencer.
struct RetentionFacts {
  std::vector<SegmentFacts> sealed;  // oldest first, without gaps
  uint64_t disk_bytes = 0;           // segment files of every kind, checkpoints not
  uint64_t live_bytes = 0;
  bool short_of_space = false;  // the last attempt to make a segment met a full disk
  Lsn appended, synced;
  Lsn checkpoint, older_checkpoint;  // where replay would begin; none: there is none
  uint64_t checkpoint_bytes = 0;     // of the newest
  uint64_t since_checkpoint_bytes = 0;
  SegmentId pinned;  // the first that holds records of unknown types; none: none does
};

// What the segment files of a store may take: max(ratio × live, live + 8 segments).
uint64_t DiskBound(const RetentionOptions& options, uint64_t live_bytes);
// Where compaction begins: before the bound, so that writers need not wait for it, and where the
// next file would be beyond it.
uint64_t DiskTarget(const RetentionOptions& options, uint64_t live_bytes);

// Neither of the two could be any newer: see Housekeeper::TakeCheckpoint.
bool CheckpointsAreNewest(const RetentionFacts& facts);

// Threads: one at a time.
class Retention {
 public:
  explicit Retention(const RetentionOptions& options) : options_(options) {}

  // Remembers when each segment was first seen without a live record: the copies and removals that
  // made it so are durable once S has reached what was appended then. Comes before the questions
  // below, with the same facts.
  void Observe(const RetentionFacts& facts);

  // Segments below this one may go: oldest first, dead durably, behind the older checkpoint, and
  // below the first pinned one. None: nothing may go.
  SegmentId KeepFrom(const RetentionFacts& facts) const;
  // One more file keeps the bound.
  bool MayGrow(const RetentionFacts& facts) const {
    return facts.disk_bytes + options_.segment_bytes <= DiskBound(options_, facts.live_bytes);
  }
  // The oldest one could go if only S had moved on, and its room is wanted.
  bool WaitsForSync(const RetentionFacts& facts) const;
  bool WantsCheckpoint(const RetentionFacts& facts) const;
  // The segment whose live records should be stated again now.
  std::optional<SegmentId> ToCompact(const RetentionFacts& facts) const;

 private:
  bool Dead(const SegmentFacts& segment) const { return dead_at_.contains(segment.id); }
  bool Pinned(const RetentionFacts& facts, SegmentId id) const {
    return facts.pinned && id >= facts.pinned;
  }
  // Room is wanted.
  bool Pressed(const RetentionFacts& facts) const {
    return facts.short_of_space || facts.disk_bytes > DiskTarget(options_, facts.live_bytes);
  }
  uint64_t DeadInFront(const RetentionFacts& facts) const;

  const RetentionOptions options_;
  std::map<SegmentId, Lsn> dead_at_;  // what was appended when it was first seen dead
};

}  // namespace holdfast
