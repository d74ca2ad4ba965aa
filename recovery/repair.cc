#include "recovery/repair.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "journal/base/check.h"
#include "recovery/evidence.h"
#include "recovery/lock_taker.h"
#include "recovery/replayer.h"
#include "recovery/restater.h"
#include "recovery/store_layout.h"
#include "recovery/survey.h"

namespace holdfast {
namespace {

// A MARK that is lost may have known a higher epoch than the segments do.
constexpr uint64_t kLostMarkEpochs = 65'536;

struct Findings {
  StoreLayout layout;
  SurveyReport report;
  std::vector<LsnRange> lost;
  std::vector<std::string> strays;  // bad files outside the chain, bad checkpoints too
  bool mark_lost = false;
  bool restate = false;  // a segment of the chain is damaged, or missing
};

// Follows the LSNs of the live batches and notes what is missing between them.
class LossFinder final : public SurveyVisitor {
 public:
  void OnSegment(const SegmentSurvey& segment) override {
    if (segment.state != SegmentState::kChain || !segment.link.has_value()) return;
    const Link& link = *segment.link;
    // Where the oldest segments are missing, nobody says with which LSN they began.
    if (!begun_ && link.oldest < segment.id) expected_ = Lsn(1);
    begun_ = true;
    Expect(link.previous_last_lsn + 1);
    through_ = link.through;
    next_ = link.next;
    expected_ = link.first == link.through + 1 ? link.next : link.first;
  }
  void OnBatch(const SurveyedBatch& batch) override {
    if (!batch.live) return;
    begun_ = true;
    Expect(batch.first_lsn);
    if (!batch.sound) Lose(batch.first_lsn, batch.last_lsn);
    expected_ = batch.last_lsn == through_ ? next_ : batch.last_lsn + 1;
  }
  void OnDamage(const Damage& damage) override { damages.push_back(damage); }
  // Everything up to `horizon` had to be there.
  std::vector<LsnRange> Finish(Lsn horizon) {
    if (expected_) Expect(horizon + 1);
    return std::move(lost_);
  }

  std::vector<Damage> damages;

 private:
  // A gap that no boot could leave is the jump of one.
  void Expect(Lsn found) {
    if (expected_ && found > expected_ && found - expected_ < kUnsyncedLsnsMax) {
      Lose(expected_, found - 1);
    }
    expected_ = std::max(expected_, found);
  }
  void Lose(Lsn first, Lsn last) {
    if (!lost_.empty() && lost_.back().last + 1 == first) {
      lost_.back().last = last;
    } else {
      lost_.push_back({first, last});
    }
  }

