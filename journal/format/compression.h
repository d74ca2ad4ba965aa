// Compression of events and of blocks of a checkpoint: a zstd frame without a dictionary, kept only
// where it pays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "journal/base/status.h"
#include "journal/format/records.h"

namespace holdfast {

// No event is larger, whatever the options say.
inline constexpr uint64_t kEventBytesMax = uint64_t{1} << 30;
// Below this it is not tried: a call takes about 12 us and 0.5 us for each KiB more, and webhooks
// in JSON shrink to a fourth at 4 KiB, to a tenth at 32 KiB.
inline constexpr uint64_t kCompressBytesMin = 4096;

// `event` as a record stores it: compressed into `scratch` if that saves at least an eighth, else
// as it is. The result views `event` or `scratch`.
// Threads: any.
StoredEvent PackEvent(std::string_view event, std::string& scratch);

// The event itself. Allocates no more than min(raw_bytes, `bytes_max`), and only after the frame
// was found to say the same size.
// Errors: kDataLoss  not one frame, it needs a dictionary, or its size is not raw_bytes or too much
StatusOr<std::string> UnpackEvent(const StoredEvent& event, uint64_t bytes_max = kEventBytesMax);
// The same, in place of what `into` holds: its memory is used again.
Status UnpackEventInto(const StoredEvent& event, std::string& into,
                       uint64_t bytes_max = kEventBytesMax);

// Appends `raw`, compressed, to `out` if that saves at least an eighth. False: it does not, and
// nothing was appended.
bool AppendCompressed(std::string_view raw, std::string& out);
// Writes the `raw_bytes` bytes that `frame` stands for to `raw`.
// Errors: kDataLoss  not one frame, it needs a dictionary, or its size is not `raw_bytes`
Status Decompress(std::string_view frame, char* raw, uint64_t raw_bytes);

}  // namespace holdfast
