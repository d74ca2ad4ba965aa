// CycleMaker: the cycles of one thread, in order: each puts a new delivery, removes the one put a
// number of cycles earlier, and moves the client's offset on.
#pragma once

#include <cstdint>
#include <string>

#include "bench/subject.h"

namespace holdfast::bench {

// The delivery of number `sequence` of thread `thread`: every byte is a function of the two.
std::string MakeDeliveryId(int thread, uint64_t sequence);

class CycleMaker {
 public:
  // `pending` deliveries are there between two cycles, once so many have run.
  CycleMaker(int thread, uint64_t pending, uint64_t event_bytes);

  // Borrowed until the next call.
  Cycle Next();

 private:
  const int thread_;
  const uint64_t pending_;
  uint64_t sequence_ = 0;
  Delivery put_;
  std::string remove_id_;
  OffsetKey key_;
};

}  // namespace holdfast::bench
