#include "stores/engine_options.h"

#include <algorithm>

#include "journal/base/duration_range.h"
#include "journal/format/compression.h"
#include "journal/format/segment_header.h"

namespace holdfast {
namespace {

constexpr uint64_t kBatchBytesMax = uint64_t{16} << 20;
constexpr absl::Duration kCommitIntervalMax = absl::Seconds(10);
constexpr double kSpaceRatioMin = 1.5;
constexpr double kSpaceRatioMax = 100;
// A record that is stated again may take a few bytes more than it did: its numbers have grown.
constexpr uint64_t kRestateRoom = 64;
constexpr uint64_t kAnswersMax = 10'000'000;
constexpr absl::Duration kLockWaitMax = absl::Hours(1);

}  // namespace

Status CheckEngineOptions(const EngineOptions& options) {
  if (options.backend == Backend::kMemory) {
    if (options.read_only) return Invalid("read_only: the memory backend has nothing to read");
  } else if (options.directory.empty()) {
    return Invalid("directory: it is empty; the journal backend needs one");
  }
  RETURN_IF_ERROR(CheckRange("commit_interval", options.commit_interval,
                             {absl::ZeroDuration(), kCommitIntervalMax}));
  RETURN_IF_ERROR(CheckRange("lock_wait", options.lock_wait, {absl::ZeroDuration(), kLockWaitMax}));
  if (options.segment_bytes < kSegmentBytesMin || options.segment_bytes > kSegmentBytesMax ||
      !IsAligned(options.segment_bytes, kBlockBytes)) {
    return Invalid("segment_bytes: {} is not a multiple of {} in {} .. {}", options.segment_bytes,
                   kBlockBytes, kSegmentBytesMin, kSegmentBytesMax);
  }
  if (options.event_bytes_max > kEventBytesMax) {
    return Invalid("event_bytes_max: {} is out of range, 0 .. {}", options.event_bytes_max,
                   kEventBytesMax);
  }
  if (options.remembered_answers > kAnswersMax) {
    return Invalid("remembered_answers: {} is out of range, 0 .. {}", options.remembered_answers,
                   kAnswersMax);
  }
  if (!(options.space_ratio >= kSpaceRatioMin && options.space_ratio <= kSpaceRatioMax)) {
    return Invalid("space_ratio: {} is out of range, {} .. {}", options.space_ratio, kSpaceRatioMin,
                   kSpaceRatioMax);
  }
  if (options.compress_event_bytes_min != 0 &&
      options.compress_event_bytes_min < kCompressBytesMin) {
    return Invalid("compress_event_bytes_min: {} is neither 0 nor at least {}",
                   options.compress_event_bytes_min, kCompressBytesMin);
  }
  return absl::OkStatus();
}

StoreLimits LimitsOf(const EngineOptions& options) {
  return {.event_bytes_max = options.event_bytes_max,
          .compress_event_bytes_min = options.compress_event_bytes_min,
          .batch_bytes_max = std::min(kBatchBytesMax, options.segment_bytes / 4) - kRestateRoom};
}

const char* DurabilityName(Durability durability) {
  return durability == Durability::kSynced ? "synced" : "written";
}

}  // namespace holdfast
