// NacosSnapshots: the newest lists of this process, for their further pages and for the watches
// that start behind them. Nacos itself keeps no past.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "meta/nacos_reader.h"

namespace holdfast {

// Threads: any.
class NacosSnapshots {
 public:
  // Shared with whoever still reads it; the last one frees it.
  using Ptr = std::shared_ptr<const NacosSnapshot>;

  struct Limits {
    size_t count_max = 16;
    absl::Duration age_max = absl::Minutes(1);
  };
  // Borrows `clock`, which outlives it.
  explicit NacosSnapshots(Clock& clock) : NacosSnapshots(clock, Limits()) {}
  NacosSnapshots(Clock& clock, const Limits& limits) : clock_(clock), limits_(limits) {}

  Ptr Keep(NacosSnapshot snapshot) ABSL_LOCKS_EXCLUDED(mu_);
  // The one of that revision, if all of `prefix` is in it; else null.
  Ptr Find(std::string_view prefix, uint64_t revision) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Kept {
    Ptr snapshot;
    absl::Duration at;
  };
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Clock& clock_;
  const Limits limits_;
  Mutex mu_;
  std::deque<Kept> kept_ ABSL_GUARDED_BY(mu_);  // oldest first
};

}  // namespace holdfast
