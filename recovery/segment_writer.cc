#include "recovery/segment_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace holdfast {

Status SegmentWriter::WriteLink(const Link& link) {
  return segment_.file->WriteAt(kSegmentHeaderBytes,
                                EncodeLinkGroup(link, proof_, segment_.life()));
}

StatusOr<RecordRef> SegmentWriter::Append(const BatchHeader& header, ByteView records) {
  const auto full = [&] {
    return Exhausted(Detail::kLimit, "{}: a batch of {} bytes does not fit behind offset {}",
                     SegmentFileName(segment_.header.segment), records.size(), end());
  };
  if (records.size() > kGroupBytesMax) return full();
  const uint64_t batch_bytes = kBatchHeaderBytes + records.size();
  if (filled_ > 0 && filled_ + batch_bytes > kGroupBytes) RETURN_IF_ERROR(CloseGroup());
  const uint64_t begin = filled_ > 0 ? filled_ : kGroupHeaderBytes;
  const uint64_t group_bytes = AlignUp(begin + batch_bytes, kBlockBytes);
  if (group_bytes > kGroupBytesMax || group_begin_ + group_bytes > segment_.header.segment_bytes) {
    return full();
  }
  if (filled_ == 0) {
    const uint64_t room = segment_.header.segment_bytes - group_begin_;
    const uint64_t wanted = std::max(group_bytes, std::min(kGroupBytes, room));
    if (buffer_.size() < wanted) {
      ASSIGN_OR_RETURN(buffer_, AlignedBuffer::Make(wanted));
    }
    std::memset(buffer_.data(), 0, buffer_.size());
    first_lsn_ = header.first_lsn;
  }
  const ByteSpan batch = buffer_.span().subspan(begin, batch_bytes);
  std::memcpy(batch.data() + kBatchHeaderBytes, records.data(), records.size());
  BatchHeader sealed = header;
  sealed.length = Narrow<uint32_t>(batch_bytes);
  const uint64_t offset = group_begin_ + begin;
  SealBatch(batch, sealed, segment_.life(), offset);
  filled_ = AlignUp(begin + batch_bytes, kBatchAlignment);
  ++batches_;
  records_ += header.records;
  return RecordRef{.segment = static_cast<uint32_t>(segment_.header.segment.value()),
                   .offset = Narrow<uint32_t>(offset),
                   .length = sealed.length};
}

Status SegmentWriter::Finish() {
  if (filled_ > 0) RETURN_IF_ERROR(CloseGroup());
  return segment_.file->SyncData();
}

Status SegmentWriter::CloseGroup() {
  const uint64_t length = AlignUp(filled_, kBlockBytes);
  GroupHeader header = proof_;
  header.length = Narrow<uint32_t>(length);
  header.flags = 0;
  header.batches =
      static_cast<uint16_t>(std::min<uint64_t>(batches_, std::numeric_limits<uint16_t>::max()));
  header.records = Narrow<uint32_t>(records_);
  header.first_lsn = first_lsn_;
  const ByteSpan group = buffer_.span().first(length);
  SealGroup(group, header, segment_.life(), group_begin_);
  RETURN_IF_ERROR(segment_.file->WriteAt(group_begin_, group));
  group_begin_ += length;
  filled_ = batches_ = records_ = 0;
  return absl::OkStatus();
}

uint64_t SegmentWriter::BytesNeeded(uint64_t batch_bytes) {
  // Two groups that follow each other hold more than kGroupBytes together, and a group adds less
  // than a block and its header.
  const uint64_t groups = 2 * (batch_bytes / kGroupBytes) + 2;
  return kFirstGroupOffset + AlignUp(batch_bytes, kBlockBytes) + groups * 2 * kBlockBytes;
}

}  // namespace holdfast
