#include "recovery/survey.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "journal/base/check.h"
#include "journal/segment_scan.h"
#include "recovery/evidence.h"
#include "recovery/replayer.h"
#include "recovery/store_layout.h"

namespace holdfast {
namespace {

constexpr int kReplayAttempts = 5;  // beside a live writer

// The walk through one segment, from damage to damage.
class SegmentWalk {
 public:
  struct Bounds {
    bool chained = false;
    uint64_t live_end = 0;     // records from here on are not live
    bool end_is_open = false;  // no cut was found: the end is where nothing more must be
    Lsn horizon;               // H
  };
  struct Totals {
    uint64_t records = 0, dead_records = 0;
    Lsn last_lsn;
    bool torn = false;  // the live part of the whole chain ends inside
  };

  SegmentWalk(ReadWindow& window, const SegmentFile& file, const Bounds& bounds,
              const SurveyOptions& options, SurveyVisitor& visitor, std::vector<Damage>& damages)
      : window_(window),
        file_(file),
        bounds_(bounds),
        options_(options),
        visitor_(visitor),
        damages_(damages) {
    if (file.link.has_value()) {
      next_ = file.link->first == file.link->through + 1 ? file.link->next : file.link->first;
    }
  }

  StatusOr<Totals> Run() {
    if (file_.life.stamp == 0) return totals_;
    uint64_t offset = kFirstGroupOffset;
    while (offset + kBlockBytes <= file_.segment_bytes && offset < window_.file_bytes()) {
      ASSIGN_OR_RETURN(const GroupOnDisk group,
                       ReadGroup(window_, file_.life, offset, file_.segment_bytes, next_));
      if (group.readable) {
        offset = WalkGroup(group, offset);
      } else {
        ASSIGN_OR_RETURN(offset, SkipTo(offset));
      }
    }
    if (Live(offset) && !bounds_.end_is_open && Judged(offset)) {
      Report(offset, bounds_.live_end - offset, next_, Lsn(), "the file ends there");
    }
    return totals_;
  }

 private:
  bool Live(uint64_t offset) const {
    return bounds_.chained && !ended_ && offset < bounds_.live_end;
  }

  void Report(uint64_t offset, uint64_t bytes, Lsn first, Lsn last, std::string reason,
              bool refuses_open = true) {
    damages_.push_back({.file = file_.name(),
                        .segment = file_.id,
                        .offset = offset,
                        .bytes = bytes,
                        .first_lsn = first,
                        .last_lsn = last,
                        .reason = std::move(reason),
                        .refuses_open = refuses_open});
  }

  // Tells the batches of one group and returns where the next group goes.
  uint64_t WalkGroup(const GroupOnDisk& group, uint64_t offset) {
    const uint64_t end = offset + group.header.length;
    if (group.headerless && Live(offset)) {
      Report(offset, kGroupHeaderBytes, Lsn(), Lsn(),
             "a group header fails its check; the batches behind it are healthy", false);
    }
    BatchCursor cursor(group.bytes, group.header, file_.life, offset);
    uint64_t behind = offset + kGroupHeaderBytes;
    for (;;) {
      switch (cursor.Next()) {
        case BatchCursor::Step::kBatch:
          behind = TellBatch(cursor.batch());
          break;
        case BatchCursor::Step::kEnd:
          if (Live(offset) && end <= bounds_.live_end && !group.headerless &&
              !cursor.PaddingIsZero()) {
            Report(behind, end - behind, Lsn(), Lsn(), "padding is not zero", false);
          }
          return end;
        case BatchCursor::Step::kBad:
          if (group.headerless) return AlignUp(behind, kBlockBytes);
          if (!PassBadBatch(cursor, group.header, end)) return end;
          behind = TellBatch(cursor.batch());
          break;
      }
    }
  }

  // False: nothing more in the group passes.
  bool PassBadBatch(BatchCursor& cursor, const GroupHeader& header, uint64_t end) {
    const uint64_t bad = cursor.bad_offset();
    const Lsn lost = cursor.next_lsn();
    const bool damage = Judged(bad);
    const bool resumed = cursor.Resync();
    if (!damage) return resumed;
    const uint64_t resumes = resumed ? cursor.batch().offset : end;
    const Lsn last =
        resumed ? cursor.batch().header.first_lsn - 1 : header.first_lsn + (header.records - 1u);
    Report(bad, resumes - bad, lost, last, "a batch fails its check");
    next_ = last + 1;
    return resumed;
  }

