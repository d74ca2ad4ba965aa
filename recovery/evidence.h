// Evidence: what the disk proves about the end of the journal, gathered before the first batch is
// judged: the chain as a reader needs it, P and H, and what the group headers of the newest
// segments say.
#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "journal/base/status.h"
#include "journal/journal_reader.h"
#include "journal/torn_tail.h"
#include "recovery/store_layout.h"

namespace holdfast {

struct TracedSegment {
  SegmentId id;
  bool chained = false;
  uint64_t end = 0;  // groups from here on are dead
  SegmentTrace trace;
  std::unique_ptr<File> file;
};

struct Evidence {
  std::vector<ChainSegment> chain;  // may borrow the files in `traced`
  // The two newest of the chain, where everything unsynced lies, and what the same boot made behind
  // them.
  std::vector<TracedSegment> traced;
  TailEvidence tail;
  ReadRules rules;
  Lsn highest_lsn;             // seen anywhere, in dead and void segments too
  absl::Duration engine_time;  // newest seen
  uint64_t bytes_read = 0;

  Lsn proved() const { return Proved(tail); }
  const TracedSegment* Traced(SegmentId id) const;
};

// Needs:  a layout with a chain. Of a damaged one, `chain` holds the segments whose Links pass.
// Errors: kUnavailable  a read failed
//         kNotFound     a file went away meanwhile
StatusOr<Evidence> GatherEvidence(Storage& storage, const StoreLayout& layout);

// The same for who has something to do with the chain meanwhile: first what the Links say, then the
// segments.
class EvidenceGathering {
 public:
  // Both are borrowed. Needs: as GatherEvidence
  EvidenceGathering(Storage& storage, const StoreLayout& layout);
  // Waits for the thread.
  ~EvidenceGathering();

  // Begins with the segments, in a thread of its own. Once; without it Finish does all.
  void TraceAside();
  // `chain` and nothing else. The files in it are not there yet.
  const Evidence& links() const { return links_; }
  // Everything. Once.
  // Errors: as GatherEvidence; kResourceExhausted: no memory in the thread
  StatusOr<Evidence> Finish();

 private:
  class Gatherer;
  std::unique_ptr<Gatherer> gatherer_;  // used by the thread until it is joined
  Evidence links_;
  Status trace_status_;
  std::thread thread_;
};

// Layout and evidence of one moment.
struct StoreView {
  StoreLayout layout;
  std::optional<Evidence> evidence;  // none: there is no chain (yet), or the layout is damaged
};
// Beside a live writer it looks again, a bounded number of times, if files changed under it.
// Errors: as ReadLayout
//         kUnavailable  they kept changing
enum class Evidences { kGather, kLeaveOut };
StatusOr<StoreView> ReadView(Storage& storage, Evidences evidences = Evidences::kGather);
// Whether anything has changed since, MARK too: then damage seen meanwhile may have been none.
bool HasChanged(Storage& storage, const StoreLayout& layout);
// Whether a segment of the chain is gone or has another life: then so may what was read from it.
bool ChainHasChanged(Storage& storage, const StoreLayout& layout);
// Whether `damage` stands in the segment in which the chain ended, and it goes on behind that one
// by now: what was missed there may have been written into the next, before that had a Link.
bool ChainHasGrown(Storage& storage, const StoreLayout& layout,
                   const std::optional<ChainDamage>& damage);
// The error for a reader that met `met` because of that.
Status Changing(const Storage& storage, const Status& met);

}  // namespace holdfast
