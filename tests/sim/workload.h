// Workload: what a dispatcher does to the stores, drawn from a seed. Every kind of change, alone
// and in transactions, with repeats that change nothing and retries that are refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"
#include "tests/sim/history.h"

namespace holdfast {

class Workload {
 public:
  // Borrows `history` (which it reads, to know what is live) and `clock`.
  Workload(uint64_t seed, uint64_t event_bytes_max, History& history, Clock& clock)
      : choices_(seed), event_bytes_max_(event_bytes_max), history_(history), clock_(clock) {}

  // The next call. Ids come from `engine`.
  std::vector<Change> Next(Engine& engine);

  // Ids handed out so far, in order.
  const std::vector<std::string>& ids() const { return ids_; }
  // Not empty: the engine gave an id twice.
  const std::string& complaint() const { return complaint_; }

 private:
  std::string NewId(Engine& engine);
  std::string AnyLive();

  SeededRng choices_;
  const uint64_t event_bytes_max_;
  History& history_;
  Clock& clock_;
  std::vector<std::string> ids_;
  std::vector<std::string> ended_;  // ids that were removed
  uint64_t offset_last_ = 0;
  std::string complaint_;
};

}  // namespace holdfast
