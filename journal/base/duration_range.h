// CheckRange: whether a duration that somebody set is one that may be set. Pure.
#pragma once

#include <string_view>

#include "absl/time/time.h"
#include "journal/base/status.h"

namespace holdfast {

struct DurationRange {
  absl::Duration min, max;  // both are in it
};

// Errors: kInvalidArgument  it is not in the range; names the setting, the value and the range
inline Status CheckRange(std::string_view setting, absl::Duration value,
                         const DurationRange& range) {
  if (value >= range.min && value <= range.max) return absl::OkStatus();
  return Invalid("{}: {} is out of range, {} .. {}", setting, absl::FormatDuration(value),
                 absl::FormatDuration(range.min), absl::FormatDuration(range.max));
}

}  // namespace holdfast
