#include "recovery/evidence.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "journal/base/check.h"

namespace holdfast {
namespace {

constexpr size_t kTracedSegments = 2;  // at most half a segment is ever unsynced
// For the same reason nothing can stand in more of those that were made ahead of need.
constexpr size_t kTracedBehind = 2;
// Not counted as unsynced where room for a batch is found: the segment's header and its Link.
constexpr uint64_t kUnsyncedBesides = kSegmentHeaderBytes + kBlockBytes;
constexpr int kViewAttempts = 5;

}  // namespace

class EvidenceGathering::Gatherer {
 public:
  Gatherer(Storage& storage, const StoreLayout& layout)
      : storage_(storage), layout_(layout), host_boot_id_(storage.host_boot_id()) {}

  void ReadLinks() {
    FromMark();
    FromLinks();
    FromCheckpoints();
  }
  const std::vector<ChainSegment>& chain() const { return evidence_.chain; }

  Status TraceTail() {
    const size_t behind = layout_.chain_end;
    const size_t first = std::max(layout_.chain_begin, behind - std::min(behind, kTracedSegments));
    const size_t end = std::min(layout_.segments.size(), behind + kTracedBehind);
    for (size_t i = first; i < end; ++i) {
      ASSIGN_OR_RETURN(const bool more, Trace(i));
      if (!more) break;
    }
    return absl::OkStatus();
  }

  Evidence Conclude() {
    for (ChainSegment& segment : evidence_.chain) {
      if (const TracedSegment* traced = evidence_.Traced(segment.id); traced != nullptr) {
        segment.last_group = traced->trace.last_group();
        segment.file = traced->file.get();
      }
    }
    evidence_.rules.horizon = Horizon(evidence_.tail);
    evidence_.highest_lsn = std::max(evidence_.highest_lsn, evidence_.rules.horizon);
    evidence_.engine_time = absl::Nanoseconds(engine_ns_);
    evidence_.bytes_read = window_.bytes_read();
    return std::move(evidence_);
  }

 private:
  bool ThisHostBoot(const Link& link) const {
    return !host_boot_id_.empty() && link.host_boot_id == host_boot_id_;
  }

  void FromMark() {
    engine_ns_ = layout_.mark.heartbeat_ns;
    const std::optional<Mark>& mark = layout_.mark.mark;
    if (!mark.has_value()) return;
    evidence_.tail.mark_synced = mark->synced;
    evidence_.rules.mark_clean = mark->clean;
    evidence_.rules.mark_end = {mark->end_segment, mark->end_offset};
    engine_ns_ = std::max(engine_ns_, mark->engine_ns);
  }

  // A file that has its name was complete, and S had reached what it holds.
  void FromCheckpoints() {
    for (const CheckpointFile& file : layout_.checkpoints) {
      if (!file.status.ok()) continue;
      engine_ns_ = std::max(engine_ns_, file.header.engine_ns);
      evidence_.tail.checkpoint = std::max(evidence_.tail.checkpoint, file.footer.through);
    }
  }

  void FromLinks() {
    for (size_t i = 0; i < layout_.segments.size(); ++i) {
      const SegmentFile& file = layout_.segments[i];
      if (!file.link.has_value()) continue;
      // Numbers up to there may have been given out, also by a boot that left nothing else.
      See(file.link->next - 1);
      engine_ns_ = std::max(engine_ns_, file.link_header.engine_ns);
      if (file.state == SegmentState::kChain) Chain(i);
    }
  }

  void Chain(size_t index) {
    const SegmentFile& file = layout_.segments[index];
    evidence_.chain.push_back({.id = file.id,
                               .life = file.life,
                               .segment_bytes = file.segment_bytes,
                               .link = *file.link,
                               .end = RecordedEnd(layout_, index)});
    Prove(file.link_header.synced, file.link_header.promised, ThisHostBoot(*file.link));
    if (file.link->reason == LinkReason::kOpen) {
      evidence_.tail.copied_through = std::max(evidence_.tail.copied_through, file.link->through);
    }
  }

  // What a void file holds, nothing of it was ever synced, its Link neither: with it at most half a
  // segment (Appender::UnsyncedFits), from its beginning on. `empty_through` of its trace.
  static uint64_t EmptyThrough(const SegmentFile& file) {
    return file.state == SegmentState::kVoid ? file.segment_bytes / 2 + kUnsyncedBesides
                                             : file.segment_bytes;
  }

  // False: nothing can stand in the segments behind it.
  StatusOr<bool> Trace(size_t index) {
    const SegmentFile& file = layout_.segments[index];
    if (file.life.stamp == 0) return true;
    TracedSegment traced{.id = file.id, .chained = file.state == SegmentState::kChain};
    ASSIGN_OR_RETURN(traced.file,
                     storage_.OpenFile(file.name(), OpenMode::kReadOnly, {.direct = true}));
    RETURN_IF_ERROR(window_.Open(*traced.file));
    ASSIGN_OR_RETURN(traced.trace, TraceSegment(window_, file.life, file.segment_bytes,
                                                EmptyThrough(file)));
    See(traced.trace.highest_lsn);
    engine_ns_ = std::max(engine_ns_, traced.trace.engine_ns);
    // A void file of the boot that wrote the newest Link is behind it in time; of any other boot it
    // is dead, whatever it says.
    const std::optional<Link>& newest = layout_.newest().link;
    const std::optional<Link>& link = file.link.has_value() ? file.link : newest;
    const bool ahead = file.state == SegmentState::kVoid && newest.has_value() &&
                       file.header->epoch == newest->epoch;
    if (!traced.chained && !ahead) return true;
    const bool this_host_boot = link.has_value() && ThisHostBoot(*link);
    traced.end = traced.chained ? RecordedEnd(layout_, index) : file.segment_bytes;
    for (const SegmentTrace::Group& group : traced.trace.groups) {
      if (group.offset < traced.end) Prove(group.synced, group.promised, this_host_boot);
    }
    // The boot goes on to the next one when this one is nearly full.
    const bool untouched = ahead && traced.trace.stamped_end == 0;
    evidence_.traced.push_back(std::move(traced));
    return !untouched;
  }

