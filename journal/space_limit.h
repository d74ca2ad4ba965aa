// SpaceLimit: how much disk the segment files may take. The journal asks; recovery/housekeeper.h,
// which knows what is alive, answers.
#pragma once

#include <cstdint>

namespace holdfast {

class SpaceLimit {
 public:
  virtual ~SpaceLimit() = default;

  // Whether the segment files may take `disk_bytes`. False: ask again after a segment went, or
  // after Journal::Recheck().
  // Threads: the sequencer is held; the storage is not called.
  virtual bool MayTake(uint64_t disk_bytes) = 0;
};

}  // namespace holdfast
