#include "stores/offset_mirror.h"

#include <algorithm>
#include <utility>

#include "meta/meta_key.h"
#include "meta/meta_pages.h"
#include "meta/meta_text.h"

namespace holdfast {
namespace {

constexpr std::string_view kOffsets = "offsets", kCursors = "cursors", kSeen = "seen";
constexpr size_t kReadAtOnce = 1'000;
constexpr size_t kChangesAtOnce = kMetaChangesMax;

std::string OffsetPrefix(const SourceKey& partition) {
  return MetaSourceKey(kOffsets, partition) + '/';
}

StatusOr<uint64_t> NumberIn(const MetaEntry& entry) {
  ASSIGN_OR_RETURN(const MetaText text, DecodeMetaText(entry, 1));
  return text.numbers[0];
}

}  // namespace

StatusOr<std::unique_ptr<OffsetMirror>> OffsetMirror::Open(Engine& engine, MetaStore& meta,
                                                           Membership& membership, Clock& clock,
                                                           const OffsetMirrorOptions& options) {
  if (options.interval < absl::Milliseconds(10) || options.interval > absl::Hours(1)) {
    return Invalid("mirror interval: {} is out of range, 10 ms .. 1 h",
                   absl::FormatDuration(options.interval));
  }
  std::unique_ptr<OffsetMirror> mirror(new OffsetMirror(engine, meta, membership, clock, options));
  if (options.thread) mirror->thread_ = std::thread([self = mirror.get()] { self->Loop(); });
  return mirror;
}

OffsetMirror::~OffsetMirror() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  (void)Flush();  // what does not arrive comes again, as after a kill
}

StatusOr<MirroredPartition> OffsetMirror::Restore(const SourceKey& partition) {
  MutexLock flush(flush_mu_);
  ASSIGN_OR_RETURN(const MetaCondition fence, membership_.Fence(partition));
  const absl::Duration now = clock_.Now();
  // The assignment's revision is the token of the ownership.
  Mirrored found{.offsets = {}, .cursor = {}, .seen = {}, .at = now, .token = fence.revision};
  const auto take = [&found](const MetaEntry& entry) -> Status {
    const auto names = ParseMetaKey(kOffsets, 4, entry.key);
    if (!names.ok()) return absl::OkStatus();
    // One that a newer version wrote must not be taken for "none".
    ASSIGN_OR_RETURN(found.offsets[names->back()], NumberIn(entry));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachEntry(meta_, OffsetPrefix(partition), kReadAtOnce, take).status());
  ASSIGN_OR_RETURN(found.cursor, ReadNumber(kCursors, partition));
  ASSIGN_OR_RETURN(found.seen, ReadNumber(kSeen, partition));
  const Commit merged = engine_.Transact([&](Transaction& change) {
    for (const auto& [client, next] : found.offsets) {
      change.WriteOffset({partition.topic, client, partition.partition},
                         {next, partition.incarnation});
    }
    if (found.cursor.has_value()) change.SourceCursor(partition, *found.cursor);
  });
  RETURN_IF_ERROR(merged.Wait());
  const MirroredPartition restored{
      .cursor = found.cursor, .seen = found.seen, .clients = found.offsets.size()};
  MutexLock lock(mu_);
  mirrored_[partition] = std::move(found);
  return restored;
}

StatusOr<std::optional<uint64_t>> OffsetMirror::ReadNumber(std::string_view kind,
                                                           const SourceKey& partition) {
  const StatusOr<MetaEntry> entry = meta_.Get(MetaSourceKey(kind, partition), {});
  if (MetaResultOf(entry.status()) == MetaResult::kNotFound) return std::nullopt;
  RETURN_IF_ERROR(entry.status());
  ASSIGN_OR_RETURN(const uint64_t number, NumberIn(*entry));
  return number;
}

// Only of what was restored: before that, the Meta may have more than this engine.
std::map<SourceKey, OffsetMirror::Risen> OffsetMirror::ReadRisen(
    const std::optional<SourceKey>& only) {
  std::map<SourceKey, Risen> risen;
  std::set<std::string> topics;
  {
    MutexLock lock(mu_);
    for (const Ownership& owned : membership_.Owned()) {
      if (only.has_value() && owned.partition != *only) continue;
      const auto restored = mirrored_.find(owned.partition);
      if (restored == mirrored_.end() || restored->second.token != owned.token) continue;
      risen[owned.partition];
      topics.insert(owned.partition.topic);
    }
  }
  for (const std::string& topic : topics) {
    for (StoredOffset& stored : engine_.offsets().ReadTopic(topic)) {
      if (!stored.durable) continue;
      const auto of = risen.find({topic, stored.position.incarnation, stored.key.partition});
      if (of == risen.end()) continue;
      of->second.offsets.emplace(std::move(stored.key.client), stored.position.next);
    }
  }
  for (auto& [partition, of] : risen) {
    const StatusOr<SourceProgress> progress = engine_.offsets().ReadSource(partition);
    if (!progress.ok() || !progress->durable) continue;
    if (progress->has_cursor) of.cursor = progress->cursor;
    if (progress->has_seen) of.seen = progress->seen;
  }
  MutexLock lock(mu_);
  for (auto& [partition, of] : risen) {
    const Mirrored& there = mirrored_[partition];
    std::erase_if(of.offsets, [&there](const auto& offset) {
      const auto known = there.offsets.find(offset.first);
      return known != there.offsets.end() && known->second >= offset.second;
    });
    if (of.cursor <= there.cursor) of.cursor.reset();
    if (of.seen <= there.seen) of.seen.reset();
  }
  return risen;
}

