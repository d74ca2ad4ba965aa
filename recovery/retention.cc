#include "recovery/retention.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr uint64_t kSegmentsOverLive = 8;
// A checkpoint states everything that is live, so its cost is spread over a share of the live
// bytes: small enough that the segments kept for two checkpoints stay within the bound.
constexpr uint64_t kLiveShare = 4;

uint64_t Bound(uint64_t live_bytes, double ratio, uint64_t over_live) {
  const auto scaled = static_cast<uint64_t>(ratio * static_cast<double>(live_bytes));
  return std::max(scaled, live_bytes + over_live);
}

}  // namespace

uint64_t DiskBound(const RetentionOptions& options, uint64_t live_bytes) {
  return Bound(live_bytes, options.space_ratio, kSegmentsOverLive * options.segment_bytes);
}

uint64_t DiskTarget(const RetentionOptions& options, uint64_t live_bytes) {
  // A turn around the journal frees nothing before it has copied what is alive in the oldest
  // segments, while writers go on.
  return Bound(live_bytes, options.space_ratio * 5 / 6,
               (kSegmentsOverLive - 1) * options.segment_bytes);
}

bool CheckpointsAreNewest(const RetentionFacts& facts) {
  return facts.appended == facts.checkpoint && facts.older_checkpoint + 1 >= facts.checkpoint;
}

void Retention::Observe(const RetentionFacts& facts) {
  const SegmentId oldest = facts.sealed.empty() ? SegmentId() : facts.sealed.front().id;
  std::erase_if(dead_at_, [&](const auto& dead) { return dead.first < oldest; });
  for (const SegmentFacts& segment : facts.sealed) {
    if (segment.live_records == 0) dead_at_.emplace(segment.id, facts.appended);
  }
}

SegmentId Retention::KeepFrom(const RetentionFacts& facts) const {
  SegmentId keep_from;
  for (const SegmentFacts& segment : facts.sealed) {
    const auto dead = dead_at_.find(segment.id);
    const bool goes = dead != dead_at_.end() && dead->second <= facts.synced &&
                      segment.last <= facts.older_checkpoint && !Pinned(facts, segment.id);
    if (!goes) break;
    keep_from = segment.id + 1;
  }
  return keep_from;
}

bool Retention::WaitsForSync(const RetentionFacts& facts) const {
  if (!Pressed(facts) || facts.sealed.empty()) return false;
  const SegmentFacts& oldest = facts.sealed.front();
  const auto dead = dead_at_.find(oldest.id);
  return dead != dead_at_.end() && dead->second > facts.synced &&
         oldest.last <= facts.older_checkpoint && !Pinned(facts, oldest.id);
}

bool Retention::WantsCheckpoint(const RetentionFacts& facts) const {
  const uint64_t every = options_.checkpoint_every_bytes != 0 ? options_.checkpoint_every_bytes
                                                              : options_.segment_bytes;
  const uint64_t of_backlog = std::max(facts.checkpoint_bytes, facts.live_bytes / kLiveShare);
  if (facts.appended > facts.checkpoint &&
      facts.since_checkpoint_bytes >= std::max(every, of_backlog)) {
    return true;
  }
  // Dead segments wait for nothing else, and their room is wanted.
  // On a full disk both are to have passed it before its turn comes: then nothing but S is waited
  // for.
  return Pressed(facts) && !facts.sealed.empty() &&
         (facts.short_of_space || Dead(facts.sealed.front())) &&
         !Pinned(facts, facts.sealed.front().id) &&
         facts.sealed.front().last > facts.older_checkpoint && !CheckpointsAreNewest(facts);
}

std::optional<SegmentId> Retention::ToCompact(const RetentionFacts& facts) const {
  uint64_t sealed_bytes = 0;
  for (const SegmentFacts& segment : facts.sealed) sealed_bytes += segment.file_bytes;
  const uint64_t dead = DeadInFront(facts);
  const bool over = facts.disk_bytes > DiskTarget(options_, facts.live_bytes) + dead;
  // On a full disk every byte of garbage counts, as long as a turn around the journal gains some.
  const bool gains = facts.short_of_space && dead == 0 &&
                     sealed_bytes > facts.live_bytes + 3 * options_.segment_bytes / 2;
  if (!over && !gains) return std::nullopt;
  for (const SegmentFacts& segment : facts.sealed) {
    if (Pinned(facts, segment.id)) return std::nullopt;
    if (!Dead(segment)) return segment.id;
  }
  return std::nullopt;
}

uint64_t Retention::DeadInFront(const RetentionFacts& facts) const {
  uint64_t bytes = 0;
  for (const SegmentFacts& segment : facts.sealed) {
    if (!Dead(segment)) break;
    bytes += segment.file_bytes;
  }
  return bytes;
}

}  // namespace holdfast
