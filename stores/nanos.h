// Times of the public interface as the 64-bit nanoseconds of records, and back. What does not fit
// is infinite on both sides.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace holdfast {

inline int64_t ToNanos(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }
inline int64_t ToNanos(absl::Time time) { return absl::ToUnixNanos(time); }

inline absl::Duration DurationFromNanos(int64_t nanos) {
  if (nanos == std::numeric_limits<int64_t>::max()) return absl::InfiniteDuration();
  if (nanos == std::numeric_limits<int64_t>::min()) return -absl::InfiniteDuration();
  return absl::Nanoseconds(nanos);
}
inline absl::Time TimeFromNanos(int64_t nanos) {
  if (nanos == std::numeric_limits<int64_t>::max()) return absl::InfiniteFuture();
  if (nanos == std::numeric_limits<int64_t>::min()) return absl::InfinitePast();
  return absl::FromUnixNanos(nanos);
}

}  // namespace holdfast
