#include "journal/upkeep.h"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast {
namespace {

// MARK follows when everything has been synced for so long.
constexpr absl::Duration kMarkAfter = absl::Milliseconds(100);
// So much of the engine time may be lost by a kill.
constexpr absl::Duration kHeartbeat = absl::Seconds(1);
// Whoever got the room of a segment has so long to use it.
constexpr absl::Duration kGivenUpFor = absl::Seconds(2);

// Whether an attempt to write that much more is worth its writes; 0 is what file systems say that
// do not know.
bool MayFit(Storage& storage, uint64_t bytes) {
  const StatusOr<uint64_t> free = storage.FreeBytes();
  return !free.ok() || *free == 0 || *free >= bytes;
}

}  // namespace

Upkeep::Upkeep(UpkeepParts parts, bool threads)
    : committer_(parts.committer),
      parts_(std::move(parts)),
      threads_(threads),
      oldest_(parts_.oldest),
      last_beat_(parts_.clock.Now()) {
  {
    MutexLock lock(committer_.mu());
    marked_ = committer_.queue().positions();  // the opener has marked what it left
  }
  if (threads_) thread_ = std::thread([this] { Loop(); });
}

Upkeep::~Upkeep() { CHECK(!thread_.joinable()); }

void Upkeep::Loop() {
  MutexLock lock(committer_.mu());
  while (!stopping_) {
    const absl::Duration now = parts_.clock.Now();
    if (const Duty duty = NextDuty(now); duty != Duty::kNone) {
      Perform(duty);
      continue;
    }
    const absl::Duration due = DueAt(now);
    asleep_ = due > now + kMarkAfter;
    wake_.WaitFor(committer_.mu(), parts_.clock.Until(due));
    asleep_ = false;
  }
}

void Upkeep::Tick() {
  if (threads_) return;
  MutexLock lock(committer_.mu());
  for (Duty duty = NextDuty(parts_.clock.Now()); duty != Duty::kNone;
       duty = NextDuty(parts_.clock.Now())) {
    Perform(duty);
  }
}

void Upkeep::MakeSegments() {
  committer_.segments().OnNeeded();
  if (threads_) {
    wake_.NotifyOne();
    return;
  }
  while (!committer_.poisoned() && committer_.segments().WantsNext(parts_.clock.Now())) {
    MakeSegment();
  }
}

