#include "journal/record_reader.h"

#include <utility>
#include <vector>

#include "journal/format/segment_header.h"
#include "journal/group_buffer.h"

namespace holdfast {
namespace {

// Whatever kept the bytes from being read says nothing about the record: it is neither absent nor
// bad.
Status ReadFailed(const Status& status) {
  return MakeStatus(StatusCode::kUnavailable, Detail::kIo, std::string(Message(status)));
}

}  // namespace

StatusOr<std::string> RecordReader::Read(const RecordRef& ref, Lsn lsn) {
  ASSIGN_OR_RETURN(const SharedSource source, Find(ref.segment));
  std::vector<std::byte> bytes(ref.length);
  const StatusOr<size_t> got = source->file->ReadAt(ref.offset, bytes);
  if (!got.ok()) return ReadFailed(got.status());
  const auto damaged = [&] {
    return DataLoss("{}: the batch at offset {} fails its check; LSN {} cannot be read",
                    SegmentFileName(SegmentId(ref.segment)), ref.offset, lsn);
  };
  const std::optional<BatchView> batch =
      ReadBatch(ByteView(bytes).first(*got), source->life, ref.offset);
  if (!batch.has_value() || batch->header.length != ref.length) return damaged();
  if (lsn < batch->header.first_lsn || lsn > batch->header.last_lsn()) return damaged();
  StatusOr<std::string> record = NthRecord(batch->records, lsn - batch->header.first_lsn);
  if (!record.ok()) return damaged();
  return record;
}

StatusOr<RecordReader::SharedSource> RecordReader::Find(uint32_t segment) {
  {
    MutexLock lock(mu_);
    if (const auto found = places_.find(segment); found != places_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      return found->second->source;
    }
  }
  ASSIGN_OR_RETURN(SharedSource source, Open(segment));
  MutexLock lock(mu_);
  if (!places_.contains(segment)) {
    used_.push_front({segment, source});
    places_[segment] = used_.begin();
    if (used_.size() > files_max_) {
      places_.erase(used_.back().segment);
      used_.pop_back();
    }
  }
  return source;
}

StatusOr<RecordReader::SharedSource> RecordReader::Open(uint32_t segment) const {
  // Direct: what the page cache holds is no evidence of what the disk does.
  StatusOr<std::unique_ptr<File>> file =
      storage_.OpenFile(SegmentFileName(SegmentId(segment)), OpenMode::kReadOnly, {.direct = true});
  if (!file.ok()) return ReadFailed(file.status());
  std::vector<std::byte> block(kSegmentHeaderBytes);
  const StatusOr<size_t> got = (*file)->ReadAt(0, block);
  if (!got.ok()) return ReadFailed(got.status());
  block.resize(*got);
  ASSIGN_OR_RETURN(const SegmentHeader header, DecodeSegmentHeader(block));
  auto source = std::make_shared<Source>();
  source->file = *std::move(file);
  source->life = header.life_of();
  return source;
}

}  // namespace holdfast
