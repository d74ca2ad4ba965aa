#include "recovery/opener.h"

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "journal/base/check.h"
#include "recovery/checkpoint_choice.h"
#include "recovery/evidence.h"
#include "recovery/lock_taker.h"
#include "recovery/predecessor_files.h"
#include "recovery/replayer.h"
#include "recovery/segment_writer.h"
#include "recovery/store_layout.h"

namespace holdfast {
namespace {

constexpr uint64_t kEpochMax = std::numeric_limits<uint32_t>::max();  // it is a field of batches
constexpr int kReadAttempts = 5;                                      // beside a live writer
constexpr uint64_t kSegmentIdMax = std::numeric_limits<uint32_t>::max();  // and of RecordRef

void AddTo(RecoveryReport& report, const CheckpointChoice& checkpoint) {
  report.bad_checkpoints = checkpoint.bad.size();
  if (checkpoint.used == nullptr) return;
  report.checkpoint_lsn = checkpoint.used->from.value();
  report.checkpoint_entries = checkpoint.entries;
  report.checkpoint_bytes = checkpoint.used->bytes;
  report.bytes += checkpoint.used->bytes;
}

// A checkpoint knows of what stands before it, which is not read again.
SegmentId PinnedIn(const CheckpointChoice& checkpoint, const ReplayOutcome& outcome) {
  const SegmentId before =
      checkpoint.used == nullptr ? SegmentId() : checkpoint.used->header.pinned;
  return before ? before : outcome.skipped_in;
}

// One opening for writing. Everything up to BeginEpoch only reads (besides LOCK, where there was
// none and nothing speaks against a store).
class Opening {
 public:
  Opening(Storage& storage, Clock& clock, Rng& rng, const OpenerOptions& options,
          const StateMachines& machines)
      : storage_(storage), clock_(clock), rng_(rng), options_(options), machines_(machines) {}

  StatusOr<OpenedStore> Run() {
    const absl::Duration begun = clock_.Now();
    RETURN_IF_ERROR(CheckOptions());
    RETURN_IF_ERROR(Lock());
    RETURN_IF_ERROR(Decide(ReplayScope::kProved));
    ASSIGN_OR_RETURN(const Continuation next, Continue());
    RETURN_IF_ERROR(BeginEpoch());
    RETURN_IF_ERROR(KeepCheckpoints());
    RETURN_IF_ERROR(Cut(next));
    RETURN_IF_ERROR(Settle());
    files_->Free(next);
    start().sealed = files_->Sealed(next);
    opened_.report.duration = clock_.Now() - begun;
    return std::move(opened_);
  }

 private:
  Status CheckOptions() const;
  Status Lock();
  Status Decide(ReplayScope scope);
  StatusOr<Continuation> Continue() const;
  Status BeginEpoch();
  Status KeepCheckpoints();
  Status Cut(const Continuation& next);
  Status Copy(SegmentWriter& writer);
  Status Settle();

  JournalStart& start() { return opened_.start; }
  bool fresh() const { return !view_.layout.has_chain(); }  // no segment was ever published

