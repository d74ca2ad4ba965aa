// Maps: the state of the three stores in hash maps behind the caller's lock, and nothing else.
// What any store of this kind costs at least, durable or not.
#pragma once

#include <string>

#include "bench/subject.h"
#include "journal/base/mutex.h"
#include "journal/base/string_map.h"

namespace holdfast::bench {

// Threads: one at a time.
class Maps {
 public:
  void Apply(const Cycle& cycle) {
    pending_.insert_or_assign(cycle.put.id, cycle.put);
    pending_.erase(cycle.remove_id);
    // Each client of the benchmark has one partition, so its name alone is the key.
    if (auto offset = offsets_.find(cycle.offset.client); offset != offsets_.end()) {
      offset->second = cycle.next;
    } else {
      offsets_.emplace(cycle.offset.client, cycle.next);
    }
  }

 private:
  StringMap<Delivery> pending_;
  StringMap<uint64_t> offsets_;
};

class MapsSubject final : public Subject {
 public:
  Commit Run(const Cycle& cycle) override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    maps_.Apply(cycle);
    return Commit();
  }
  SubjectCounters counters() override { return {}; }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  Mutex mu_;
  Maps maps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast::bench