  // Whether bad bytes at `offset`, where next_ must stand, are damage. If not, the live part ends
  // here.
  bool Judged(uint64_t offset) {
    if (!Live(offset)) return false;
    if (next_ <= bounds_.horizon) return true;
    ended_ = totals_.torn = true;
    return false;
  }

  // Returns the end of the batch.
  uint64_t TellBatch(const BatchView& batch) {
    const uint64_t end = AlignUp(batch.offset + batch.header.length, kBatchAlignment);
    bool live = Live(batch.offset);
    if (live && next_ && batch.header.first_lsn != next_) {
      const bool later = batch.header.first_lsn > next_;
      Report(batch.offset, later ? 0 : end - batch.offset, next_,
             later ? batch.header.first_lsn - 1 : Lsn(),
             fmt::format("LSN {} stands there", batch.header.first_lsn));
      live = later;
    }
    if (live) {
      totals_.last_lsn = batch.header.last_lsn();
      next_ = totals_.last_lsn + 1;
      if (file_.link.has_value() && totals_.last_lsn == file_.link->through) {
        next_ = file_.link->next;
      }
    }
    (live ? totals_.records : totals_.dead_records) += batch.header.records;
    TellRecords(batch, live);
    return end;
  }

  void TellRecords(const BatchView& batch, bool live) {
    SurveyedRecord told{.ref = {.segment = static_cast<uint32_t>(file_.id.value()),
                                .offset = static_cast<uint32_t>(batch.offset),
                                .length = batch.header.length},
                        .epoch = batch.header.epoch,
                        .batch_records = batch.header.records,
                        .live = live};
    bool sound = true;
    const auto bad = [&](const Status& status) {
      sound = false;
      if (live) {
        Report(batch.offset, batch.header.length, told.lsn, told.lsn, std::string(Message(status)));
      }
    };
    ByteView rest = batch.records;
    for (; told.index < batch.header.records; ++told.index) {
      told.lsn = batch.header.first_lsn + told.index;
      const StatusOr<RawRecord> raw = TakeRecord(rest);
      if (!raw.ok()) {
        bad(raw.status());
        rest = {};
        break;
      }
      told.raw = *raw;
      const Status decoded = DecodeRecord(*raw).status();
      if (decoded.code() == StatusCode::kDataLoss) bad(decoded);
      if (live || options_.dead_records) visitor_.OnRecord(told);
    }
    if (!rest.empty()) bad(DataLoss("{} bytes behind the last record of a batch", rest.size()));
    if (live || options_.dead_records) {
      visitor_.OnBatch({.ref = told.ref,
                        .first_lsn = batch.header.first_lsn,
                        .last_lsn = batch.header.last_lsn(),
                        .epoch = batch.header.epoch,
                        .live = live,
                        .sound = sound,
                        .records = batch.records});
    }
  }

  // Nothing can be read at `offset`. Returns the next place where a group header passes, or the
  // end.
  StatusOr<uint64_t> SkipTo(uint64_t offset) {
    const bool damage = Judged(offset);
    const Lsn lost = next_;
    uint64_t resumes = offset + kBlockBytes;
    Lsn resumes_with;
    for (; resumes + kBlockBytes <= file_.segment_bytes && resumes < window_.file_bytes();
         resumes += kBlockBytes) {
      if (damage && !bounds_.end_is_open && resumes >= bounds_.live_end) break;
      ASSIGN_OR_RETURN(const ByteView bytes, window_.At(resumes, kGroupHeaderBytes));
      const GroupView view =
          ReadGroupHeader(bytes, file_.life, resumes, file_.segment_bytes - resumes);
      if (view.shape == Shape::kValid && !view.header.is_link()) {
        resumes_with = view.header.first_lsn;
        break;
      }
    }
    if (!damage) return resumes;
    if (resumes_with > lost) {
      Report(offset, resumes - offset, lost, resumes_with - 1, "nothing readable stands there");
      next_ = resumes_with;
    } else if (!bounds_.end_is_open) {
      Report(offset, bounds_.live_end - offset, lost, Lsn(), "nothing readable stands there");
      ended_ = true;
    } else {
      Report(offset, 0, lost, bounds_.horizon, "nothing readable stands there or behind it");
      ended_ = true;
    }
    return resumes;
  }

