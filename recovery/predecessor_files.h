// PredecessorFiles: what becomes of the files that earlier boots left. Spare ones are used again,
// what no chain reaches goes, and the segments that an open closed end where their records do.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "holdfast/log_sink.h"
#include "journal/base/status.h"
#include "journal/io/storage.h"
#include "journal/segment.h"
#include "journal/segment_ledger.h"
#include "recovery/evidence.h"

namespace holdfast {

// What stands before the new segment, and what may come in it.
struct Continuation {
  SegmentId segment;
  uint64_t segment_bytes = 0;
  SegmentId previous;  // none: this is the first of the store
  uint64_t previous_life = 0;
  uint64_t previous_end = 0;
  Lsn previous_last;
  Lsn next;  // the first that this boot gives out
};

// Threads: one at a time.
class PredecessorFiles {
 public:
  // All borrowed; `log` may be null. `view` has no damages; of what is cut short it learns the
  // size.
  PredecessorFiles(Storage& storage, StoreView& view, uint64_t segment_bytes, LogSink* log)
      : storage_(storage), view_(view), segment_bytes_(segment_bytes), log_(log) {}

  // What the predecessor made ahead and never wrote to, and what it retired, is nobody's. As much
  // of it as the journal keeps anyway becomes spare files: they need no space, and no zeros. The
  // rest of the spare ones is removed. `locks`: those of the predecessor's segments; a file that
  // becomes a spare one gives its lock back.
  Status GatherSpares(std::map<SegmentId, std::unique_ptr<File>>& locks);
  // That are left. Whole files of `segment_bytes`.
  const std::vector<SegmentId>& spares() const { return spares_; }
  // The segment that the open writes, under a temporary name: from a spare file where there is one,
  // on a full disk that is the room there is.
  // Errors: as PrepareSegment
  StatusOr<Segment> MakeNewest(const SegmentHeader& header);

  // What no chain will ever reach again is removed, and the predecessor ends where its records do:
  // a crash loop must not eat the disk. Failing here costs space, nothing else; it is logged.
  void Free(const Continuation& next);
  // The chain before the new segment, as the journal takes it over, oldest first.
  std::vector<SealedSegment> Sealed(const Continuation& next) const;

 private:
  bool FreeReserve();
  void CutPredecessors(const Continuation& next);
  Status CutShort(SegmentFile& segment, uint64_t end);
  void Warn(const std::string& line) const {
    if (log_ != nullptr) log_->Log(LogLevel::kWarning, line);
  }

  Storage& storage_;
  StoreView& view_;
  const uint64_t segment_bytes_;
  LogSink* const log_;
  std::vector<SegmentId> spares_;
};

}  // namespace holdfast
