#include "journal/group_buffer.h"

#include <algorithm>
#include <limits>

namespace holdfast {

void GroupBuffer::Open(const Life& life, uint64_t offset, uint64_t room) {
  CHECK(IsAligned(offset, kBlockBytes));
  life_ = life;
  offset_ = offset;
  used_ = kGroupHeaderBytes;
  limit_ = std::min({capacity(), AlignDown(room, kBlockBytes), kGroupBytesMax});
  records_ = 0;
  batches_.clear();
}

void GroupBuffer::OpenSealed(const Life& life, uint64_t offset, ByteView block) {
  Open(life, offset, block.size());
  std::memcpy(bytes_.data(), block.data(), block.size());
  used_ = block.size();
}

RecordRef GroupBuffer::Add(const BatchDraft& draft, Lsn first) {
  CHECK(Fits(draft.batch_bytes()));
  CHECK(draft.count() > 0 && draft.count() <= kBatchRecordsMax);
  const std::string_view records = draft.bytes();
  const Batch batch{.place = static_cast<uint32_t>(used_),
                    .length = static_cast<uint32_t>(kBatchHeaderBytes + records.size()),
                    .first = first,
                    .records = static_cast<uint16_t>(draft.count())};
  std::byte* begin = bytes_.data() + used_;
  std::memcpy(begin + kBatchHeaderBytes, records.data(), records.size());
  used_ += draft.batch_bytes();
  std::memset(begin + batch.length, 0, draft.batch_bytes() - batch.length);
  records_ += draft.count();
  batches_.push_back(batch);
  return {.segment = life_.segment,
          .offset = static_cast<uint32_t>(offset_ + batch.place),
          .length = batch.length};
}

void GroupBuffer::Seal(GroupHeader header, Epoch epoch) {
  CHECK(!empty());
  for (const Batch& batch : batches_) {
    SealBatch(bytes_.subspan(batch.place, batch.length),
              {.length = batch.length,
               .first_lsn = batch.first,
               .records = batch.records,
               .epoch = static_cast<uint32_t>(epoch.value())},
              life_, offset_ + batch.place);
  }
  std::memset(bytes_.data() + used_, 0, length() - used_);
  header.length = static_cast<uint32_t>(length());
  header.batches = static_cast<uint16_t>(
      std::min<size_t>(batches_.size(), std::numeric_limits<uint16_t>::max()));
  header.records = Narrow<uint32_t>(records_);
  header.first_lsn = batches_.front().first;
  SealGroup(bytes_.first(length()), header, life_, offset_);
}

void GroupBuffer::Forget() {
  bytes_ = {};
  own_ = AlignedBuffer();
  batches_.clear();
}

std::optional<std::string> GroupBuffer::Find(const RecordRef& ref, Lsn lsn) const {
  if (ref.segment != life_.segment || ref.offset < offset_ || ref.offset >= offset_ + used_) {
    return std::nullopt;
  }
  const uint64_t place = ref.offset - offset_;
  const auto batch =
      std::lower_bound(batches_.begin(), batches_.end(), place,
                       [](const Batch& b, uint64_t wanted) { return b.place < wanted; });
  if (batch == batches_.end() || batch->place != place || lsn < batch->first ||
      lsn >= batch->first + batch->records) {
    return std::nullopt;
  }
  const StatusOr<ByteView> record =
      NthRecord(memory().subspan(place + kBatchHeaderBytes, batch->length - kBatchHeaderBytes),
                lsn - batch->first);
  CHECK_OK(record);
  return std::string(AsText(*record));
}

StatusOr<ByteView> NthRecord(ByteView records, uint64_t index) {
  for (;; --index) {
    const ByteView from = records;
    RETURN_IF_ERROR(TakeRecord(records).status());
    if (index == 0) return from.first(from.size() - records.size());
  }
}

}  // namespace holdfast
