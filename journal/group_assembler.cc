#include "journal/group_assembler.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

// Of the largest groups that the ring holds.
constexpr uint64_t kRingGroups = 8;

uint64_t GroupBytesFor(uint64_t batch_bytes) {
  return AlignUp(kGroupHeaderBytes + batch_bytes, kBlockBytes);
}
uint64_t PlaceOf(const GroupBuffer& group) {
  return (uint64_t{group.life().segment} << 32) | group.offset();
}

}  // namespace

GroupAssembler::GroupAssembler(SegmentSet& segments, uint64_t group_bytes_max)
    : segments_(segments),
      group_bytes_max_(group_bytes_max),
      ring_(AlignedBuffer::Untouched(kRingGroups * group_bytes_max)) {
  CHECK(group_bytes_max >= kBlockBytes);
  CHECK(IsAligned(group_bytes_max, kBlockBytes));
}

bool GroupAssembler::HasPlace(uint64_t batch_bytes) const {
  CHECK(!has_batches());
  return GroupBytesFor(batch_bytes) <= segments_.room();
}

void GroupAssembler::Open(uint64_t batch_bytes) {
  CHECK(HasPlace(batch_bytes));
  if (open_ == nullptr || open_->capacity() < GroupBytesFor(batch_bytes)) {
    open_ = TakeBuffer(GroupBytesFor(batch_bytes));
  }
  open_->Open(segments_.active().life(), segments_.end(), segments_.room());
}

void GroupAssembler::Close() {
  CHECK(has_batches());
  segments_.Extend(open_->length());
  Push(std::move(open_));
}

void GroupAssembler::PushLink(Link link, const GroupHeader& header) {
  CHECK(!has_batches());
  open_.reset();
  segments_.Rotate(link.previous_last_lsn);
  const Life life = segments_.active().life();
  std::unique_ptr<GroupBuffer> group = TakeBuffer(kLinkBytes);
  group->OpenSealed(life, segments_.end(), EncodeLinkGroup(link, header, life));
  segments_.Extend(kLinkBytes);
  Push(std::move(group));
}

void GroupAssembler::OnWritten(GroupNumber number) {
  Closed& closed = closed_[number - closed_first_];
  CHECK(!closed.written);
  closed.written = true;
  --outgoing_count_;
  if (closed.group->owns_memory()) closed.group->Forget();
}

std::optional<std::string> GroupAssembler::Find(const RecordRef& ref, Lsn lsn) const {
  if (open_ != nullptr) {
    if (std::optional<std::string> record = open_->Find(ref, lsn)) return record;
  }
  const uint64_t place = uint64_t{ref.segment} << 32 | ref.offset;
  const auto behind =
      std::upper_bound(closed_.begin(), closed_.end(), place,
                       [](uint64_t wanted, const Closed& c) { return wanted < PlaceOf(*c.group); });
  if (behind == closed_.begin()) return std::nullopt;
  return std::prev(behind)->group->Find(ref, lsn);
}

uint64_t GroupAssembler::kept_from() const {
  if (!closed_.empty()) return PlaceOf(*closed_.front().group);
  return (segments_.active().header.segment.value() << 32) | segments_.end();
}

std::unique_ptr<GroupBuffer> GroupAssembler::TakeBuffer(uint64_t bytes) {
  if (bytes <= group_bytes_max_) {
    if (ring_.size() - ring_end_ < group_bytes_max_ && Vacate(ring_end_, ring_.size())) {
      ring_end_ = 0;
    }
    if (ring_.size() - ring_end_ >= group_bytes_max_ &&
        Vacate(ring_end_, ring_end_ + group_bytes_max_)) {
      return std::make_unique<GroupBuffer>(ring_.span().subspan(ring_end_, group_bytes_max_));
    }
  }
  return std::make_unique<GroupBuffer>(std::max(bytes, group_bytes_max_));
}

std::optional<uint64_t> GroupAssembler::RingPlaceOf(const GroupBuffer& group) const {
  if (group.memory().empty() || group.owns_memory()) return std::nullopt;
  return static_cast<uint64_t>(group.memory().data() - ring_.view().data());
}

bool GroupAssembler::Vacate(uint64_t begin, uint64_t end) {
  for (; !closed_.empty(); ForgetOldest()) {
    const Closed& oldest = closed_.front();
    const std::optional<uint64_t> place = RingPlaceOf(*oldest.group);
    if (place && (*place + oldest.group->length() <= begin || *place >= end)) return true;
    if (!oldest.written) return false;
  }
  return true;
}

void GroupAssembler::ForgetOldest() {
  closed_.pop_front();
  ++closed_first_;
}

void GroupAssembler::Push(std::unique_ptr<GroupBuffer> group) {
  if (const std::optional<uint64_t> place = RingPlaceOf(*group)) {
    ring_end_ = *place + group->length();
  }
  closed_.push_back({std::move(group)});
  ++outgoing_count_;
  // More than the ring has room for: of large groups, which never make it come round.
  while (closed_.size() > ring_.size() / kBlockBytes && closed_.front().written) ForgetOldest();
}

}  // namespace holdfast
