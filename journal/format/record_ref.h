// RecordRef: where the batch that holds a record lies. A place may change (compaction states a
// record again elsewhere under a new LSN), so places live in memory and in checkpoints, never in
// records.
#pragma once

#include <cstdint>

namespace holdfast {

struct RecordRef {
  uint32_t segment = 0;  // SegmentId; 0 = nowhere
  uint32_t offset = 0;   // of the batch header in the segment file, bytes, a multiple of 8
  uint32_t length = 0;   // of the whole batch, header included, bytes

  bool operator==(const RecordRef&) const = default;
};
static_assert(sizeof(RecordRef) == 12);

}  // namespace holdfast
