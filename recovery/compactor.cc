#include "recovery/compactor.h"

#include <algorithm>
#include <utility>

#include "journal/io/aligned_buffer.h"
#include "journal/segment.h"

namespace holdfast {
namespace {

// What goes into one batch: large enough to cost little, small enough to hold up nobody.
constexpr uint64_t kBatchBytes = uint64_t{32} << 10;
// What a record may take more when it is stated again: its numbers have grown.
constexpr uint64_t kGrowth = 64;

}  // namespace

Compactor::Compactor(Storage& storage, RecordSink& sink, const StateMachines& machines,
                     uint64_t salt, uint64_t batch_bytes_max)
    : storage_(storage),
      sink_(sink),
      machines_(machines),
      salt_(salt),
      batch_bytes_max_(std::min(batch_bytes_max, kBatchBytes)) {}

Status Compactor::Begin(const SealedSegment& segment) {
  reader_.reset();
  segment_ = segment;
  const std::string name = SegmentFileName(segment.segment);
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                   storage_.OpenFile(name, OpenMode::kReadOnly, {.direct = true}));
  AlignedBuffer head(kFirstGroupOffset);
  ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, head.span()));
  if (got < kFirstGroupOffset) return DataLoss("{}: it ends after {} bytes", name, got);
  const StatusOr<SegmentHeader> header =
      DecodeSegmentHeader(head.view().first(kSegmentHeaderBytes));
  if (!header.ok()) return Annotate(header.status(), name);
  const LinkView link = DecodeLinkGroup(head.view().subspan(kSegmentHeaderBytes),
                                        {.salt = salt_,
                                         .segment = static_cast<uint32_t>(segment.segment.value()),
                                         .stamp = header->life});
  if (link.shape != Shape::kValid) return DataLoss("{}: its Link fails its check", name);
  chain_ = {{.id = segment.segment,
             .life = header->life_of(),
             .segment_bytes = header->segment_bytes,
             .link = link.link,
             .end = segment.end}};
  reader_ = std::make_unique<JournalReader>(storage_, chain_, ReadRules{.horizon = segment.last});
  counted_bytes_ = 0;
  return absl::OkStatus();
}

StatusOr<bool> Compactor::Step(uint64_t piece_bytes) {
  CHECK(active());
  StatusOr<bool> more = ReadPiece(piece_bytes);
  if (more.ok()) {
    const Status restated = RestatePiece();
    if (!restated.ok()) more = restated;
  }
  if (!more.ok() || !*more) Stop();
  return more;
}

// Copies the next records, without the sequencer.
StatusOr<bool> Compactor::ReadPiece(uint64_t piece_bytes) {
  bytes_.clear();
  candidates_.clear();
  bool more = true;
  while (more && bytes_.size() < piece_bytes) {
    // What a cut left behind the last record is none of ours.
    more = reader_->last_lsn() < segment_.last;
    if (more) {
      ASSIGN_OR_RETURN(more, reader_->Next());
    }
    if (!more) break;
    ByteView rest = reader_->batch().records;
    for (Lsn lsn = reader_->batch().header.first_lsn; !rest.empty(); lsn = lsn + 1) {
      const ByteView from = rest;
      ASSIGN_OR_RETURN(const RawRecord record, TakeRecord(rest));
      const StateMachine* machine = machines_.For(static_cast<RecordType>(record.header.type));
      if (machine != nullptr) machine->Expect(record);
      const size_t begin = bytes_.size();
      bytes_ += AsText(from.first(from.size() - rest.size()));
      candidates_.push_back({.lsn = lsn, .begin = begin, .end = bytes_.size()});
    }
  }
  counts_.read_bytes += reader_->bytes_read() - counted_bytes_;
  counted_bytes_ = reader_->bytes_read();
  return more;
}

Status Compactor::RestatePiece() {
  for (size_t from = 0; from < candidates_.size();) {
    bool appended = false;
    {
      MutexLock lock(sink_.sequencer());
      size_t next = Fill(from);
      if (!draft_.empty()) {
        const uint64_t reserved = draft_.batch_bytes();
        const Lsn newest = sink_.appended();
        RETURN_IF_ERROR(sink_.Reserve(reserved, Claim::kReclaim));
        // Where it has waited, what was live may be dead, or have other numbers in it.
        if (sink_.appended() != newest) next = Fill(from);
        if (draft_.batch_bytes() > reserved) continue;
      }
      if (!draft_.empty()) {
        sink_.Append(draft_);
        counts_.restated_records += draft_.count();
        counts_.restated_bytes += draft_.bytes().size();
        appended = true;
      }
      from = next;
    }
    if (appended) sink_.Kick();
  }
  return absl::OkStatus();
}

// Drafts the live ones from `from` on until a batch is full; returns the first that is not in it.
size_t Compactor::Fill(size_t from) {
  draft_.Clear();
  size_t next = from;
  for (; next < candidates_.size(); ++next) {
    const Candidate& candidate = candidates_[next];
    const uint64_t size = candidate.end - candidate.begin;
    if (!draft_.empty() && draft_.batch_bytes() + size + kGrowth > batch_bytes_max_) break;
    ByteView bytes = AsBytes(bytes_).subspan(candidate.begin, size);
    const StatusOr<RawRecord> record = TakeRecord(bytes);
    CHECK_OK(record);
    const StateMachine* machine = machines_.For(static_cast<RecordType>(record->header.type));
    if (machine == nullptr || !CheckRecord(*record).ok()) continue;
    machine->Restate(*record, candidate.lsn, draft_);
  }
  return next;
}

}  // namespace holdfast
