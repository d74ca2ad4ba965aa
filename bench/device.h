// The device alone: durable overwrites of 4 KiB, one at a time, past the page cache.
#pragma once

#include <algorithm>
#include <string>

#include "bench/latency_histogram.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct DeviceResult {
  LatencyHistogram flushed;  // pwrite, then fdatasync
  LatencyHistogram durable;  // pwritev2 with RWF_DSYNC

  // The faster of the two ways.
  double p50_micros() const { return std::min(flushed.Micros(0.5), durable.Micros(0.5)); }
};

// Overwrites blocks of `file`, which is made and written once if it is missing, for `seconds` in
// all.
StatusOr<DeviceResult> MeasureDevice(const std::string& file, double seconds);

}  // namespace holdfast::bench
