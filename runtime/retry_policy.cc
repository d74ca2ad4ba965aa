#include "runtime/retry_policy.h"

#include <algorithm>

namespace holdfast {
namespace {

// [0, 1) with 53 bits, all that a double has.
double AnyFraction(Rng& rng) { return static_cast<double>(rng.Next() >> 11) * 0x1.0p-53; }

}  // namespace

absl::Duration BackoffAfter(const DispatcherOptions& options, uint32_t attempts, Rng& rng) {
  absl::Duration wait = options.backoff_min;
  for (uint32_t i = 1; i < attempts && wait < options.backoff_max; ++i) wait *= 2;
  wait = std::min(wait, options.backoff_max);
  return wait * (1 + options.backoff_jitter * (2 * AnyFraction(rng) - 1));
}

absl::Duration AnyPartOf(absl::Duration whole, Rng& rng) { return whole * AnyFraction(rng); }

absl::Duration LongestWait(const DispatcherOptions& options) {
  return std::max(options.ack_timeout, options.backoff_max * (1 + options.backoff_jitter));
}

}  // namespace holdfast
