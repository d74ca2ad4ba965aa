#include "journal/record_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "journal/format/codec.h"
#include "journal/format/segment_header.h"
#include "journal/group_buffer.h"

namespace holdfast {
namespace {

// Whatever kept the bytes from being read says nothing about the record: it is neither absent nor
// bad.
Status ReadFailed(const Status& status) {
  return MakeStatus(StatusCode::kUnavailable, Detail::kIo, std::string(Message(status)));
}

// Takes the records of `places` out of what was read from `offset` on in the segment of `life`.
void AddRecords(const Life& life, uint64_t offset, ByteView bytes,
                std::span<const RecordSink::Place> places,
                RecordBlock& records) {
  std::optional<BatchView> batch;  // of the place before: its check is made once
  RecordRef judged;
  for (const auto& [ref, lsn] : places) {
    if (ref != judged) {
      const ByteView rest = bytes.subspan(std::min<uint64_t>(ref.offset - offset, bytes.size()));
      batch = ReadBatch(rest, life, ref.offset);
      if (batch.has_value() && batch->header.length != ref.length) batch.reset();
      judged = ref;
    }
    StatusOr<ByteView> record = ByteView();
    const bool holds = batch.has_value() && lsn >= batch->header.first_lsn &&
                       lsn <= batch->header.last_lsn();
    if (holds) record = NthRecord(batch->records, lsn - batch->header.first_lsn);
    if (holds && record.ok()) {
      records.Add(*record);
    } else {
      records.AddFailure(
          DataLoss("{}: the batch at offset {} fails its check; LSN {} cannot be read",
                   SegmentFileName(SegmentId(ref.segment)), ref.offset, lsn));
    }
  }
}

void AddFailures(const Status& why, size_t count, RecordBlock& records) {
  for (size_t i = 0; i < count; ++i) records.AddFailure(why);
}

}  // namespace

StatusOr<std::string> RecordReader::Read(const RecordRef& ref, Lsn lsn) {
  const RecordSink::Place place{ref, lsn};
  RecordBlock records;
  ReadMany({&place, 1}, records);
  RETURN_IF_ERROR(records.status(0));
  return std::string(AsText(records.record(0)));
}

void RecordReader::ReadMany(std::span<const RecordSink::Place> places, RecordBlock& records) {
  while (!places.empty()) {
    const RecordRef& first = places.front().ref;
    uint64_t end = uint64_t{first.offset} + first.length;
    size_t count = 1;
    for (; count < places.size(); ++count) {
      const RecordRef& next = places[count].ref;
      const uint64_t next_end = uint64_t{next.offset} + next.length;
      if (next.segment != first.segment || next.offset < places[count - 1].ref.offset ||
          next.offset > end + kGapBytesMax || next_end > first.offset + kWindowBytes) {
        break;
      }
      end = std::max(end, next_end);
    }
    ReadWindow(places.first(count), records);
    places = places.subspan(count);
  }
}

void RecordReader::ReadWindow(std::span<const RecordSink::Place> places,
                              RecordBlock& records) {
  const uint32_t segment = places.front().ref.segment;
  const size_t begin = records.size();
  const auto damaged = [&] {
    for (size_t i = begin; i < records.size(); ++i) {
      if (records.status(i).code() == StatusCode::kDataLoss) return true;
    }
    return false;
  };
  StatusOr<SharedSource> source = Find(segment);
  ReadFrom(source, places, records);
  if (!damaged()) return;

  const Presence presence = LookAgain(segment, **source);
  if (presence == Presence::kSame) return;  // so it is damage
  if (presence == Presence::kOther) {
    records.Truncate(begin);
    ReadFrom(Find(segment), places, records);
  }
  for (size_t i = begin; i < records.size(); ++i) {
    if (records.status(i).code() != StatusCode::kDataLoss) continue;
    records.Excuse(i, Unavailable(Detail::kIo,
                                  "{}: the segment was retired while it was read; a read-only "
                                  "engine that meets this is to be opened again",
                                  SegmentFileName(SegmentId(segment))));
  }
}

void RecordReader::ReadFrom(const StatusOr<SharedSource>& source,
                            std::span<const RecordSink::Place> places,
                            RecordBlock& records) {
  const uint64_t begin = places.front().ref.offset;
  uint64_t end = begin;
  for (const auto& place : places) {
    end = std::max(end, uint64_t{place.ref.offset} + place.ref.length);
  }
  // Whole blocks into aligned memory: what the device delivers is not copied.
  const uint64_t blocks_begin = AlignDown(begin, kIoAlignment);
  const uint64_t blocks_bytes = AlignUp(end, kIoAlignment) - blocks_begin;
  if (!source.ok()) {
    AddFailures(source.status(), places.size(), records);
    return;
  }
  if (places.size() > 1 && blocks_bytes >= kStreamBytesMin && (*source)->file->read_depth() > 1 &&
      TryStream(*source, blocks_begin, blocks_bytes, places, records)) {
    return;
  }
  StatusOr<AlignedBuffer> blocks = TakeBuffer(blocks_bytes);
  StatusOr<size_t> got(0);
  if (blocks.ok()) {
    got = (*source)->file->ReadAt(blocks_begin, blocks->span().first(blocks_bytes));
  } else {
    got = blocks.status();
  }
  if (!got.ok()) {
    AddFailures(ReadFailed(got.status()), places.size(), records);
    return;
  }
  AddRecords((*source)->life, blocks_begin, blocks->view().first(*got), places, records);
  KeepBuffer(*std::move(blocks));
}

bool RecordReader::TryStream(const SharedSource& source, uint64_t offset, uint64_t bytes,
                             std::span<const RecordSink::Place> places,
                             RecordBlock& records) {
  if (!stream_mu_.TryLock()) return false;
  const size_t before = records.size();
  const Status read = ReadStream(source, offset, bytes, places, records);
  // What was read ahead in the segment that is being written may be older than the records. An
  // error is told by whoever reads these places and nothing else.
  bool whole = read.ok();
  for (size_t i = before; whole && i < records.size(); ++i) whole = records.ok(i);
  if (!whole) {
    records.Truncate(before);
    CloseStream();
  }
  stream_mu_.Unlock();
  return whole;
}

Status RecordReader::ReadStream(const SharedSource& source, uint64_t offset, uint64_t bytes,
                                std::span<const RecordSink::Place> places,
                                RecordBlock& records) {
  if (stream_ == nullptr) {
    stream_ =
        std::make_unique<ReadAhead>(ReadAhead::Options{.threads = source->file->read_depth()});
  }
  if (bytes > stream_->span_bytes_max()) return Exhausted(Detail::kLimit, "larger than the ring");
  if (stream_source_ != source) {
    CloseStream();
    ASSIGN_OR_RETURN(const uint64_t size, source->file->Size());
    stream_->Open(*source->file, size);
    stream_source_ = source;
  }
  ASSIGN_OR_RETURN(const ReadAhead::Bytes got, stream_->At(offset, bytes));
  if (got.tail.empty()) {
    AddRecords(source->life, offset, got.head, places, records);
    return absl::OkStatus();
  }
  // Once in a lap of the ring.
  ASSIGN_OR_RETURN(AlignedBuffer together, TakeBuffer(bytes));
  std::memcpy(together.data(), got.head.data(), got.head.size());
  std::memcpy(together.data() + got.head.size(), got.tail.data(), got.tail.size());
  AddRecords(source->life, offset, together.view().first(got.head.size() + got.tail.size()), places,
             records);
  KeepBuffer(std::move(together));
  return absl::OkStatus();
}

void RecordReader::CloseStream() {
  if (stream_ != nullptr) stream_->Close();
  stream_source_ = nullptr;
}

// A large one costs more to be made and first touched than to be read into.
StatusOr<AlignedBuffer> RecordReader::TakeBuffer(uint64_t bytes) {
  if (bytes < kKeptBytesMin) return AlignedBuffer::Make(bytes);
  {
    MutexLock lock(mu_);
    if (kept_.size() >= bytes) return std::exchange(kept_, AlignedBuffer());
  }
  return AlignedBuffer::Make(std::max(bytes, kWindowBytes + 2 * kIoAlignment));
}

void RecordReader::KeepBuffer(AlignedBuffer buffer) {
  if (buffer.size() < kKeptBytesMin || buffer.size() > kKeptBytesMax) return;
  MutexLock lock(mu_);
  if (kept_.size() < buffer.size()) kept_ = std::move(buffer);
}

RecordReader::Presence RecordReader::LookAgain(uint32_t segment, const Source& source) {
  const StatusOr<SharedSource> now = Open(segment);
  if (now.ok() && (*now)->life.stamp == source.life.stamp) return Presence::kSame;
  MutexLock lock(mu_);
  Forget(segment);
  return now.ok() ? Presence::kOther : Presence::kGone;
}

void RecordReader::ForgetBelow(SegmentId segment) {
  // Whoever is in the stream is about to go on to another segment.
  if (stream_mu_.TryLock()) {
    if (stream_source_ != nullptr && stream_source_->life.segment < segment.value()) CloseStream();
    stream_mu_.Unlock();
  }
  MutexLock lock(mu_);
  oldest_ = std::max(oldest_, static_cast<uint32_t>(segment.value()));
  for (auto entry = used_.begin(); entry != used_.end();) {
    const uint32_t kept = (entry++)->segment;
    if (kept < oldest_) Forget(kept);
  }
}

void RecordReader::Forget(uint32_t segment) {
  const auto found = places_.find(segment);
  if (found == places_.end()) return;
  used_.erase(found->second);
  places_.erase(found);
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
  if (segment >= oldest_ && !places_.contains(segment)) {
    used_.push_front({segment, source});
    places_[segment] = used_.begin();
    if (used_.size() > files_max_) {
      places_.erase(used_.back().segment);
      used_.pop_back();
    }
  }
  return source;
}

StatusOr<RecordReader::SharedSource> RecordReader::Open(uint32_t segment) {
  // Direct: what the page cache holds is no evidence of what the disk does.
  StatusOr<std::unique_ptr<File>> file =
      storage_.OpenFile(SegmentFileName(SegmentId(segment)), OpenMode::kReadOnly, {.direct = true});
  if (!file.ok()) return ReadFailed(file.status());
  if ((*file)->read_depth() > 1) reads_ahead_.store(true, std::memory_order_relaxed);
  // The header names the life, and is whole before the file has its name. The Link bears the same
  // stamp, if it is written already: a header that fails its check costs nothing. A stamp that is
  // wrong makes every batch fail.
  std::vector<std::byte> head(kFirstGroupOffset);
  const StatusOr<size_t> got = (*file)->ReadAt(0, head);
  if (!got.ok()) return ReadFailed(got.status());
  const ByteView read = ByteView(head).first(*got);
  const ByteView block = read.first(std::min<size_t>(read.size(), kSegmentHeaderBytes));
  const StatusOr<SegmentHeader> header = DecodeSegmentHeader(block);
  const bool is_its = header.ok() && header->segment == SegmentId(segment) && header->salt == salt_;
  auto source = std::make_shared<Source>();
  source->file = *std::move(file);
  source->life = {.salt = salt_,
                  .segment = segment,
                  .stamp = is_its ? header->life
                                  : Decoder(read.subspan(block.size())).Fixed<uint64_t>()};
  return source;
}

}  // namespace holdfast
