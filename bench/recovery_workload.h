// The cycles that fill a store of the recovery benchmark, and what is live after them: every byte
// is a function of its number, so that nothing has to be kept to check what comes back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/subject.h"

namespace holdfast::bench {

enum class RemovalOrder {
  kFifo,    // the oldest live one: what is live was put last
  kRandom,  // any live one, by a seeded choice: what is live is spread over everything written
};

struct RecoveryPlan {
  uint64_t live = 1'000'000;
  uint64_t cycles = 5'000'000;  // the first `live` of them only put
  uint64_t event_bytes = 256;
  RemovalOrder order = RemovalOrder::kFifo;
};

// How many, and the sum of a check of each: the same in whatever order they come.
struct LiveDigest {
  uint64_t count = 0;
  uint64_t sum = 0;
  void Add(std::string_view id, std::string_view event);
  bool operator==(const LiveDigest&) const = default;
};

class RecoveryWorkload {
 public:
  explicit RecoveryWorkload(const RecoveryPlan& plan);

  // The next cycle; borrowed until the next call.
  Cycle Next();
  bool done() const { return number_ == plan_.cycles; }
  uint64_t number() const { return number_; }
  // Of what is live now.
  LiveDigest Digest() const;

 private:
  const RecoveryPlan plan_;
  uint64_t number_ = 0;
  std::vector<uint64_t> live_;  // numbers; only in random order
  Delivery put_;
  std::string remove_id_;
  OffsetKey offset_;
};

// JSON with random text in it, as hard to compress as such events are.
void FillJsonEvent(uint64_t number, uint64_t bytes, std::string& event);

}  // namespace holdfast::bench