  ReadWindow& window_;
  const SegmentFile& file_;
  const Bounds bounds_;
  const SurveyOptions& options_;
  SurveyVisitor& visitor_;
  std::vector<Damage>& damages_;
  Lsn next_;            // that must come; none: unknown
  bool ended_ = false;  // the live part is over
  Totals totals_;
};

class Surveyor {
 public:
  Surveyor(Storage& storage, SurveyVisitor& visitor, const SurveyOptions& options)
      : storage_(storage), visitor_(visitor), options_(options) {}

  StatusOr<SurveyReport> Run() {
    RETURN_IF_ERROR(Decide());
    visitor_.OnMark(view_.layout.mark);
    TellDamages(kMarkFile);
    SurveyCheckpoints();
    const auto& damages = view_.layout.damages;
    auto missing = damages.begin();
    for (size_t i = 0; i < view_.layout.segments.size(); ++i) {
      const SegmentFile& file = view_.layout.segments[i];
      for (; missing != damages.end() && missing->segment < file.id; ++missing)
        TellIfMissing(*missing);
      RETURN_IF_ERROR(SurveySegment(i));
    }
    for (; missing != damages.end(); ++missing) TellIfMissing(*missing);
    for (const std::string& name : view_.layout.names.spares) {
      RETURN_IF_ERROR(SurveyAside(name, SegmentState::kSpare));
    }
    for (const std::string& name : view_.layout.names.quarantine) {
      RETURN_IF_ERROR(SurveyAside(name, SegmentState::kQuarantine));
    }
    // An open was fine with what the walk then found damaged: was it another file by then?
    if (report_.damages > 0 && report_.open_status.ok() &&
        ChainHasChanged(storage_, view_.layout)) {
      return Changing(storage_, DataLoss("{} damages", report_.damages));
    }
    Conclude();
    return std::move(report_);
  }

 private:
  // What an open would say, first; then the evidence for a walk that goes on behind damage.
  Status Decide() {
    for (int attempt = 1;; ++attempt) {
      ASSIGN_OR_RETURN(view_, ReadView(storage_));
      outcome_.reset();
      chain_damage_.reset();
      if (!view_.layout.damages.empty()) {
        report_.open_status = DamageStatus(view_.layout.damages.front());
        if (!view_.layout.has_chain()) return absl::OkStatus();
        ASSIGN_OR_RETURN(view_.evidence, GatherEvidence(storage_, view_.layout));
        return absl::OkStatus();
      }
      if (!view_.evidence.has_value() || !options_.records) return absl::OkStatus();
      StatusOr<ReplayOutcome> outcome =
          Replay(storage_, view_.layout, *view_.evidence, StateMachines(),
                 {.scope = ReplayScope::kNothing}, &chain_damage_);
      report_.open_status = outcome.status();
      if (outcome.ok()) {
        outcome_ = *std::move(outcome);
        return absl::OkStatus();
      }
      const bool changed = ChainHasChanged(storage_, view_.layout) ||
                           ChainHasGrown(storage_, view_.layout, chain_damage_);
      if (attempt < kReplayAttempts && changed) continue;
      const StatusCode code = report_.open_status.code();
      return code == StatusCode::kDataLoss || code == StatusCode::kFailedPrecondition
                 ? absl::OkStatus()
                 : report_.open_status;
    }
  }

  // A bad one is damage, though an open passes it over: with it gone a restart takes longer, and
  // one more failure finds nothing to fall back to.
  void SurveyCheckpoints() {
    for (const CheckpointFile& file : view_.layout.checkpoints) {
      Status whole = file.status;
      if (whole.ok() && options_.records) {
        whole = LoadCheckpoint(storage_, file, view_.layout.salt, nullptr);
        report_.bytes += file.bytes;
      }
      if (whole.code() == StatusCode::kNotFound) continue;  // replaced by a newer one meanwhile
      CheckpointSurvey checkpoint{.name = file.name(), .from = file.from, .bytes = file.bytes};
      if (file.status.ok()) checkpoint.through = file.footer.through;
      for (const CheckpointSection& section : file.footer.sections) {
        checkpoint.entries += section.entries;
      }
      checkpoint.fault = Message(whole);
      visitor_.OnCheckpoint(checkpoint);
      if (whole.ok()) continue;
      Tell({.file = file.name(),
            .bytes = file.bytes,
            .reason = std::string(Message(whole)),
            .refuses_open = whole.code() == StatusCode::kUnavailable});
      if (whole.code() == StatusCode::kUnavailable && report_.open_status.ok()) {
        report_.open_status = Annotate(whole, file.name());
      }
    }
  }

