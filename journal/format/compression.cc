#include "journal/format/compression.h"

#include <zstd.h>

namespace holdfast {
namespace {

constexpr int kLevel = 1;               // faster ones save too little, slower ones cost too much
constexpr uint64_t kSavingPartMin = 8;  // an eighth

}  // namespace

StoredEvent PackEvent(std::string_view event, std::string& scratch) {
  const StoredEvent plain{.raw_bytes = event.size(), .compressed = false, .bytes = event};
  if (event.size() < kCompressBytesMin || event.size() > kEventBytesMax) return plain;
  // No room for a frame that does not pay: zstd then stops by itself.
  scratch.resize(event.size() - event.size() / kSavingPartMin);
  const size_t size =
      ZSTD_compress(scratch.data(), scratch.size(), event.data(), event.size(), kLevel);
  if (ZSTD_isError(size) != 0) return plain;
  scratch.resize(size);
  return {.raw_bytes = event.size(), .compressed = true, .bytes = scratch};
}

StatusOr<std::string> UnpackEvent(const StoredEvent& event, uint64_t bytes_max) {
  if (event.raw_bytes > bytes_max || event.raw_bytes > kEventBytesMax) {
    return DataLoss("event: {} bytes, more than {}", event.raw_bytes, bytes_max);
  }
  const std::string_view frame = event.bytes;
  if (!event.compressed) {
    if (frame.size() != event.raw_bytes) {
      return DataLoss("event: {} bytes stand there, want {}", frame.size(), event.raw_bytes);
    }
    return std::string(frame);
  }
  // One frame from the first byte to the last, no skippable one before or behind it.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != event.raw_bytes ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size() ||
      ZSTD_getDictID_fromFrame(frame.data(), frame.size()) != 0) {
    return DataLoss("event: its zstd frame of {} bytes does not unpack to {}", frame.size(),
                    event.raw_bytes);
  }
  std::string raw(event.raw_bytes, '\0');
  const size_t size = ZSTD_decompress(raw.data(), raw.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0 || size != raw.size()) {
    return DataLoss("event: its zstd frame of {} bytes is damaged", frame.size());
  }
  return raw;
}

}  // namespace holdfast
