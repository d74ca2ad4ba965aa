// `holdfast-bench pending`: what many pending deliveries cost in memory, and that all of them come
// back after the process was killed.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/options.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct PendingOptions {
  std::string directory;  // exists; the store is made in it and removed again
  IoBackend io = IoBackend::kAuto;
  uint64_t count = 2'000'000;
  uint64_t event_bytes = 1'024;
};

struct PendingReport {
  double put_seconds = 0;        // until the last one was confirmed
  uint64_t writer_resident = 0;  // bytes in memory with all of them pending
  double open_seconds = 0;       // after the kill; the page cache is not emptied
  double cpu_open_seconds = 0;
  uint64_t reader_resident = 0;  // bytes in memory after the open
  uint64_t found = 0;            // Count() after the open
  double verify_seconds = 0;     // reading every one of them
  uint64_t intact = 0;           // came back with exactly the bytes that were put
  uint64_t reader_resident_peak = 0;
};

// Puts in a child process, kills it, opens and reads in another.
// Errors: kUnavailable  a child could not be started or ended early; what it met is told on stderr
StatusOr<PendingReport> RunPendingBench(const PendingOptions& options);

std::string PendingMarkdown(const PendingReport& report, const PendingOptions& options);
std::string PendingJson(const PendingReport& report, const PendingOptions& options);

}  // namespace holdfast::bench