  Status SurveySegment(size_t index) {
    const StoreLayout& layout = view_.layout;
    const SegmentFile& file = layout.segments[index];
    const bool chained = file.state == SegmentState::kChain;
    SegmentWalk::Bounds bounds{.chained = chained && !ended_ && !file.impostor};
    SegmentSurvey segment{.name = file.name(),
                          .id = file.id,
                          .state = file.state,
                          .newest = chained && index + 1 == layout.chain_end,
                          .file_bytes = file.file_bytes,
                          .segment_bytes = file.header.has_value() ? file.segment_bytes : 0,
                          .life = file.life.stamp,
                          .header = file.header,
                          .link = file.link};
    if (chained) {
      bounds.live_end = segment.end = RecordedEnd(layout, index);
      bounds.end_is_open = segment.newest;
      if (view_.evidence.has_value()) bounds.horizon = view_.evidence->rules.horizon;
      if (outcome_.has_value() && file.id >= outcome_->cut.segment) {
        bounds.live_end = segment.end =
            file.id == outcome_->cut.segment ? outcome_->cut.offset : kFirstGroupOffset;
        bounds.end_is_open = false;
      }
    }
    visitor_.OnSegment(segment);
    TellDamages(segment.name);
    if (!options_.records) return absl::OkStatus();
    return Walk(file, segment, bounds);
  }

  Status Walk(const SegmentFile& file, const SegmentSurvey& segment,
              const SegmentWalk::Bounds& bounds) {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> handle,
                     storage_.OpenFile(segment.name, OpenMode::kReadOnly, {.direct = true}));
    const ReadWindow::Closer closer(window_);
    RETURN_IF_ERROR(window_.Open(*handle));
    std::vector<Damage> damages;
    RETURN_IF_ERROR(JudgeHead(file, segment, damages));
    SegmentWalk walk(window_, file, bounds, options_, visitor_, damages);
    ASSIGN_OR_RETURN(const SegmentWalk::Totals totals, walk.Run());
    report_.records += totals.records;
    report_.dead_records += totals.dead_records;
    report_.last_lsn = std::max(report_.last_lsn, totals.last_lsn);
    ended_ = ended_ || totals.torn;
    AddChainDamage(segment, damages);
    for (const Damage& damage : damages) Tell(damage);
    return absl::OkStatus();
  }

  // The first two blocks of a segment that is in use: what is redundant there may fail and does not
  // refuse an open.
  Status JudgeHead(const SegmentFile& file, const SegmentSurvey& segment,
                   std::vector<Damage>& damages) {
    if (segment.state != SegmentState::kChain) return absl::OkStatus();
    const auto report = [&](uint64_t offset, uint64_t bytes, std::string reason) {
      damages.push_back({.file = segment.name,
                         .segment = segment.id,
                         .offset = offset,
                         .bytes = bytes,
                         .reason = std::move(reason),
                         .refuses_open = false});
    };
    if (!file.header.has_value() && file.link.has_value()) {
      report(0, kSegmentHeaderBytes, file.header_fault);
    }
    if (file.link.has_value()) {
      ASSIGN_OR_RETURN(const ByteView block, window_.At(kSegmentHeaderBytes, kLinkBytes));
      if (!LinkPaddingIsZero(block)) {
        report(kSegmentHeaderBytes, kLinkBytes, "padding of the Link is not zero");
      }
    }
    if (file.file_bytes > file.segment_bytes) {
      report(file.segment_bytes, file.file_bytes - file.segment_bytes, "bytes behind its end");
    }
    if (segment.newest && file.header.has_value() && file.file_bytes < file.segment_bytes) {
      report(file.file_bytes, file.segment_bytes - file.file_bytes,
             "the newest segment is shorter than its header says");
    }
    return absl::OkStatus();
  }