  void See(Lsn lsn) { evidence_.highest_lsn = std::max(evidence_.highest_lsn, lsn); }
  void Prove(Lsn synced, Lsn promised, bool this_host_boot) {
    evidence_.tail.group_synced = std::max(evidence_.tail.group_synced, synced);
    if (this_host_boot) {
      evidence_.tail.promised = std::max(evidence_.tail.promised, promised);
    }
  }

  Storage& storage_;
  const StoreLayout& layout_;
  const std::string host_boot_id_;
  ReadWindow window_;
  Evidence evidence_;
  int64_t engine_ns_ = 0;
};

const TracedSegment* Evidence::Traced(SegmentId id) const {
  const auto found = std::find_if(traced.begin(), traced.end(),
                                  [&](const TracedSegment& segment) { return segment.id == id; });
  return found == traced.end() ? nullptr : &*found;
}

EvidenceGathering::EvidenceGathering(Storage& storage, const StoreLayout& layout) {
  CHECK(layout.has_chain());
  gatherer_ = std::make_unique<Gatherer>(storage, layout);
  gatherer_->ReadLinks();
  links_.chain = gatherer_->chain();
}

EvidenceGathering::~EvidenceGathering() {
  if (thread_.joinable()) thread_.join();
}

void EvidenceGathering::TraceAside() {
  CHECK(!thread_.joinable());
  try {
    thread_ = std::thread([this] {
      try {
        trace_status_ = gatherer_->TraceTail();
      } catch (const std::bad_alloc&) {
        trace_status_ = Exhausted(Detail::kLimit, "not enough memory to trace the newest segments");
      }
    });
  } catch (const std::system_error&) {
    return;  // No more threads to be had: Finish does it.
  }
}

StatusOr<Evidence> EvidenceGathering::Finish() {
  if (thread_.joinable()) {
    thread_.join();
  } else {
    trace_status_ = gatherer_->TraceTail();
  }
  RETURN_IF_ERROR(trace_status_);
  return gatherer_->Conclude();
}

StatusOr<Evidence> GatherEvidence(Storage& storage, const StoreLayout& layout) {
  return EvidenceGathering(storage, layout).Finish();
}

Status Changing(const Storage& storage, const Status& met) {
  return Unavailable(Detail::kIo, "{}: a writer changes the store while it is read ({}); try again",
                     storage.display_path(), Message(met));
}

bool HasChanged(Storage& storage, const StoreLayout& layout) {
  const StatusOr<StoreLayout> now = ReadLayout(storage);
  return !now.ok() || !now->SameAs(layout);
}

bool ChainHasChanged(Storage& storage, const StoreLayout& layout) {
  const auto clean = [](const StoreLayout& of) {
    return of.mark.mark.has_value() && of.mark.mark->clean;
  };
  const StatusOr<StoreLayout> now = ReadLayout(storage);
  return !now.ok() || !now->KeepsChainOf(layout) || (clean(layout) && !clean(*now));
}

bool ChainHasGrown(Storage& storage, const StoreLayout& layout,
                   const std::optional<ChainDamage>& damage) {
  if (!damage.has_value() || damage->place.segment < layout.newest().id) return false;
  const StatusOr<StoreLayout> now = ReadLayout(storage);
  return !now.ok() || (now->has_chain() && now->newest().id > layout.newest().id);
}

StatusOr<StoreView> ReadView(Storage& storage, Evidences evidences) {
  for (int attempt = 1;; ++attempt) {
    const bool last = attempt == kViewAttempts;
    StatusOr<StoreLayout> layout = ReadLayout(storage);
    if (!layout.ok()) {
      if (layout.status().code() != StatusCode::kNotFound) return layout.status();
      // An empty directory, or a file that was listed and then gone?
      ASSIGN_OR_RETURN(const StoreNames names, ListStore(storage));
      if (names.segments.empty()) return layout.status();
      if (last) return Changing(storage, layout.status());
      continue;
    }
    StoreView view{.layout = *std::move(layout), .evidence = std::nullopt};
    if (!view.layout.damages.empty()) {
      if (last || !HasChanged(storage, view.layout)) return view;
      continue;
    }
    if (!view.layout.has_chain() || evidences == Evidences::kLeaveOut) return view;
    StatusOr<Evidence> evidence = GatherEvidence(storage, view.layout);
    if (evidence.ok()) {
      view.evidence = *std::move(evidence);
      return view;
    }
    if (evidence.status().code() != StatusCode::kNotFound) return evidence.status();
    if (last) return Changing(storage, evidence.status());
  }
}

}  // namespace holdfast
