#include "recovery/restater.h"

#include <utility>

#include "journal/base/check.h"

namespace holdfast {

Status Restater::Add(const SurveyedBatch& batch) {
  const BatchHeader header{.first_lsn = batch.first_lsn,
                           .records = Narrow<uint16_t>(batch.last_lsn - batch.first_lsn + 1),
                           .epoch = batch.epoch};
  // A Link says where LSNs go on: behind a gap a new segment begins.
  const bool gap =
      writer_.has_value() && parts_.back().last && batch.first_lsn != parts_.back().last + 1;
  if (gap) RETURN_IF_ERROR(ClosePart(/*newest=*/false));
  if (!writer_.has_value()) RETURN_IF_ERROR(OpenPart());
  Status added = writer_->Append(header, batch.records).status();
  if (DetailOf(added) == Detail::kLimit && parts_.back().last) {
    RETURN_IF_ERROR(ClosePart(/*newest=*/false));
    RETURN_IF_ERROR(OpenPart());
    added = writer_->Append(header, batch.records).status();
  }
  RETURN_IF_ERROR(added);
  Part& part = parts_.back();
  if (!part.first) part.first = batch.first_lsn;
  part.last = batch.last_lsn;
  return absl::OkStatus();
}

StatusOr<Restater::Chain> Restater::Publish(Lsn next) {
  if (!writer_.has_value()) RETURN_IF_ERROR(OpenPart());
  RETURN_IF_ERROR(ClosePart(/*newest=*/true));
  for (size_t index = parts_.size(); index-- > 0;) RETURN_IF_ERROR(WriteLink(index, next));
  return Chain{.oldest = parts_.front().header.segment,
               .newest = parts_.back().header.segment,
               .last = parts_.back().last,
               .end = parts_.back().end};
}

Status Restater::OpenPart() {
  const StoreIdentity& identity = options_.identity;
  const SegmentId id = options_.first + parts_.size();
  const SegmentHeader header{.store_id = identity.store_id,
                             .salt = identity.salt,
                             .segment = id,
                             .life = MakeLifeStamp(identity.salt, identity.epoch, parts_.size() + 1,
                                                   Narrow<uint32_t>(id.value())),
                             .segment_bytes = options_.segment_bytes,
                             .epoch = identity.epoch,
                             .created_ns = absl::ToUnixNanos(clock_.WallNow())};
  ASSIGN_OR_RETURN(segment_, PrepareSegment(storage_, header));
  parts_.push_back({.header = header});
  writer_.emplace(*segment_,
                  GroupHeader{.engine_ns = absl::ToInt64Nanoseconds(options_.engine_time)});
  return absl::OkStatus();
}

Status Restater::ClosePart(bool newest) {
  RETURN_IF_ERROR(writer_->Finish());
  Part& part = parts_.back();
  part.end = writer_->end();
  if (!newest) {
    RETURN_IF_ERROR(segment_->file->Truncate(part.end));
    RETURN_IF_ERROR(segment_->file->SyncData());
  }
  RETURN_IF_ERROR(PublishSegment(storage_, *segment_));
  writer_.reset();
  segment_.reset();
  return absl::OkStatus();
}

Status Restater::WriteLink(size_t index, Lsn next) {
  const Part& part = parts_[index];
  const bool newest = index + 1 == parts_.size();
  const Lsn first = part.first ? part.first : Lsn(1);
  const Lsn through = part.first ? part.last : Lsn();
  Link link{.first = first,
            .through = through,
            .next = newest ? next : through + 1,
            .epoch = options_.identity.epoch,
            .host_boot_id = options_.identity.host_boot_id,
            .id_salt = options_.identity.id_salt,
            .wall_ns = part.header.created_ns,
            .oldest = parts_.front().header.segment,
            .reason = LinkReason::kOpen};
  if (index > 0) {
    const Part& previous = parts_[index - 1];
    link.previous = previous.header.segment;
    link.previous_life = previous.header.life;
    link.previous_end = previous.end;
    link.previous_last_lsn = previous.last;
  }
  const GroupHeader header{.engine_ns = absl::ToInt64Nanoseconds(options_.engine_time)};
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                   storage_.OpenFile(SegmentFileName(part.header.segment), OpenMode::kReadWrite));
  RETURN_IF_ERROR(
      file->WriteAt(kSegmentHeaderBytes, EncodeLinkGroup(link, header, part.header.life_of())));
  return file->SyncData();
}

}  // namespace holdfast
