#include "journal/format/compression.h"

#include <zstd.h>

namespace holdfast {
namespace {

constexpr int kLevel = 1;               // faster ones save too little, slower ones cost too much
constexpr uint64_t kSavingPartMin = 8;  // an eighth

// One frame from the first byte to the last, no skippable one before or behind it.
Status CheckFrame(std::string_view frame, uint64_t raw_bytes) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != raw_bytes ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size() ||
      ZSTD_getDictID_fromFrame(frame.data(), frame.size()) != 0) {
    return DataLoss("a zstd frame of {} bytes does not unpack to {}", frame.size(), raw_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

StoredEvent PackEvent(std::string_view event, std::string& scratch) {
  const StoredEvent plain{.raw_bytes = event.size(), .compressed = false, .bytes = event};
  if (event.size() < kCompressBytesMin || event.size() > kEventBytesMax) return plain;
  scratch.clear();
  if (!AppendCompressed(event, scratch)) return plain;
  return {.raw_bytes = event.size(), .compressed = true, .bytes = scratch};
}

StatusOr<std::string> UnpackEvent(const StoredEvent& event, uint64_t bytes_max) {
  std::string raw;
  RETURN_IF_ERROR(UnpackEventInto(event, raw, bytes_max));
  return raw;
}

Status UnpackEventInto(const StoredEvent& event, std::string& into, uint64_t bytes_max) {
  if (event.raw_bytes > bytes_max || event.raw_bytes > kEventBytesMax) {
    return DataLoss("event: {} bytes, more than {}", event.raw_bytes, bytes_max);
  }
  const std::string_view frame = event.bytes;
  if (!event.compressed) {
    if (frame.size() != event.raw_bytes) {
      return DataLoss("event: {} bytes stand there, want {}", frame.size(), event.raw_bytes);
    }
    into = frame;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckFrame(frame, event.raw_bytes));
  into.resize(event.raw_bytes);
  return Decompress(frame, into.data(), into.size());
}

bool AppendCompressed(std::string_view raw, std::string& out) {
  // No room for a frame that does not pay: zstd then stops by itself.
  const size_t begin = out.size();
  out.resize(begin + raw.size() - raw.size() / kSavingPartMin);
  const size_t size =
      ZSTD_compress(out.data() + begin, out.size() - begin, raw.data(), raw.size(), kLevel);
  const bool pays = ZSTD_isError(size) == 0;
  out.resize(pays ? begin + size : begin);
  return pays;
}

Status Decompress(std::string_view frame, char* raw, uint64_t raw_bytes) {
  RETURN_IF_ERROR(CheckFrame(frame, raw_bytes));
  const size_t size = ZSTD_decompress(raw, raw_bytes, frame.data(), frame.size());
  if (ZSTD_isError(size) != 0 || size != raw_bytes) {
    return DataLoss("a zstd frame of {} bytes is damaged", frame.size());
  }
  return absl::OkStatus();
}

}  // namespace holdfast