Status OffsetMirror::Write(const SourceKey& partition, const Risen& risen, absl::Duration now) {
  std::vector<MetaChange> changes;
  for (const auto& [client, next] : risen.offsets) {
    changes.push_back(
        {.key = MetaKey(kOffsets, {partition.topic, std::to_string(partition.incarnation),
                                   std::to_string(partition.partition), client}),
         .value = EncodeMetaText({next})});
  }
  for (const auto& [kind, number] : {std::pair(kCursors, risen.cursor), {kSeen, risen.seen}}) {
    if (!number.has_value()) continue;
    changes.push_back({.key = MetaSourceKey(kind, partition), .value = EncodeMetaText({*number})});
  }
  for (size_t begin = 0; begin < changes.size(); begin += kChangesAtOnce) {
    ASSIGN_OR_RETURN(MetaCondition fence, membership_.Fence(partition));
    const size_t end = std::min(begin + kChangesAtOnce, changes.size());
    // Absolute values under a fence: a lost answer does no harm, the next flush writes them again.
    const Status written =
        meta_
            .Transact(
                {.conditions = {std::move(fence)},
                 .changes = {changes.begin() + static_cast<ptrdiff_t>(begin),
                             changes.begin() + static_cast<ptrdiff_t>(end)}},
                {.timeout = std::clamp(options_.interval, absl::Seconds(1), absl::Seconds(5))})
            .status();
    MutexLock lock(mu_);
    ++(written.ok() ? stats_.writes : stats_.failed);
    RETURN_IF_ERROR(written);
  }
  MutexLock lock(mu_);
  const auto found = mirrored_.find(partition);
  if (found == mirrored_.end()) return absl::OkStatus();
  Mirrored& there = found->second;
  for (const auto& [client, next] : risen.offsets) there.offsets[client] = next;
  if (risen.cursor.has_value()) there.cursor = risen.cursor;
  if (risen.seen.has_value()) there.seen = risen.seen;
  there.at = std::max(there.at, now);
  return absl::OkStatus();
}

Status OffsetMirror::FlushThose(const std::optional<SourceKey>& only) {
  MutexLock flush(flush_mu_);
  const absl::Duration now = clock_.Now();
  Status first;
  for (const auto& [partition, risen] : ReadRisen(only)) {
    const Status written = Write(partition, risen, now);
    if (written.ok()) continue;
    if (first.ok()) first = written;
    // Taken by another: what the Meta has of it is to be read again before it counts.
    if (DetailOf(written) == Detail::kConflict) {
      MutexLock lock(mu_);
      mirrored_.erase(partition);
    }
  }
  return first;
}

bool OffsetMirror::UpToDate(const SourceKey& partition) {
  MutexLock lock(mu_);
  const auto found = mirrored_.find(partition);
  return found != mirrored_.end() && clock_.Now() - found->second.at <= 2 * options_.interval;
}

OffsetMirrorStats OffsetMirror::Stats() {
  const std::vector<Ownership> owned = membership_.Owned();
  MutexLock lock(mu_);
  OffsetMirrorStats stats = stats_;
  for (const Ownership& each : owned) {
    const auto found = mirrored_.find(each.partition);
    if (found == mirrored_.end()) continue;
    stats.behind = std::max(stats.behind, clock_.Now() - found->second.at);
  }
  return stats;
}

void OffsetMirror::Loop() {
  bool told = false;
  absl::Duration next = clock_.Now() + options_.interval;
  for (;;) {
    {
      MutexLock lock(mu_);
      while (!stopping_ && clock_.Now() < next) wake_.WaitFor(mu_, clock_.Until(next));
      if (stopping_) return;
    }
    next = clock_.Now() + options_.interval;
    const Status flushed = Flush();
    if (!flushed.ok() && !told && options_.log != nullptr) {
      options_.log->Log(LogLevel::kWarning,
                        fmt::format("offsets are not mirrored: {}", Message(flushed)));
    }
    told = !flushed.ok();
  }
}

}  // namespace holdfast