  Storage& storage_;
  Clock& clock_;
  Rng& rng_;
  const OpenerOptions& options_;
  const StateMachines& machines_;
  std::map<SegmentId, std::unique_ptr<File>> predecessor_locks_;
  StoreView view_;
  CheckpointChoice checkpoint_;  // Points into view_.
  ReplayOutcome outcome_;
  std::optional<PredecessorFiles> files_;  // Borrows view_.
  OpenedStore opened_;
};

Status Opening::CheckOptions() const {
  if (options_.segment_bytes < kSegmentBytesMin || options_.segment_bytes > kSegmentBytesMax ||
      !IsAligned(options_.segment_bytes, kBlockBytes)) {
    return Invalid("segment_bytes: {} is not a multiple of {} from {} to {}",
                   options_.segment_bytes, kBlockBytes, kSegmentBytesMin, kSegmentBytesMax);
  }
  return absl::OkStatus();
}

Status Opening::Lock() {
  LockTaker locks(storage_, clock_, options_.lock_wait);
  StatusOr<std::unique_ptr<File>> lock = locks.Take(kLockFile, OpenMode::kReadWrite);
  if (lock.status().code() == StatusCode::kNotFound) {
    // Never opened before, or somebody removed it: a refusal must come before it is made.
    RETURN_IF_ERROR(Decide(ReplayScope::kNothing));
    lock = locks.Take(kLockFile, OpenMode::kCreate);
  }
  RETURN_IF_ERROR(lock.status());
  start().lock = *std::move(lock);
  ASSIGN_OR_RETURN(predecessor_locks_, locks.TakeSegments());
  return absl::OkStatus();
}

Status Opening::Decide(ReplayScope scope) {
  checkpoint_ = CheckpointChoice();  // it points into the view
  StatusOr<StoreView> view = ReadView(storage_, Evidences::kLeaveOut);
  if (view.status().code() == StatusCode::kNotFound) {
    view_ = StoreView();
    return absl::OkStatus();  // nothing there: a new store
  }
  RETURN_IF_ERROR(view.status());
  view_ = *std::move(view);
  if (!view_.layout.damages.empty()) return DamageStatus(view_.layout.damages.front());
  if (fresh()) return absl::OkStatus();
  EvidenceGathering evidence(storage_, view_.layout);
  // The disk reads segments while this thread decodes entries.
  if (!predecessor_locks_.empty() && predecessor_locks_.begin()->second->read_depth() > 1) {
    evidence.TraceAside();
  }
  ASSIGN_OR_RETURN(checkpoint_, LoadNewestCheckpoint(
                                    storage_, view_.layout, evidence.links(), machines_,
                                    {.ignore = options_.ignore_checkpoints, .log = options_.log}));
  StatusOr<Evidence> gathered = evidence.Finish();
  if (gathered.status().code() == StatusCode::kNotFound) {
    return Changing(storage_, gathered.status());  // while nobody has the lock
  }
  ASSIGN_OR_RETURN(view_.evidence, std::move(gathered));
  ASSIGN_OR_RETURN(
      outcome_,
      Replay(storage_, view_.layout, *view_.evidence, machines_,
             {.scope = scope, .from = checkpoint_.from(), .progress = options_.progress}));
  return absl::OkStatus();
}

StatusOr<Continuation> Opening::Continue() const {
  if (view_.layout.epoch.value() >= kEpochMax) {
    return Exhausted(Detail::kLimit, "{}: this store was opened {} times, the most there can be",
                     storage_.display_path(), kEpochMax);
  }
  Continuation next{
      .segment = SegmentId(1), .segment_bytes = options_.segment_bytes, .next = Lsn(1)};
  if (fresh()) return next;

  const auto& segments = view_.layout.segments;
  if (outcome_.proved_end.segment) {
    const size_t index = view_.layout.chain_begin +
                         (outcome_.proved_end.segment - segments[view_.layout.chain_begin].id);
    next.segment = outcome_.proved_end.segment + 1;
    next.previous = outcome_.proved_end.segment;
    next.previous_life = segments[index].life.stamp;
    next.previous_end = outcome_.proved_end.offset;
    next.segment_bytes = std::max(next.segment_bytes, segments[index].segment_bytes);
  } else {
    // The segment in which the replay began holds nothing that is proved: its place is taken, and
    // so is what it says of the one before it.
    const SegmentFile& begin = segments[view_.layout.chain_begin +
                                        (outcome_.begin - segments[view_.layout.chain_begin].id)];
    next.segment = begin.id;
    next.previous = begin.link->previous;
    next.previous_life = begin.link->previous_life;
    next.previous_end = begin.link->previous_end;
    next.segment_bytes = std::max(next.segment_bytes, begin.segment_bytes);
  }
  next.previous_last = outcome_.proved_last;
  const uint64_t needed = AlignUp(SegmentWriter::BytesNeeded(outcome_.doubt_bytes), kBlockBytes);
  next.segment_bytes = std::max(next.segment_bytes, outcome_.doubt_first ? needed : uint64_t{0});
  const Lsn highest = std::max(view_.evidence->highest_lsn, outcome_.next - 1);
  next.next = outcome_.clean ? outcome_.next : NextAfterUnclean(highest);
  if (!next.next || next.segment.value() > kSegmentIdMax || next.segment_bytes > kSegmentBytesMax) {
    return Exhausted(Detail::kLimit, "{}: numbers are used up: next LSN {}, segment {} of {} bytes",
                     storage_.display_path(), next.next, next.segment, next.segment_bytes);
  }
  return next;
}

// The statement that replaces MARK before anything else changes: same truth, new epoch, not clean.
Status Opening::BeginEpoch() {
  const StoreLayout& layout = view_.layout;
  opened_.report = fresh() ? RecoveryReport() : ReportOf(layout, outcome_);
  opened_.report.created = fresh();
  AddTo(opened_.report, checkpoint_);
  opened_.replayed_bytes = outcome_.record_bytes;
  opened_.pinned = PinnedIn(checkpoint_, outcome_);
  StoreIdentity& identity = start().identity;
  identity.store_id = layout.store_id;
  identity.salt = layout.salt;
  Mark mark = layout.mark.mark.value_or(Mark());
  if (!layout.mark.mark.has_value()) {
    for (size_t i = 0; i < identity.store_id.size(); ++i) {
      identity.store_id[i] = static_cast<uint8_t>(rng_.Next());
    }
    do {
      identity.salt = rng_.Next();
    } while (identity.salt == 0);
    mark.store_id = identity.store_id;
    mark.salt = identity.salt;
  }
  identity.epoch = layout.epoch + 1;
  identity.host_boot_id = storage_.host_boot_id();
  identity.id_salt = rng_.Next();
  if (view_.evidence.has_value()) start().engine_time = view_.evidence->engine_time;

  mark.format_version = kFormatVersion;
  mark.epoch = identity.epoch;
  mark.clean = false;
  mark.engine_ns = absl::ToInt64Nanoseconds(start().engine_time);
  RETURN_IF_ERROR(storage_.MakeFolder(kJournalFolder));
  ASSIGN_OR_RETURN(start().mark, MarkWriter::Open(storage_));
  return start().mark->Write(mark);
}

// A checkpoint that was of no use must not come back: what the cut copies to another place, it may
// know at the old one. Bad ones go to quarantine; what is outdated, older than the newest two, or
// of a capture that was cut short is removed.
Status Opening::KeepCheckpoints() {
  const auto among = [](const std::vector<const CheckpointFile*>& some,
                        const CheckpointFile& file) {
    return std::find(some.begin(), some.end(), &file) != some.end();
  };
  std::vector<std::string> gone = view_.layout.names.checkpoint_temps;
  std::vector<KeptCheckpoint>& kept = opened_.checkpoints;
  const std::vector<CheckpointFile>& files = view_.layout.checkpoints;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (among(checkpoint_.bad, *file)) {
      RETURN_IF_ERROR(
          storage_.Rename(file->name(), QuarantineName(view_.layout.names, file->name())));
    } else if (kept.size() < kCheckpointsKept && !among(checkpoint_.outdated, *file)) {
      kept.insert(kept.begin(), {file->from, file->footer.through, file->bytes});
    } else {
      gone.push_back(file->name());
    }
  }
  for (const std::string& name : gone) {
    const Status removed = storage_.Remove(name);
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  }
  const bool changed = !gone.empty() || !checkpoint_.bad.empty();
  return changed ? storage_.SyncFolder(kCheckpointFolder) : absl::OkStatus();
}

// Everything that counts from now on, in one segment under another name; its rename is the cut.
Status Opening::Cut(const Continuation& next) {
  files_.emplace(storage_, view_, options_.segment_bytes, options_.log);
  RETURN_IF_ERROR(files_->GatherSpares(predecessor_locks_));
  const StoreIdentity& identity = start().identity;
  start().life_counter = 1;
  const SegmentHeader header{
      .store_id = identity.store_id,
      .salt = identity.salt,
      .segment = next.segment,
      .life = MakeLifeStamp(identity.salt, identity.epoch, start().life_counter,
                            static_cast<uint32_t>(next.segment.value())),
      .segment_bytes = next.segment_bytes,
      .epoch = identity.epoch,
      .created_ns = absl::ToUnixNanos(clock_.WallNow())};
  ASSIGN_OR_RETURN(start().active, files_->MakeNewest(header));
  start().spares = files_->spares();

  const Lsn last = outcome_.last;
  start().oldest = fresh() ? next.segment : view_.layout.oldest;
  const Lsn first = outcome_.doubt_first ? outcome_.doubt_first : last + 1;
  SegmentWriter writer(start().active,
                       {.synced = next.previous_last,
                        .promised = next.previous_last,
                        .engine_ns = absl::ToInt64Nanoseconds(start().engine_time)});
  RETURN_IF_ERROR(writer.WriteLink({.previous = next.previous,
                                    .previous_life = next.previous_life,
                                    .previous_end = next.previous_end,
                                    .previous_last_lsn = next.previous_last,
                                    .first = first,
                                    .through = last,
                                    .next = next.next,
                                    .epoch = identity.epoch,
                                    .host_boot_id = identity.host_boot_id,
                                    .id_salt = identity.id_salt,
                                    .wall_ns = header.created_ns,
                                    .oldest = start().oldest,
                                    .reason = LinkReason::kOpen}));
  RETURN_IF_ERROR(Copy(writer));
  RETURN_IF_ERROR(writer.Finish());
  start().end = writer.end();
  start().last = last;
  start().next = next.next;
  return PublishSegment(storage_, start().active);
}

// The window in doubt, under the same LSNs at its new place; that is where it is applied.
Status Opening::Copy(SegmentWriter& writer) {
  if (fresh()) return absl::OkStatus();
  return ReadDoubt(storage_, *view_.evidence, outcome_, [&](const BatchView& batch) -> Status {
    ASSIGN_OR_RETURN(const RecordRef ref, writer.Append(batch.header, batch.records));
    RETURN_IF_ERROR(ApplyBatch(batch, ref, &machines_).status());
    opened_.report.copied_records += batch.header.records;
    return absl::OkStatus();
  });
}

Status Opening::Settle() {
  const StoreIdentity& identity = start().identity;
  const SegmentId segment = start().active.header.segment;
  return start().mark->Write({.store_id = identity.store_id,
                              .salt = identity.salt,
                              .epoch = identity.epoch,
                              .synced = start().last,
                              .end_segment = segment,
                              .end_offset = start().end,
                              .newest = segment,
                              .oldest = start().oldest,
                              .clean = false,
                              .engine_ns = absl::ToInt64Nanoseconds(start().engine_time)});
}

Status OutOfMemory(const Storage& storage) {
  return Exhausted(Detail::kLimit, "{}: not enough memory to recover; nothing was dropped",
                   storage.display_path());
}

// None: the writer took files of the chain away meanwhile, or went on behind its end.
StatusOr<std::optional<ReadStore>> ReadOnce(Storage& storage, const StateMachines& machines,
                                            const ReaderOptions& options) {
  ASSIGN_OR_RETURN(const StoreView view, ReadView(storage));
  const StoreLayout& layout = view.layout;
  if (!layout.damages.empty()) return DamageStatus(layout.damages.front());
  ReadStore read;
  read.identity.store_id = layout.store_id;
  read.identity.salt = layout.salt;
  read.identity.epoch = layout.epoch;
  if (!view.evidence.has_value()) return read;  // begun, and nothing was ever written

  ASSIGN_OR_RETURN(
      const CheckpointChoice checkpoint,
      LoadNewestCheckpoint(storage, layout, *view.evidence, machines,
                           {.ignore = options.ignore_checkpoints, .log = options.log}));
  std::optional<ChainDamage> damage;
  const StatusOr<ReplayOutcome> outcome =
      Replay(storage, layout, *view.evidence, machines,
             {.from = checkpoint.from(), .progress = options.progress}, &damage);
  if (!outcome.ok()) {
    if (ChainHasChanged(storage, layout) || ChainHasGrown(storage, layout, damage)) {
      return std::nullopt;
    }
    return outcome.status();
  }
  const Link& link = *layout.newest().link;
  read.report = ReportOf(layout, *outcome);
  for (const SegmentFile& file : layout.segments) read.disk_bytes += file.file_bytes;
  AddTo(read.report, checkpoint);
  read.identity.epoch = link.epoch;
  read.identity.host_boot_id = link.host_boot_id;
  read.identity.id_salt = link.id_salt;
  read.engine_time = view.evidence->engine_time;
  read.oldest = layout.oldest;
  read.newest = layout.newest().id;
  return read;
}

}  // namespace

StatusOr<OpenedStore> OpenStore(Storage& storage, Clock& clock, Rng& rng,
                                const OpenerOptions& options, const StateMachines& machines) {
  try {
    return Opening(storage, clock, rng, options, machines).Run();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(storage);
  }
}

StatusOr<ReadStore> OpenReadOnly(Storage& storage, const StateMachines& machines,
                                 const ReaderOptions& options) {
  try {
    for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
      ASSIGN_OR_RETURN(std::optional<ReadStore> read, ReadOnce(storage, machines, options));
      if (read.has_value()) return *std::move(read);
    }
    return Unavailable(Detail::kIo, "{}: a writer changes the store while it is read; try again",
                       storage.display_path());
  } catch (const std::bad_alloc&) {
    return OutOfMemory(storage);
  }
}

}  // namespace holdfast