void Upkeep::Stop() {
  {
    MutexLock lock(committer_.mu());
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

Upkeep::Duty Upkeep::NextDuty(absl::Duration now) const {
  if (committer_.poisoned()) return Duty::kNone;
  if (!making_ && committer_.segments().WantsNext(now) && MayMakeSegment()) return Duty::kSegment;
  if (marking_) return Duty::kNone;
  const CommitPositions& positions = committer_.queue().positions();
  if (positions.end_segment > marked_.end_segment) return Duty::kMark;
  const bool idle = committer_.queue().all_synced();
  if (idle && positions != marked_ && now >= committer_.caught_up_at() + kMarkAfter) {
    return Duty::kMark;
  }
  const absl::Duration told = std::max(last_beat_, committer_.last_group_at());
  return positions.appended && now >= told + kHeartbeat ? Duty::kHeartbeat : Duty::kNone;
}

bool Upkeep::MayMakeSegment() const {
  const SegmentSet& segments = committer_.segments();
  return limit_ == nullptr || segments.spares() > 0 || segments.lacks_for_compaction() ||
         limit_->MayTake(segments.disk_bytes_with_next());
}

void Upkeep::SetSpaceLimit(SpaceLimit* limit) {
  limit_ = limit;
  Recheck();
}

absl::Duration Upkeep::DueAt(absl::Duration now) const {
  const CommitPositions& positions = committer_.queue().positions();
  if (committer_.poisoned() || !positions.appended) return now + kHeartbeat;
  if (positions != marked_ || !committer_.queue().all_synced()) return now + kMarkAfter;
  if (committer_.segments().needed()) return now + kMarkAfter;
  return std::max(last_beat_, committer_.last_group_at()) + kHeartbeat;
}

void Upkeep::Perform(Duty duty) {
  switch (duty) {
    case Duty::kSegment:
      return MakeSegment();
    case Duty::kMark:
      (void)WriteMark();  // a failure has poisoned the journal
      return;
    case Duty::kHeartbeat:
      return Beat();
    case Duty::kNone:
      return;
  }
}

void Upkeep::MakeSegment() {
  making_ = true;
  SegmentSet& segments = committer_.segments();
  const bool again = !segments.shortage().ok();
  const SegmentSet::Plan plan = segments.TakeNext(parts_.clock.WallNow());
  committer_.mu().Unlock();
  StatusOr<Segment> made =
      again && !plan.spare && !MayFit(parts_.storage, plan.header.segment_bytes)
          ? Exhausted(Detail::kDiskFull, "{}: still less than {} bytes free",
                      parts_.storage.display_path(), plan.header.segment_bytes)
          : SegmentSet::Make(parts_.storage, plan);
  committer_.mu().Lock();
  making_ = false;
  if (made.ok()) {
    segments.OnMade(*std::move(made));
  } else if (made.status().code() == StatusCode::kResourceExhausted) {
    segments.OnShortage(made.status(), parts_.clock.Now());
  } else {
    committer_.Poison(made.status());
  }
  committer_.OnProgress();
}

Status Upkeep::WriteMark() {
  marking_ = true;
  const CommitPositions positions = committer_.queue().positions();
  const Mark mark = MarkOf(positions, /*clean=*/false);
  committer_.mu().Unlock();
  Status written = parts_.mark->Write(mark);
  committer_.mu().Lock();
  if (!written.ok()) committer_.Poison(written);
  marked_ = positions;
  marking_ = false;
  mark_free_.NotifyAll();
  return written;
}

void Upkeep::Beat() {
  marking_ = true;
  last_beat_ = parts_.clock.Now();
  committer_.mu().Unlock();
  const Status written =
      parts_.mark->WriteHeartbeat(parts_.engine_clock.NowNanos(), parts_.identity.salt);
  committer_.mu().Lock();
  if (!written.ok()) committer_.Poison(written);
  marking_ = false;
  mark_free_.NotifyAll();
}

void Upkeep::AwaitMarkFree() {
  while (marking_) mark_free_.Wait(committer_.mu());
}

Status Upkeep::RetireBelow(SegmentId keep_from, const std::function<void(SegmentId)>& retired) {
  MutexLock lock(committer_.mu());
  SegmentSet& segments = committer_.segments();
  CHECK(keep_from <= segments.active().header.segment);
  CHECK(!retiring_);
  AwaitMarkFree();
  if (committer_.poisoned()) return committer_.poison();
  if (stopping_) return WrongState(Detail::kClosed, "the engine was closed");
  // A segment leads the chain only if its Link is durable.
  keep_from = std::min(keep_from, committer_.queue().positions().end_segment);
  if (keep_from > oldest_) {
    // From here on rotations say so too: harmless, because nobody needs what is below.
    oldest_ = keep_from;
    RETURN_IF_ERROR(WriteMark());
  }
  if (segments.sealed().empty() || segments.sealed().oldest().segment >= oldest_) {
    return absl::OkStatus();
  }
  retiring_ = true;
  Status status = TakeAwayBelow(retired);
  retiring_ = false;
  return status;
}

Status Upkeep::TakeAwayBelow(const std::function<void(SegmentId)>& retired) {
  SegmentSet& segments = committer_.segments();
  const SegmentId below = oldest_;
  committer_.mu().Unlock();
  retired(below);
  committer_.mu().Lock();
  while (!committer_.poisoned() && !segments.sealed().empty() &&
         segments.sealed().oldest().segment < below) {
    const SegmentId segment = segments.sealed().oldest().segment;
    const bool over_limit = limit_ != nullptr && !limit_->MayTake(segments.disk_bytes());
    const bool as_spare = segments.WantsAsSpare(over_limit);
    committer_.mu().Unlock();
    const std::string name = SegmentFileName(segment);
    const Status taken = as_spare ? parts_.storage.Rename(name, SpareFileName(segment))
                                  : parts_.storage.Remove(name);
    // A name that could come back may not be another segment by then.
    const Status synced =
        as_spare && taken.ok() ? parts_.storage.SyncFolder(kJournalFolder) : absl::OkStatus();
    committer_.mu().Lock();
    if (!synced.ok()) committer_.Poison(synced);
    if (!taken.ok() && taken.code() != StatusCode::kNotFound) return taken;
    if (committer_.poisoned()) break;
    segments.OnRetired(as_spare && taken.ok() ? SegmentSet::Fate::kSpare
                                              : SegmentSet::Fate::kRemoved);
    wake_.NotifyOne();
  }
  return committer_.poisoned() ? committer_.poison() : absl::OkStatus();
}

Status Upkeep::GiveUpReserve() {
  SegmentId segment;
  {
    MutexLock lock(committer_.mu());
    if (committer_.poisoned()) return committer_.poison();
    if (making_) return Exhausted(Detail::kDiskFull, "a segment is being made; try again");
    segment = committer_.segments().GiveUpPrepared(parts_.clock.Now() + kGivenUpFor);
  }
  if (!segment) return Exhausted(Detail::kDiskFull, "no segment can be spared");
  // Should a crash leave it, it is a file made ahead of need, as before.
  return parts_.storage.Remove(SegmentFileName(segment));
}

Mark Upkeep::MarkOf(const CommitPositions& positions, bool clean) {
  Mark mark;
  mark.store_id = parts_.identity.store_id;
  mark.salt = parts_.identity.salt;
  mark.epoch = parts_.identity.epoch;
  mark.synced = positions.synced;
  mark.end_segment = positions.end_segment;
  mark.end_offset = positions.end_offset;
  mark.newest = positions.end_segment;  // the newest whose Link is durable
  mark.oldest = oldest_;
  mark.clean = clean;
  mark.engine_ns = parts_.engine_clock.NowNanos();
  return mark;
}

Status Upkeep::WriteCleanMark() {
  Mark mark;
  {
    MutexLock lock(committer_.mu());
    CHECK(committer_.queue().all_synced());
    AwaitMarkFree();
    mark = MarkOf(committer_.queue().positions(), /*clean=*/true);
  }
  Status written = parts_.mark->Write(mark);
  if (!written.ok()) {
    MutexLock lock(committer_.mu());
    committer_.Poison(written);
  }
  return written;
}

}  // namespace holdfast
