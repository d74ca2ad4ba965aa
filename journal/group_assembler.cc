#include "journal/group_assembler.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

constexpr size_t kPooledMax = 8;

uint64_t GroupBytesFor(uint64_t batch_bytes) {
  return AlignUp(kGroupHeaderBytes + batch_bytes, kBlockBytes);
}
uint64_t PlaceOf(const GroupBuffer& group) {
  return (uint64_t{group.life().segment} << 32) | group.offset();
}

}  // namespace

GroupAssembler::GroupAssembler(SegmentSet& segments, uint64_t group_bytes_max)
    : segments_(segments), group_bytes_max_(group_bytes_max) {
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
  std::unique_ptr<GroupBuffer> group = std::move(outgoing_[number - outgoing_first_]);
  CHECK(group != nullptr);
  --outgoing_count_;
  if (group->capacity() == group_bytes_max_ && pool_.size() < kPooledMax) {
    pool_.push_back(std::move(group));
  }
  while (!outgoing_.empty() && outgoing_.front() == nullptr) {
    outgoing_.pop_front();
    ++outgoing_first_;
  }
}

std::optional<std::string> GroupAssembler::Find(const RecordRef& ref, Lsn lsn) const {
  if (open_ != nullptr) {
    if (std::optional<std::string> record = open_->Find(ref, lsn)) return record;
  }
  for (const std::unique_ptr<GroupBuffer>& group : outgoing_) {
    if (group == nullptr) continue;
    if (std::optional<std::string> record = group->Find(ref, lsn)) return record;
  }
  return std::nullopt;
}

uint64_t GroupAssembler::unwritten_place() const {
  if (!outgoing_.empty()) return PlaceOf(*outgoing_.front());
  return (segments_.active().header.segment.value() << 32) | segments_.end();
}

std::unique_ptr<GroupBuffer> GroupAssembler::TakeBuffer(uint64_t bytes) {
  if (bytes > group_bytes_max_ || pool_.empty()) {
    return std::make_unique<GroupBuffer>(std::max(bytes, group_bytes_max_));
  }
  std::unique_ptr<GroupBuffer> buffer = std::move(pool_.back());
  pool_.pop_back();
  return buffer;
}

void GroupAssembler::Push(std::unique_ptr<GroupBuffer> group) {
  outgoing_.push_back(std::move(group));
  ++outgoing_count_;
}

}  // namespace holdfast
