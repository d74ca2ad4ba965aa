#include "journal/segment_set.h"

#include <algorithm>
#include <utility>

namespace holdfast {

SegmentSet::SegmentSet(const Options& options, const StoreIdentity& identity, Start start)
    : options_(options),
      identity_(identity),
      sealed_(start.sealed),
      spares_(start.spares.begin(), start.spares.end()),
      end_(start.end),
      life_counter_(start.life_counter),
      last_id_(start.active.header.segment) {
  CHECK(IsAligned(end_, kBlockBytes));
  CHECK(end_ >= kFirstGroupOffset && end_ <= start.active.header.segment_bytes);
  writing_.push_back(std::make_unique<Segment>(std::move(start.active)));
}

void SegmentSet::Extend(uint64_t group_bytes) {
  CHECK(IsAligned(group_bytes, kBlockBytes));
  CHECK(group_bytes <= room());
  end_ += group_bytes;
}

void SegmentSet::Rotate(Lsn last) {
  CHECK(!prepared_.empty());
  CHECK(prepared_.front()->header.segment == active().header.segment + 1);
  sealed_.Add({.segment = active().header.segment,
               .last = last,
               .file_bytes = active().header.segment_bytes,
               .end = end_});
  writing_.push_back(std::move(prepared_.front()));
  prepared_.pop_front();
  end_ = kSegmentHeaderBytes;
  rotated_ = true;
}

File& SegmentSet::FileOf(SegmentId segment) const {
  for (const std::unique_ptr<Segment>& candidate : writing_) {
    if (candidate->header.segment == segment) return *candidate->file;
  }
  CHECK(false && "a segment is written after it was let go");
  return *writing_.back()->file;
}

void SegmentSet::ReleaseBelow(SegmentId segment) {
  while (writing_.size() > 1 && writing_.front()->header.segment < segment) writing_.pop_front();
}

void SegmentSet::OnRetired(Fate fate) {
  const SegmentId segment = sealed_.oldest().segment;
  CHECK(segment < writing_.front()->header.segment);
  sealed_.PopOldest();
  if (fate == Fate::kSpare) spares_.push_back(segment);
  last_fate_ = fate;
}

bool SegmentSet::WantsAsSpare(bool over_limit) const {
  if (over_limit && last_fate_ == Fate::kSpare) return false;
  const size_t missing = wanted() - std::min(wanted(), prepared_.size());
  const SealedSegment& oldest = sealed_.oldest();
  const bool name_taken =
      std::find(spares_.begin(), spares_.end(), oldest.segment) != spares_.end();
  return oldest.file_bytes == options_.segment_bytes && !name_taken &&
         spares_.size() < missing + options_.spares_max;
}

uint64_t SegmentSet::disk_bytes() const {
  return sealed_.bytes() + active().header.segment_bytes +
         (prepared_.size() + spares_.size()) * options_.segment_bytes;
}

// A journal that rotates needs its segments, and what it holds needs the reserve; one that never
// did may never need a second.
size_t SegmentSet::wanted() const {
  const bool rotates = rotated_ || room() < active().header.segment_bytes / 2;
  return rotates ? 1 + options_.reserve : 1;
}

bool SegmentSet::WantsNext(absl::Duration now) const {
  if (!spares_.empty() && prepared_.size() < 1 + options_.reserve) return true;
  return prepared_.size() < wanted() && (!failed_ || (needed_ && now >= retry_at_));
}

SegmentSet::Plan SegmentSet::TakeNext(absl::Time wall) {
  needed_ = false;
  const SegmentId id = last_id_ + 1;
  last_id_ = id;
  SegmentHeader header;
  header.store_id = identity_.store_id;
  header.salt = identity_.salt;
  header.segment = id;
  header.life =
      MakeLifeStamp(identity_.salt, identity_.epoch, ++life_counter_, Narrow<uint32_t>(id.value()));
  header.segment_bytes = options_.segment_bytes;
  header.epoch = identity_.epoch;
  header.created_ns = absl::ToUnixNanos(wall);
  Plan plan{.header = header, .spare = {}};
  if (!spares_.empty()) {
    plan.spare = spares_.front();
    spares_.pop_front();
  }
  return plan;
}

StatusOr<Segment> SegmentSet::Make(Storage& storage, const Plan& plan) {
  ASSIGN_OR_RETURN(Segment segment, plan.spare ? RecycleSegment(storage, plan.spare, plan.header)
                                               : PrepareSegment(storage, plan.header));
  RETURN_IF_ERROR(PublishSegment(storage, segment));
  return segment;
}

void SegmentSet::OnMade(Segment segment) {
  CHECK(segment.header.segment == last_id_);
  prepared_.push_back(std::make_unique<Segment>(std::move(segment)));
  failed_ = false;
  if (prepared_.size() >= std::min(wanted(), options_.reserve)) shortage_ = absl::OkStatus();
  ++made_;
}

void SegmentSet::OnShortage(Status full, absl::Duration now) {
  last_id_ = last_id_ - 1;  // the id is taken again; the life is not
  shortage_ = std::move(full);
  failed_ = true;
  retry_at_ = now + options_.retry_interval;
}

SegmentId SegmentSet::GiveUpPrepared(absl::Duration retry_at) {
  if (prepared_.size() < 2) return SegmentId();  // the last one is for the next open
  const SegmentId given_up = prepared_.back()->header.segment;
  CHECK(given_up == last_id_);
  prepared_.pop_back();
  last_id_ = last_id_ - 1;
  shortage_ = Exhausted(Detail::kDiskFull, "a checkpoint took the room");
  failed_ = true;
  retry_at_ = retry_at;
  return given_up;
}

SegmentSet::Reserve SegmentSet::reserve(bool rotating) const {
  const size_t left = prepared_.size() - (rotating && !prepared_.empty() ? 1 : 0);
  if (left >= options_.reserve) return Reserve::kWhole;
  if (!shortage_.ok()) return Reserve::kShort;
  // The attempt is under way. What is appended meanwhile must not eat up what would be the reserve.
  if (rotating) return Reserve::kUnknown;
  const bool half_empty = room() >= active().header.segment_bytes / 2;
  return left > 0 || half_empty ? Reserve::kWhole : Reserve::kUnknown;
}

}  // namespace holdfast
