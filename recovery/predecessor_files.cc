#include "recovery/predecessor_files.h"

#include <algorithm>
#include <string>

#include "journal/segment_set.h"

namespace holdfast {
namespace {

// The newest segment, one ahead of need, and the reserve.
constexpr size_t kSparesMax = 2 + SegmentSet::Options().reserve;

}  // namespace

Status PredecessorFiles::GatherSpares(std::map<SegmentId, std::unique_ptr<File>>& locks) {
  for (const std::string& name : view_.layout.names.spares) {
    const SegmentId id = ParseSpareFileName(name);  // none: cut short while it was made
    bool keep = false;
    if (id && spares_.size() < kSparesMax) {
      ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                       storage_.OpenFile(name, OpenMode::kReadOnly));
      ASSIGN_OR_RETURN(const uint64_t size, file->Size());
      keep = size == segment_bytes_;
    }
    if (keep) {
      spares_.push_back(id);
    } else {
      RETURN_IF_ERROR(storage_.Remove(name));
    }
  }
  const size_t before = spares_.size();
  for (const SegmentFile& file : view_.layout.segments) {
    if (spares_.size() == kSparesMax) break;
    if (file.state != SegmentState::kVoid || file.file_bytes != segment_bytes_) continue;
    const TracedSegment* traced = view_.evidence->Traced(file.id);
    const bool touched = traced != nullptr && traced->trace.stamped_end != 0;
    if (touched || std::find(spares_.begin(), spares_.end(), file.id) != spares_.end()) continue;
    locks.erase(file.id);  // nothing is in flight: it was to be had
    RETURN_IF_ERROR(storage_.Rename(file.name(), SpareFileName(file.id)));
    spares_.push_back(file.id);
  }
  // A name that could come back may not be a segment by then.
  return spares_.size() > before ? storage_.SyncFolder(kJournalFolder) : absl::OkStatus();
}

StatusOr<Segment> PredecessorFiles::MakeNewest(const SegmentHeader& header) {
  if (!spares_.empty() && header.segment_bytes == segment_bytes_) {
    const SegmentId spare = spares_.back();
    spares_.pop_back();
    return RecycleSegment(storage_, spare, header);
  }
  StatusOr<Segment> prepared = PrepareSegment(storage_, header);
  if (DetailOf(prepared.status()) == Detail::kDiskFull && FreeReserve()) {
    prepared = PrepareSegment(storage_, header);
  }
  return prepared;
}

// Segments that the predecessor made ahead, or that are dead: no batch that is taken stands in one.
bool PredecessorFiles::FreeReserve() {
  bool freed = false;
  for (const SegmentId spare : spares_) freed |= storage_.Remove(SpareFileName(spare)).ok();
  spares_.clear();
  for (const SegmentFile& file : view_.layout.segments) {
    if (file.state != SegmentState::kChain) freed |= storage_.Remove(file.name()).ok();
  }
  return freed;
}

void PredecessorFiles::Free(const Continuation& next) {
  for (const SegmentFile& file : view_.layout.segments) {
    const bool kept = file.state == SegmentState::kChain && file.id < next.segment;
    if (kept || file.id == next.segment) continue;
    const bool keep = file.state == SegmentState::kRetired && IsRestated(view_.layout);
    const Status removed =
        keep ? storage_.Rename(file.name(), QuarantineName(view_.layout.names, file.name()))
             : storage_.Remove(file.name());
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) {
      Warn(fmt::format("{}: not needed any more, but: {}", file.name(), Message(removed)));
    }
  }
  CutPredecessors(next);
}

// The segments that an open closed, this one's predecessor and those that an open which was cut
// short left as they were.
void PredecessorFiles::CutPredecessors(const Continuation& next) {
  StoreLayout& layout = view_.layout;
  for (size_t i = layout.chain_begin; i < layout.chain_end; ++i) {
    SegmentFile& file = layout.segments[i];
    if (file.id >= next.segment) return;
    const bool newest = file.id == next.previous;
    if (!newest && layout.segments[i + 1].link->reason != LinkReason::kOpen) continue;
    const uint64_t end = AlignUp(newest ? next.previous_end : RecordedEnd(layout, i), kBlockBytes);
    if (file.file_bytes <= end) continue;
    if (const Status cut = CutShort(file, end); !cut.ok()) {
      Warn(fmt::format("{}: not cut short: {}", file.name(), Message(cut)));
    }
  }
}

Status PredecessorFiles::CutShort(SegmentFile& segment, uint64_t end) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                   storage_.OpenFile(segment.name(), OpenMode::kReadWrite));
  uint64_t stamped_end = 0;
  if (const TracedSegment* traced = view_.evidence->Traced(segment.id); traced != nullptr) {
    stamped_end = traced->trace.stamped_end;
  } else {
    ReadWindow window;
    RETURN_IF_ERROR(window.Open(*file));
    ASSIGN_OR_RETURN(const SegmentTrace trace,
                     TraceSegment(window, segment.life, segment.segment_bytes));
    stamped_end = trace.stamped_end;
  }
  end = std::max(end, stamped_end);
  if (segment.file_bytes <= end) return absl::OkStatus();
  RETURN_IF_ERROR(file->Truncate(end));
  segment.file_bytes = end;
  return file->SyncData();
}

std::vector<SealedSegment> PredecessorFiles::Sealed(const Continuation& next) const {
  std::vector<SealedSegment> all;
  const StoreLayout& layout = view_.layout;
  for (size_t i = layout.chain_begin; i < layout.chain_end; ++i) {
    const SegmentFile& file = layout.segments[i];
    if (file.id >= next.segment) break;
    SealedSegment sealed{
        .segment = file.id, .last = {}, .file_bytes = file.file_bytes, .end = next.previous_end};
    if (file.id == next.previous) {
      sealed.last = next.previous_last;
    } else {
      sealed.last = layout.segments[i + 1].link->previous_last_lsn;
      sealed.end = RecordedEnd(layout, i);
    }
    all.push_back(sealed);
  }
  return all;
}

}  // namespace holdfast
