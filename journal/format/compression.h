// Compression of one event: a zstd frame without a dictionary, kept only where it pays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "journal/base/status.h"
#include "journal/format/records.h"

namespace holdfast {

// No event is larger, whatever the options say.
inline constexpr uint64_t kEventBytesMax = uint64_t{1} << 30;
// Below this, trying costs more than it saves (README of bench: compression of single events).
inline constexpr uint64_t kCompressBytesMin = 4096;

// `event` as a record stores it: compressed into `scratch` if that saves at least an eighth, else
// as it is. The result views `event` or `scratch`. Threads: any.
StoredEvent PackEvent(std::string_view event, std::string& scratch);

// The event itself. Allocates no more than min(raw_bytes, `bytes_max`), and only after the frame
// was found to say the same size. Errors: kDataLoss  not one frame, it needs a dictionary, its size
// is not raw_bytes or over `bytes_max`
StatusOr<std::string> UnpackEvent(const StoredEvent& event, uint64_t bytes_max = kEventBytesMax);

}  // namespace holdfast
