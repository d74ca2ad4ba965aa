// Restater: states batches again, under their own LSNs, in a fresh chain of segments that replaces
// the store's chain at one moment.
//
// The new segments are complete, synced and named before the first of their Links is written, and
// until then they are void. The Links are written from the newest to the oldest: while one is
// missing every open refuses the store as damaged, and nothing of the old chain is touched.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "holdfast/clock.h"
#include "journal/base/status.h"
#include "journal/segment.h"
#include "recovery/segment_writer.h"
#include "recovery/survey.h"

namespace holdfast {

class Restater {
 public:
  struct Options {
    StoreIdentity identity;  // of the boot that repairs
    SegmentId first;         // of the new chain, above every name in use
    uint64_t segment_bytes = 0;
    absl::Duration engine_time;
  };
  // Storage and clock are borrowed.
  Restater(Storage& storage, Clock& clock, const Options& options)
      : storage_(storage), clock_(clock), options_(options) {}

  // Needs: LSNs above every one added before.
  Status Add(const SurveyedBatch& batch);

  struct Chain {
    SegmentId oldest, newest;
    Lsn last;
    uint64_t end = 0;  // where the next group would go in the newest
  };
  // Makes it the chain; `next` is the LSN that may come next.
  // Needs: a MARK that is not clean.
  StatusOr<Chain> Publish(Lsn next);

 private:
  struct Part {
    SegmentHeader header;
    Lsn first, last;  // none: it is empty
    uint64_t end = 0;
  };
  Status OpenPart();
  Status ClosePart(bool newest);
  Status WriteLink(size_t index, Lsn next);

  Storage& storage_;
  Clock& clock_;
  const Options options_;
  std::vector<Part> parts_;
  std::optional<Segment> segment_;       // of the last part, while it is open
  std::optional<SegmentWriter> writer_;  // likewise
};

}  // namespace holdfast
