// RetryPolicy: when a delivery that was not acknowledged is tried again. Pure.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "holdfast/dispatcher.h"
#include "holdfast/rng.h"

namespace holdfast {

// How long to wait after `attempts` pushes (0 counts as 1): backoff_min, doubled for each attempt
// after the first up to backoff_max, and spread by ± backoff_jitter.
absl::Duration BackoffAfter(const DispatcherOptions& options, uint32_t attempts, Rng& rng);

// From nothing to `whole`, evenly spread.
absl::Duration AnyPartOf(absl::Duration whole, Rng& rng);

// The longest that any delivery ever waits for its next attempt: what is left of a due time after a
// restart is never more.
absl::Duration LongestWait(const DispatcherOptions& options);

}  // namespace holdfast
