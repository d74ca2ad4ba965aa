// `holdfast-bench recovery`: a store is filled by a process that is killed, and opened and read by
// another one with a cold page cache; Holdfast and its peers in one run.
#pragma once

#include <string>
#include <vector>

#include "bench/recovery_workload.h"
#include "bench/store_files.h"
#include "holdfast/options.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct RecoveryOptions {
  std::string directory;  // exists; the stores are made in it and removed again
  IoBackend io = IoBackend::kAuto;
  RecoveryPlan plan;
  int rounds = 3;  // all stores take turns in each
  enum class Peers { kFound, kNone, kRocksDb, kLmdb } peers = Peers::kFound;
};

// One store, filled, killed, opened and read once.
struct RecoverySample {
  double fill_seconds = 0;    // until the last cycle was confirmed
  uint64_t disk_bytes = 0;    // allocated, after the kill
  uint64_t cached_bytes = 0;  // still in the page cache when it was opened; should be none
  double open_seconds = 0;
  double all_seconds = 0;  // the open, and reading all payloads
  double open_cpu_seconds = 0;
  double all_cpu_seconds = 0;
  uint64_t open_read_bytes = 0;  // from the device
  uint64_t all_read_bytes = 0;
  uint64_t open_resident = 0;  // bytes in memory after the open
  uint64_t peak_resident = 0;  // VmHWM at the end
  LiveDigest found, expected;
  RawRead raw_one, raw_four;  // the same files, read with nothing else to do; only of Holdfast's

  bool intact() const { return found == expected; }
};

struct RecoveredStore {
  std::string name;
  std::string settings;
  std::vector<RecoverySample> rounds;

  // The median over the rounds.
  double Middle(double RecoverySample::* figure) const;
  double Middle(uint64_t RecoverySample::* figure) const;
};

struct RecoveryReport {
  std::vector<RecoveredStore> stores;  // Holdfast first
  bool intact() const;
  // The peer whose name begins so; null if it was not measured.
  const RecoveredStore* Find(const std::string& name) const;
};

// Disk that the largest of the stores may take at a time.
uint64_t RecoveryBytesNeeded(const RecoveryPlan& plan);

// Errors: kInvalidArgument    more live than cycles, or events that are too small
//         kResourceExhausted  kDiskFull: the directory has less than RecoveryBytesNeeded()
//         kUnavailable        a child process failed; what it met is told on stderr
StatusOr<RecoveryReport> RunRecoveryBench(const RecoveryOptions& options);

}  // namespace holdfast::bench
