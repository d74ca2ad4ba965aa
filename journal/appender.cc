#include "journal/appender.h"

#include <utility>

namespace holdfast {
namespace {

// Groups that are closed and not written; more would only eat memory.
constexpr size_t kOutgoingMax = 16;

// A record takes at least 8 bytes, and at most half a segment is unsynced: A - S stays below 2^31.
static_assert(kSegmentBytesMax / 2 / kRecordHeaderBytes < uint64_t{1} << 31);

}  // namespace

Status Appender::Reserve(uint64_t batch_bytes, Claim claim) {
  if (batch_bytes > options_.batch_bytes_max) {
    return Exhausted(Detail::kLimit,
                     "a batch of {} bytes: the limit is {} (16 MiB, or a quarter of a segment)",
                     batch_bytes, options_.batch_bytes_max);
  }
  for (;;) {
    if (committer_.poisoned()) return committer_.poison();
    if (committer_.stopping()) return WrongState(Detail::kClosed, "the engine was closed");
    if (HasRoom(batch_bytes, claim)) return absl::OkStatus();
    RETURN_IF_ERROR(MakeRoom(batch_bytes, claim));
  }
}

Lsn Appender::Append(const BatchDraft& draft) {
  const Lsn first = parts_.next;
  const RecordRef ref = committer_.groups().Add(draft, first);
  parts_.next = first + draft.count();
  for (size_t index = 0; index < draft.count(); ++index) {
    parts_.machines.Apply(draft.raw(index), first + index, ref);
  }
  committer_.OnAppended(parts_.next - 1, draft.count(), draft.bytes().size());
  parts_.upkeep.AssertHeld();
  parts_.upkeep.OnAppend();
  return first;
}

bool Appender::HasRoom(uint64_t batch_bytes, Claim claim) const {
  return committer_.groups().Fits(batch_bytes) && UnsyncedFits(batch_bytes) &&
         MayUse(claim, /*rotating=*/false);
}

// What an open copies out of the window in doubt has to fit into a new segment.
bool Appender::UnsyncedFits(uint64_t batch_bytes) const {
  const uint64_t unsynced = committer_.queue().unsynced_bytes();
  const uint64_t more = AlignUp(kGroupHeaderBytes + batch_bytes, kBlockBytes);
  return unsynced == 0 || unsynced + more <= options_.unsynced_bytes_max;
}

bool Appender::MayUse(Claim claim, bool rotating) const {
  SegmentSet& segments = committer_.segments();
  if (rotating && segments.prepared() == 0) return false;
  // The last one is for the next open, which has to work on a full disk too; the one before it for
  // compaction, without which what removes make dead would never come back as space.
  if (claim == Claim::kReclaim) return !rotating || segments.prepared() > 1;
  if (claim == Claim::kShrink) return !rotating || segments.prepared() > 2;
  return segments.reserve(rotating) == SegmentSet::Reserve::kWhole;
}

// One step towards room. The lock may be released meanwhile, so everything is looked at again.
Status Appender::MakeRoom(uint64_t batch_bytes, Claim claim) {
  GroupAssembler& groups = committer_.groups();
  if (!UnsyncedFits(batch_bytes)) {
    committer_.WantSync();
    committer_.DriveUntil([&] {
      committer_.mu().AssertHeld();
      return UnsyncedFits(batch_bytes) || committer_.stopping();
    });
    return absl::OkStatus();
  }
  if (groups.Fits(batch_bytes)) return AwaitSegments(claim, /*rotating=*/false);
  if (groups.has_batches()) {
    committer_.CloseGroup();
    return absl::OkStatus();
  }
  if (groups.outgoing_count() >= kOutgoingMax) {
    committer_.DriveUntil([&] {
      committer_.mu().AssertHeld();
      return groups.outgoing_count() < kOutgoingMax || committer_.stopping();
    });
    return absl::OkStatus();
  }
  const bool rotating = !groups.HasPlace(batch_bytes);
  if (!MayUse(claim, rotating)) return AwaitSegments(claim, rotating);
  if (rotating) {
    Rotate();
  } else {
    groups.Open(batch_bytes);
  }
  return absl::OkStatus();
}

// Waits until it is known whether the next segment can be made.
Status Appender::AwaitSegments(Claim claim, bool rotating) {
  SegmentSet& segments = committer_.segments();
  parts_.upkeep.AssertHeld();
  parts_.upkeep.MakeSegments();
  const auto known = [&] {
    committer_.mu().AssertHeld();
    return MayUse(claim, rotating) || !segments.shortage().ok() || committer_.stopping();
  };
  if (!known()) {
    const absl::Duration began = parts_.clock.Now();
    committer_.DriveUntil(known);
    ++segment_waits_;
    segment_wait_time_ += parts_.clock.Now() - began;
  }
  if (MayUse(claim, rotating) || segments.shortage().ok()) return absl::OkStatus();
  return Exhausted(Detail::kDiskFull, "no room for the next segment: {}",
                   Message(segments.shortage()));
}

void Appender::Rotate() {
  const Segment& old = committer_.segments().active();
  parts_.upkeep.AssertHeld();
  Link link;
  link.previous = old.header.segment;
  link.previous_life = old.header.life;
  link.previous_end = committer_.segments().end();
  link.previous_last_lsn = committer_.queue().positions().appended;
  link.first = parts_.next;
  link.through = parts_.next - 1;
  link.next = parts_.next;
  link.epoch = parts_.identity.epoch;
  link.host_boot_id = parts_.identity.host_boot_id;
  link.id_salt = parts_.identity.id_salt;
  link.wall_ns = absl::ToUnixNanos(parts_.clock.WallNow());
  link.oldest = parts_.upkeep.oldest();
  link.reason = LinkReason::kRotation;
  committer_.PushLink(link);
  parts_.upkeep.MakeSegments();
}

}  // namespace holdfast
