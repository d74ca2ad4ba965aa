// Subject: what a workload runs on. The journal stores, the in-memory stores, the floor and bare
// maps are measured through this one interface, by the same loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "holdfast/commit.h"
#include "holdfast/delivery_state_store.h"
#include "holdfast/offset_store.h"

namespace holdfast::bench {

// One cycle: put a new delivery, remove an earlier one, move its offset on; all three or nothing.
struct Cycle {
  const Delivery& put;
  std::string_view remove_id;
  const OffsetKey& offset;
  uint64_t next = 0;
};

struct SubjectCounters {
  uint64_t written_bytes = 0;  // as written, padding included
  uint64_t flushes = 0;        // flushes and durable writes
};

// Threads: any, except Close and the destructor.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Commit Run(const Cycle& cycle) = 0;
  virtual SubjectCounters counters() = 0;
  // Confirms everything and stops.
  virtual absl::Status Close() = 0;
  // The I/O path in use, for the report; empty without a disk.
  virtual std::string io() { return {}; }
};

}  // namespace holdfast::bench
