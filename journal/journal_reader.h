// JournalReader: a forward cursor over the batches of the chain. It knows at every place which LSN
// must come next, asks the table in torn_tail.h, and ends with a reason.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/frame.h"
#include "journal/format/record_ref.h"
#include "journal/format/segment_header.h"
#include "journal/io/storage.h"
#include "journal/segment_scan.h"
#include "journal/torn_tail.h"

namespace holdfast {

struct JournalPlace {
  SegmentId segment;
  uint64_t offset = 0;
  auto operator<=>(const JournalPlace&) const = default;
};

// One segment of the chain, as a reader needs it.
struct ChainSegment {
  SegmentId id;
  Life life;
  uint64_t segment_bytes = 0;
  Link link;
  uint64_t end = 0;         // recorded by the successor's Link; segment_bytes in the newest
  uint64_t last_group = 0;  // offset of the last valid group in it; only asked of the newest
  File* file = nullptr;     // open already (borrowed); null: opened by name
};

struct ReadRules {
  Lsn horizon;              // H: up to here everything must be there
  bool mark_clean = false;  // MARK says that nothing stands behind `mark_end`
  JournalPlace mark_end;
};

// Bytes that must be valid and are not.
struct ChainDamage {
  JournalPlace place;
  Lsn first, last;  // what is lost; `last` is none where nothing says so
  std::string reason;
};

// Threads: one at a time.
class JournalReader {
 public:
  // `chain` in order, without gaps; at least one. All borrowed.
  JournalReader(Storage& storage, const std::vector<ChainSegment>& chain, const ReadRules& rules);

  // Moves to the next batch. False: the chain ends at cut(), and verdict() says why.
  // Errors: kDataLoss     damage, or mixed copies; damage() has the details. Final.
  //         kUnavailable  a read failed; so do kNotFound, ... of Storage::OpenFile
  StatusOr<bool> Next();

  const BatchView& batch() const { return cursor_->batch(); }  // borrowed until Next()
  RecordRef ref() const;
  // Right behind batch(), a multiple of 8; at first, where the segment before the chain ended.
  JournalPlace behind() const { return behind_; }

  Verdict verdict() const { return verdict_; }
  JournalPlace cut() const { return here_; }
  // The LSN that must come next, by the Links; and the newest one taken (by the first Link at
  // first).
  Lsn next_lsn() const { return next_lsn_; }
  Lsn last_lsn() const { return last_lsn_; }

  const std::optional<ChainDamage>& damage() const { return damage_; }
  uint64_t bytes_read() const { return window_.bytes_read(); }

 private:
  const ChainSegment& segment() const { return chain_[index_]; }
  bool newest() const { return index_ + 1 == chain_.size(); }

  Status EnterSegment();
  Status LeaveSegment();
  StatusOr<Found> EnterGroup();
  StatusOr<bool> Conclude(Found found);
  StatusOr<bool> Take();
  PlaceFacts FactsHere(Found found) const;
  Status Damaged(Lsn last, std::string reason);
  Status BadHere(Found found);

  Storage& storage_;
  const std::vector<ChainSegment>& chain_;
  const ReadRules rules_;
  size_t index_ = 0;
  bool entered_ = false;
  bool ended_ = false;
  std::unique_ptr<File> owned_;  // of the segment, unless the chain brings it
  ReadWindow window_;
  std::optional<BatchCursor> cursor_;  // while in a group
  bool headerless_ = false;            // its header failed; its batches speak for themselves
  uint64_t group_end_ = 0;
  JournalPlace here_;    // where next_lsn_ must stand
  JournalPlace behind_;  // right behind the newest batch taken
  Lsn next_lsn_, last_lsn_;
  Verdict verdict_ = Verdict::kTaken;
  std::optional<ChainDamage> damage_;
};

}  // namespace holdfast
