#include "journal/upkeep.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

// MARK follows when everything has been synced for so long.
constexpr absl::Duration kMarkAfter = absl::Milliseconds(100);
// So much of the engine time may be lost by a kill.
constexpr absl::Duration kHeartbeat = absl::Seconds(1);

}  // namespace

Upkeep::Upkeep(UpkeepParts parts, bool threads)
    : committer_(parts.committer),
      parts_(std::move(parts)),
      threads_(threads),
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
  if (!making_ && committer_.segments().WantsNext(now)) return Duty::kSegment;
  const CommitPositions& positions = committer_.queue().positions();
  if (positions.end_segment > marked_.end_segment) return Duty::kMark;
  const bool idle = committer_.queue().all_synced();
  if (idle && positions != marked_ && now >= committer_.caught_up_at() + kMarkAfter) {
    return Duty::kMark;
  }
  const absl::Duration told = std::max(last_beat_, committer_.last_group_at());
  return positions.appended && now >= told + kHeartbeat ? Duty::kHeartbeat : Duty::kNone;
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
      return WriteMark();
    case Duty::kHeartbeat:
      return Beat();
    case Duty::kNone:
      return;
  }
}

void Upkeep::MakeSegment() {
  making_ = true;
  SegmentSet& segments = committer_.segments();
  const SegmentHeader header = segments.TakeNextHeader(parts_.clock.WallNow());
  committer_.mu().Unlock();
  StatusOr<Segment> made = SegmentSet::Make(parts_.storage, header);
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

void Upkeep::WriteMark() {
  const CommitPositions positions = committer_.queue().positions();
  committer_.mu().Unlock();
  const Status written = parts_.mark->Write(MarkOf(positions, /*clean=*/false));
  committer_.mu().Lock();
  if (!written.ok()) committer_.Poison(written);
  marked_ = positions;
}

void Upkeep::Beat() {
  last_beat_ = parts_.clock.Now();
  committer_.mu().Unlock();
  const Status written =
      parts_.mark->WriteHeartbeat(parts_.engine_clock.NowNanos(), parts_.identity.salt);
  committer_.mu().Lock();
  if (!written.ok()) committer_.Poison(written);
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
  mark.oldest = parts_.oldest;
  mark.clean = clean;
  mark.engine_ns = parts_.engine_clock.NowNanos();
  return mark;
}

Status Upkeep::WriteCleanMark() {
  CommitPositions positions;
  {
    MutexLock lock(committer_.mu());
    CHECK(committer_.queue().all_synced());
    positions = committer_.queue().positions();
  }
  Status written = parts_.mark->Write(MarkOf(positions, /*clean=*/true));
  if (!written.ok()) {
    MutexLock lock(committer_.mu());
    committer_.Poison(written);
  }
  return written;
}

}  // namespace holdfast
