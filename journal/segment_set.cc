#include "journal/segment_set.h"

#include <utility>

namespace holdfast {

SegmentSet::SegmentSet(const Options& options, const StoreIdentity& identity, Segment active,
                       uint64_t end, uint64_t life_counter)
    : options_(options),
      identity_(identity),
      end_(end),
      life_counter_(life_counter),
      last_id_(active.header.segment) {
  CHECK(IsAligned(end, kBlockBytes));
  CHECK(end >= kFirstGroupOffset && end <= active.header.segment_bytes);
  writing_.push_back(std::make_unique<Segment>(std::move(active)));
}

void SegmentSet::Extend(uint64_t group_bytes) {
  CHECK(IsAligned(group_bytes, kBlockBytes));
  CHECK(group_bytes <= room());
  end_ += group_bytes;
}

void SegmentSet::Rotate() {
  CHECK(!prepared_.empty());
  CHECK(prepared_.front()->header.segment == active().header.segment + 1);
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

bool SegmentSet::WantsNext(absl::Duration now) const {
  // A journal that rotates needs its segments quickly; one that never did may never need a second.
  const size_t wanted = rotated_ ? 2 : 1;
  return prepared_.size() < wanted && (shortage_.ok() || (needed_ && now >= retry_at_));
}

SegmentHeader SegmentSet::TakeNextHeader(absl::Time wall) {
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
  return header;
}

StatusOr<Segment> SegmentSet::Make(Storage& storage, const SegmentHeader& header) {
  ASSIGN_OR_RETURN(Segment segment, PrepareSegment(storage, header));
  RETURN_IF_ERROR(PublishSegment(storage, segment));
  return segment;
}

void SegmentSet::OnMade(Segment segment) {
  CHECK(segment.header.segment == last_id_);
  prepared_.push_back(std::make_unique<Segment>(std::move(segment)));
  shortage_ = absl::OkStatus();
  ++made_;
}

void SegmentSet::OnShortage(Status full, absl::Duration now) {
  last_id_ = last_id_ - 1;  // the id is taken again; the life is not
  shortage_ = std::move(full);
  retry_at_ = now + options_.retry_interval;
}

SegmentSet::Reserve SegmentSet::reserve(bool rotating) const {
  const size_t left = prepared_.size() - (rotating && !prepared_.empty() ? 1 : 0);
  if (left > 0) return Reserve::kWhole;
  if (!shortage_.ok()) return Reserve::kShort;
  if (rotating) return prepared_.empty() ? Reserve::kUnknown : Reserve::kWhole;
  // The attempt is under way. What is appended meanwhile must not eat up what would be the reserve.
  return room() >= active().header.segment_bytes / 2 ? Reserve::kWhole : Reserve::kUnknown;
}

}  // namespace holdfast