  bool begun_ = false;
  Lsn expected_, through_, next_;
  std::vector<LsnRange> lost_;
};

// A salt is needed to read anything at all.
Status CheckReadable(const StoreLayout& layout) {
  if (layout.segments.empty()) {
    return DataLoss("MARK knows of segments, but there are none: put them back from a copy");
  }
  if (layout.salt == 0) {
    return DataLoss(
        "neither MARK nor a segment's header is readable: put one of them back from a copy");
  }
  return absl::OkStatus();
}

StatusOr<Findings> Find(Storage& storage) {
  Findings found;
  LossFinder finder;
  ASSIGN_OR_RETURN(found.report, Survey(storage, finder, {}));
  ASSIGN_OR_RETURN(StoreView view, ReadView(storage));
  found.layout = std::move(view.layout);
  const StoreLayout& layout = found.layout;
  if (!finder.damages.empty()) RETURN_IF_ERROR(CheckReadable(layout));
  found.mark_lost = !layout.mark.mark.has_value() && !layout.segments.empty();
  for (const Damage& damage : finder.damages) {
    const auto file = std::find_if(layout.segments.begin(), layout.segments.end(),
                                   [&](const SegmentFile& f) { return f.name() == damage.file; });
    const bool checkpoint = damage.file.starts_with(kCheckpointFolder);
    if (checkpoint || (file != layout.segments.end() && file->state == SegmentState::kBad)) {
      found.strays.push_back(damage.file);
    } else {
      found.restate = found.restate || !found.mark_lost || damage.file != kMarkFile;
    }
  }
  if (found.restate) found.lost = finder.Finish(found.report.horizon_lsn);
  return found;
}

// What goes to quarantine when the records are stated again: every file with places of the old
// chain.
std::vector<std::string> SetAside(const Findings& found) {
  std::vector<std::string> names;
  for (const Lsn from : found.layout.names.checkpoints) names.push_back(CheckpointFileName(from));
  for (const SegmentFile& file : found.layout.segments) names.push_back(file.name());
  return names;
}

RepairPlan PlanOf(const Findings& found) {
  RepairPlan plan;
  const StoreLayout& layout = found.layout;
  if (found.mark_lost) {
    if (layout.names.mark) {
      plan.steps.push_back(
          fmt::format("rename {} to {}", kMarkFile, QuarantineName(layout.names, kMarkFile)));
    }
    plan.steps.push_back(fmt::format("write a new {} with epoch {}, from what the segments say",
                                     kMarkFile, layout.epoch.value() + kLostMarkEpochs));
    plan.consequences.push_back(
        "the old MARK knew which records were confirmed last: if the end of the journal was lost "
        "too, nothing can tell");
  }
  if (found.restate) {
    plan.steps.push_back(
        fmt::format("state {} healthy records again, under their LSNs, in new segments from {} on",
                    found.report.records, SegmentFileName(layout.segments.back().id + 1)));
    for (const std::string& name : SetAside(found)) {
      plan.steps.push_back(
          fmt::format("rename {} to {}", name, QuarantineName(layout.names, name)));
    }
  } else {
    for (const std::string& stray : found.strays) {
      plan.steps.push_back(
          fmt::format("rename {} to {}", stray, QuarantineName(layout.names, stray)));
    }
  }
  plan.lost = found.lost;
  if (!plan.lost.empty()) {
    plan.consequences.push_back(
        "lost puts are gone: the sources of those events have to hand them in again");
    plan.consequences.push_back(
        "lost removes and offsets are undone: deliveries that were acknowledged there come back");
  }
  return plan;
}

class Repair {
 public:
  Repair(Storage& storage, Clock& clock, Rng& rng, const RepairOptions& options)
      : storage_(storage), clock_(clock), rng_(rng), options_(options) {}

  StatusOr<RepairPlan> Run() {
    LockTaker locks(storage_, clock_, options_.lock_wait);
    ASSIGN_OR_RETURN(const StoreNames names, ListStore(storage_));
    if (!names.store()) return NotFound("{}: no store here", storage_.display_path());
    ASSIGN_OR_RETURN(const std::unique_ptr<File> lock, locks.Take(kLockFile, OpenMode::kCreate));
    ASSIGN_OR_RETURN(const auto segment_locks, locks.TakeSegments());
    ASSIGN_OR_RETURN(found_, Find(storage_));
    RepairPlan plan = PlanOf(found_);
    if (plan.empty()) return plan;
    RETURN_IF_ERROR(BeginEpoch());
    if (found_.restate) RETURN_IF_ERROR(Restate());
    RETURN_IF_ERROR(Quarantine());
    return plan;
  }

 private:
  Status BeginEpoch();
  StatusOr<Mark> MarkFromSegments() const;
  Status Restate();
  Status QuarantineCheckpoints();
  Status Quarantine();

  Storage& storage_;
  Clock& clock_;
  Rng& rng_;
  const RepairOptions& options_;
  Findings found_;
  Mark mark_;  // the newest statement
  std::unique_ptr<MarkWriter> writer_;
};

// A valid MARK first, with an epoch that was never used: lives and ids must not repeat.
Status Repair::BeginEpoch() {
  const StoreLayout& layout = found_.layout;
  if (found_.mark_lost) {
    ASSIGN_OR_RETURN(mark_, MarkFromSegments());
    if (layout.names.mark) {
      RETURN_IF_ERROR(storage_.Rename(kMarkFile, QuarantineName(layout.names, kMarkFile)));
    }
  } else {
    mark_ = *layout.mark.mark;
    mark_.epoch = layout.epoch + 1;
  }
  mark_.clean = false;
  ASSIGN_OR_RETURN(writer_, MarkWriter::Open(storage_));
  return writer_->Write(mark_);
}

StatusOr<Mark> Repair::MarkFromSegments() const {
  const StoreLayout& layout = found_.layout;
  Mark mark{.store_id = layout.store_id,
            .salt = layout.salt,
            .epoch = layout.epoch + kLostMarkEpochs,
            .oldest = layout.oldest,
            .engine_ns = absl::ToInt64Nanoseconds(found_.report.engine_time)};
  if (found_.restate) return mark;  // what it says of the end comes with the new chain
  ASSIGN_OR_RETURN(const Evidence evidence, GatherEvidence(storage_, layout));
  ASSIGN_OR_RETURN(const ReplayOutcome outcome,
                   Replay(storage_, layout, evidence, StateMachines(),
                          {.scope = ReplayScope::kNothing}));
  mark.synced = outcome.proved_last;
  mark.end_segment = outcome.proved_end.segment;
  mark.end_offset = AlignUp(outcome.proved_end.offset, kBlockBytes);
  mark.newest = layout.newest().id;
  return mark;
}

// Hands the live batches of a survey to a Restater.
class Copier final : public SurveyVisitor {
 public:
  explicit Copier(Restater& restater) : restater_(restater) {}
  void OnBatch(const SurveyedBatch& batch) override {
    if (!status_.ok() || !batch.live || !batch.sound || batch.first_lsn <= last_) return;
    status_ = restater_.Add(batch);
    last_ = batch.last_lsn;
  }
  const Status& status() const { return status_; }
  Lsn last() const { return last_; }