  // What made an open refuse, if the walk saw it in another light.
  void AddChainDamage(const SegmentSurvey& segment, std::vector<Damage>& damages) {
    if (!chain_damage_.has_value() || chain_damage_->place.segment != segment.id) return;
    const ChainDamage& damage = *chain_damage_;
    const bool told = std::any_of(damages.begin(), damages.end(), [&](const Damage& other) {
      return other.refuses_open && other.offset == damage.place.offset;
    });
    if (told) return;
    damages.push_back({.file = segment.name,
                       .segment = segment.id,
                       .offset = damage.place.offset,
                       .first_lsn = damage.first,
                       .last_lsn = damage.last,
                       .reason = damage.reason});
    std::sort(damages.begin(), damages.end(),
              [](const Damage& a, const Damage& b) { return a.offset < b.offset; });
  }

  Status SurveyAside(const std::string& name, SegmentState state) {
    SegmentSurvey segment{.name = name, .state = state};
    const StatusOr<std::unique_ptr<File>> file = storage_.OpenFile(name, OpenMode::kReadOnly);
    if (file.status().code() == StatusCode::kNotFound) return absl::OkStatus();  // gone meanwhile
    RETURN_IF_ERROR(file.status());
    ASSIGN_OR_RETURN(segment.file_bytes, (*file)->Size());
    std::vector<std::byte> block(kSegmentHeaderBytes);
    ASSIGN_OR_RETURN(const size_t got, (*file)->ReadAt(0, block));
    if (StatusOr<SegmentHeader> header = DecodeSegmentHeader(ByteView(block).first(got));
        header.ok()) {
      segment.segment_bytes = header->segment_bytes;
      segment.life = header->life;
      segment.header = *header;
    }
    visitor_.OnSegment(segment);
    return absl::OkStatus();
  }

  void TellDamages(const std::string& file) {
    for (const Damage& damage : view_.layout.damages) {
      if (damage.file == file) Tell(damage);
    }
  }
  void TellIfMissing(const Damage& damage) {
    const auto& ids = view_.layout.names.segments;
    if (damage.segment && !std::binary_search(ids.begin(), ids.end(), damage.segment)) Tell(damage);
  }
  void Tell(const Damage& damage) {
    ++report_.damages;
    visitor_.OnDamage(damage);
  }

  void Conclude() {
    const StoreLayout& layout = view_.layout;
    report_.oldest = layout.oldest;
    report_.epoch = layout.epoch;
    report_.bytes += window_.bytes_read();
    if (layout.has_chain()) report_.newest = layout.newest().id;
    if (view_.evidence.has_value()) {
      report_.proved_lsn = view_.evidence->proved();
      report_.horizon_lsn = view_.evidence->rules.horizon;
      report_.engine_time = view_.evidence->engine_time;
    }
    bool torn = layout.mark.slot_bad;
    if (outcome_.has_value()) {
      report_.recovery = ReportOf(layout, *outcome_);
      if (outcome_->torn_bytes > 0 || outcome_->ignored_groups > 0) {
        torn = true;
        report_.torn = TornTail{.segment = outcome_->cut.segment,
                                .offset = outcome_->cut.offset,
                                .bytes = outcome_->torn_bytes,
                                .next_lsn = outcome_->next};
      }
    }
    report_.mark_slot_bad = layout.mark.slot_bad;
    report_.verdict = report_.damages > 0 ? SurveyVerdict::kDamage
                      : torn              ? SurveyVerdict::kTornTail
                                          : SurveyVerdict::kClean;
  }

  Storage& storage_;
  SurveyVisitor& visitor_;
  const SurveyOptions& options_;
  StoreView view_;
  std::optional<ReplayOutcome> outcome_;     // what an open would find; none if it would refuse
  std::optional<ChainDamage> chain_damage_;  // or why it would
  ReadWindow window_;
  bool ended_ = false;  // the live part of the chain is over
  SurveyReport report_;
};

}  // namespace

const char* SegmentStateName(SegmentState state) {
  switch (state) {
    case SegmentState::kChain:
      return "chain";
    case SegmentState::kDead:
      return "dead";
    case SegmentState::kVoid:
      return "void";
    case SegmentState::kRetired:
      return "retired";
    case SegmentState::kSpare:
      return "spare";
    case SegmentState::kQuarantine:
      return "quarantine";
    case SegmentState::kBad:
      return "bad";
  }
  return "?";
}

StatusOr<SurveyReport> Survey(Storage& storage, SurveyVisitor& visitor,
                              const SurveyOptions& options) {
  return Surveyor(storage, visitor, options).Run();
}

}  // namespace holdfast