 private:
  Restater& restater_;
  Status status_;
  Lsn last_;
};

Status Repair::Restate() {
  const StoreLayout& layout = found_.layout;
  for (const std::string& spare : layout.names.spares) RETURN_IF_ERROR(storage_.Remove(spare));
  uint64_t segment_bytes = kSegmentBytesMin;
  for (const SegmentFile& file : layout.segments) {
    if (file.header.has_value()) segment_bytes = std::max(segment_bytes, file.segment_bytes);
  }
  Lsn highest = std::max({found_.report.horizon_lsn, found_.report.last_lsn, mark_.synced});
  if (layout.has_chain()) {
    ASSIGN_OR_RETURN(const Evidence evidence, GatherEvidence(storage_, layout));
    highest = std::max(highest, evidence.highest_lsn);
  }
  const Lsn next = NextAfterUnclean(highest);
  if (!next) return Exhausted(Detail::kLimit, "LSNs are used up: {}", highest);

  Restater restater(storage_, clock_,
                    {.identity = {.store_id = layout.store_id,
                                  .salt = layout.salt,
                                  .epoch = mark_.epoch,
                                  .host_boot_id = storage_.host_boot_id(),
                                  .id_salt = rng_.Next()},
                     .first = layout.segments.back().id + 1,
                     .segment_bytes = segment_bytes,
                     .engine_time = found_.report.engine_time});
  Copier copier(restater);
  RETURN_IF_ERROR(Survey(storage_, copier, {}).status());
  RETURN_IF_ERROR(copier.status());
  RETURN_IF_ERROR(QuarantineCheckpoints());
  ASSIGN_OR_RETURN(const Restater::Chain chain, restater.Publish(next));
  mark_.synced = chain.last;
  mark_.end_segment = mark_.newest = chain.newest;
  mark_.end_offset = chain.end;
  mark_.oldest = chain.oldest;
  return writer_->Write(mark_);
}

// Before the new chain holds: checkpoints know the records at their old places.
Status Repair::QuarantineCheckpoints() {
  const StoreLayout& layout = found_.layout;
  if (layout.names.checkpoints.empty()) return absl::OkStatus();
  for (const Lsn from : layout.names.checkpoints) {
    const std::string name = CheckpointFileName(from);
    RETURN_IF_ERROR(storage_.Rename(name, QuarantineName(layout.names, name)));
  }
  return storage_.SyncFolder(kCheckpointFolder);
}

Status Repair::Quarantine() {
  const StoreLayout& layout = found_.layout;
  bool checkpoints = false;
  for (const std::string& name : found_.restate ? SetAside(found_) : found_.strays) {
    const bool checkpoint = name.starts_with(kCheckpointFolder);
    if (found_.restate && checkpoint) continue;  // gone already
    checkpoints = checkpoints || checkpoint;
    RETURN_IF_ERROR(storage_.Rename(name, QuarantineName(layout.names, name)));
  }
  if (checkpoints) RETURN_IF_ERROR(storage_.SyncFolder(kCheckpointFolder));
  return storage_.SyncFolder(kJournalFolder);
}

}  // namespace

StatusOr<RepairPlan> PlanRepair(Storage& storage) {
  ASSIGN_OR_RETURN(const Findings found, Find(storage));
  return PlanOf(found);
}

StatusOr<RepairPlan> ApplyRepair(Storage& storage, Clock& clock, Rng& rng,
                                 const RepairOptions& options) {
  return Repair(storage, clock, rng, options).Run();
}

}  // namespace holdfast
