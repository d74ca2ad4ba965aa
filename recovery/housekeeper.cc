#include "recovery/housekeeper.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

// How often the thread looks whether something is due.
constexpr absl::Duration kPoll = absl::Milliseconds(100);
// A checkpoint that found no room is tried again after so long.
constexpr absl::Duration kCheckpointRetry = absl::Seconds(5);
// What one Tick() does at most.
constexpr int kDutiesMax = 64;
// What a compaction reads before others get a turn.
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;
// Below so much journal to replay, a clean stop takes no checkpoint.
constexpr uint64_t kStopCheckpointBytes = uint64_t{4} << 20;

}  // namespace

Housekeeper::Housekeeper(const HousekeeperOptions& options, HousekeeperParts parts,
                         const HousekeeperStart& start)
    : options_(options),
      parts_(std::move(parts)),
      retention_(options.retention),
      compactor_(parts_.storage, parts_.journal, parts_.machines, parts_.identity.salt,
                 options.retention.segment_bytes / 8),
      known_(start),
      checkpoint_lsn_(start.checkpoint.value()),
      checkpoint_bytes_(start.checkpoint_bytes) {
  if (!options_.threads) return;
  parts_.journal.SetSpaceLimit(this);
  thread_ = std::thread([this] { Loop(); });
}

Housekeeper::~Housekeeper() { CHECK(!thread_.joinable()); }

void Housekeeper::Stop() {
  {
    MutexLock lock(mu_);
    stop_.store(true);
    wake_.NotifyAll();
  }
  if (thread_.joinable()) {
    thread_.join();
    parts_.journal.SetSpaceLimit(nullptr);
  }
  MutexLock work(work_);
  if (!WorthCheckpointAtStop()) return;
  if (const Status taken = TakeCheckpoint(/*stoppable=*/false); !taken.ok()) {
    Log(LogLevel::kWarning, fmt::format("no checkpoint at this stop: {}", Message(taken)));
  }
}

void Housekeeper::Loop() {
  while (!stop_.load()) {
    const bool asked = refused_.exchange(false);
    bool done;
    {
      MutexLock work(work_);
      const RetentionFacts facts = Gather();
      done = DoOne(facts);
      one_more_ = asked && !done && !retention_.MayGrow(facts);
    }
    if (asked) parts_.journal.Recheck();
    if (!done) Pause(kPoll);
  }
}

bool Housekeeper::MayTake(uint64_t disk_bytes) {
  parts_.journal.sequencer().AssertHeld();
  if (disk_bytes <= DiskBound(options_.retention, parts_.live.total().bytes)) return true;
  if (one_more_.exchange(false)) return true;
  MutexLock lock(mu_);
  refused_ = true;
  wake_.NotifyAll();
  return false;
}

void Housekeeper::Tick() {
  if (options_.threads) return;
  MutexLock work(work_);
  for (int duties = 0; duties < kDutiesMax && DoOne(Gather()); ++duties) {
  }
}

void Housekeeper::Pause(absl::Duration time) {
  MutexLock lock(mu_);
  if (!stop_ && !refused_) wake_.WaitFor(mu_, parts_.clock.Until(parts_.clock.Now() + time));
}

// --- Deciding ---

RetentionFacts Housekeeper::Gather() {
  RetentionFacts facts;
  facts.since_checkpoint_bytes =
      known_.since_checkpoint_bytes + parts_.journal.stats().written_bytes - written_at_checkpoint_;
  {
    MutexLock lock(parts_.journal.sequencer());
    const JournalSpace space = parts_.journal.space();
    for (const SealedSegment& sealed : space.sealed) {
      facts.sealed.push_back({.id = sealed.segment,
                              .last = sealed.last,
                              .file_bytes = sealed.file_bytes,
                              .live_records = parts_.live.of(sealed.segment).records});
    }
    facts.disk_bytes = space.disk_bytes;
    facts.short_of_space = space.short_of_space;
    facts.appended = space.appended;
    facts.synced = space.synced;
    facts.live_bytes = parts_.live.total().bytes;
  }
  facts.checkpoint = known_.checkpoint;
  facts.older_checkpoint = known_.older_checkpoint;
  facts.checkpoint_bytes = known_.checkpoint_bytes;
  facts.pinned = known_.pinned;
  retention_.Observe(facts);
  return facts;
}

// True: something was done, and more may be due.
bool Housekeeper::DoOne(const RetentionFacts& facts) {
  if (parts_.journal.poisoned()) return false;
  return TryRetire(facts) || TryCheckpoint(facts) || TryCompact(facts);
}

bool Housekeeper::TryRetire(const RetentionFacts& facts) {
  if (retention_.WaitsForSync(facts)) return parts_.journal.Flush().ok();
  const SegmentId keep_from = retention_.KeepFrom(facts);
  if (!keep_from) return false;
  // What was alive in it has ended by itself meanwhile, and its file may be used again.
  if (compactor_.active() && compactor_.segment() < keep_from) compactor_.Stop();
  const Status retired = parts_.journal.RetireBelow(keep_from);
  if (!retired.ok()) {
    Log(LogLevel::kWarning,
        fmt::format("segments below {} were not retired: {}", keep_from, Message(retired)));
    return false;
  }
  // Those in which S still stands are left to a later turn.
  const SegmentId before = facts.sealed.front().id;
  SegmentId oldest;
  {
    MutexLock lock(parts_.journal.sequencer());
    const JournalSpace space = parts_.journal.space();
    oldest = space.sealed.empty() ? space.active : space.sealed.front().segment;
  }
  retired_segments_ += oldest - before;
  return oldest > before;
}

bool Housekeeper::TryCheckpoint(const RetentionFacts& facts) {
  if (!retention_.WantsCheckpoint(facts) || parts_.clock.Now() < checkpoint_retry_at_) return false;
  Status taken = TakeCheckpoint(/*stoppable=*/true);
  const bool dead_wait = !facts.sealed.empty() && facts.sealed.front().live_records == 0;
  if (DetailOf(taken) == Detail::kDiskFull && dead_wait && parts_.journal.GiveUpReserve().ok()) {
    taken = TakeCheckpoint(/*stoppable=*/true);
  }
  if (taken.ok()) return true;
  checkpoint_retry_at_ = parts_.clock.Now() + kCheckpointRetry;
  if (!stop_.load()) {
    Log(LogLevel::kWarning, fmt::format("no checkpoint was taken: {}", Message(taken)));
  }
  return false;
}

bool Housekeeper::TryCompact(const RetentionFacts& facts) {
  if (!compactor_.active()) {
    const std::optional<SegmentId> segment = retention_.ToCompact(facts);
    if (!segment.has_value() || *segment == given_up_) return false;
    // What is dead already goes first: it may wait for nothing but S.
    if (facts.synced < facts.appended && facts.sealed.front().id != *segment &&
        !parts_.journal.Flush().ok()) {
      return false;
    }
    if (const Status begun = BeginCompaction(*segment); !begun.ok()) {
      GiveUpOn(*segment, begun);
      return false;
    }
  }
  const Compactor::Counts before = compactor_.counts();
  const SegmentId segment = compactor_.segment();
  const StatusOr<bool> more = CompactPiece();
  if (!more.ok()) {
    // A full disk and a failed read pass; what is damaged or too large does not.
    if (more.status().code() == StatusCode::kDataLoss ||
        DetailOf(more.status()) == Detail::kLimit) {
      GiveUpOn(segment, more.status());
    }
    return false;
  }
  const bool in_time = retention_.MayGrow(facts) && !facts.short_of_space;
  if (options_.threads && options_.compact_bytes_per_second != 0 && in_time) {
    const uint64_t moved = compactor_.counts().read_bytes - before.read_bytes +
                           compactor_.counts().restated_bytes - before.restated_bytes;
    Pause(absl::Seconds(static_cast<double>(moved) /
                        static_cast<double>(options_.compact_bytes_per_second)));
  }
  return true;
}

// --- Doing ---

Status Housekeeper::Checkpoint() {
  MutexLock work(work_);
  return TakeCheckpoint(/*stoppable=*/true);
}

Status Housekeeper::TakeCheckpoint(bool stoppable) {
  Journal& journal = parts_.journal;
  const auto stopped = [this, stoppable] { return stoppable && stop_.load(); };
  if (stopped()) return WrongState(Detail::kClosed, "the engine was closed");
  if (journal.poisoned()) {
    return Unavailable(Detail::kPoisoned, "the journal failed; reopen the store");
  }
  const RetentionFacts facts = Gather();
  if (!facts.appended || CheckpointsAreNewest(facts)) return absl::OkStatus();
  const uint64_t written_bytes = journal.stats().written_bytes;
  // Where nothing was appended since the newest, the older one is renewed: it says the same with a
  // replay that begins one record earlier, so it stays the older one.
  const bool renew_older = facts.appended == facts.checkpoint;
  bool begun = false;
  const auto appended = [&] {
    journal.sequencer().AssertHeld();
    const Lsn now = journal.space().appended;
    const bool is_from = !std::exchange(begun, true);
    return is_from && renew_older && now == facts.appended ? now - 1 : now;
  };
  const CaptureParts parts{.storage = parts_.storage,
                           .sequencer = journal.sequencer(),
                           .machines = parts_.machines,
                           .appended = appended,
                           .wait_synced = [&journal](Lsn) { return journal.Flush(); }};
  const CheckpointIdentity identity{.store_id = parts_.identity.store_id,
                                    .salt = parts_.identity.salt,
                                    .epoch = parts_.identity.epoch,
                                    .engine_time = journal.engine_clock().Now(),
                                    .created = parts_.clock.WallNow(),
                                    .pinned = known_.pinned};
  ASSIGN_OR_RETURN(const KeptCheckpoint kept,
                   CaptureCheckpoint(parts, identity, [&stopped](uint64_t) { return !stopped(); }));
  ++checkpoints_;
  checkpoint_written_bytes_ += kept.bytes;
  if (kept.from < known_.checkpoint) {
    known_.older_checkpoint = kept.from;
    return absl::OkStatus();
  }
  known_.older_checkpoint = known_.checkpoint;
  known_.checkpoint = kept.from;
  known_.checkpoint_bytes = kept.bytes;
  known_.since_checkpoint_bytes = 0;
  written_at_checkpoint_ = written_bytes;
  checkpoint_lsn_ = kept.from.value();
  checkpoint_bytes_ = kept.bytes;
  return absl::OkStatus();
}

bool Housekeeper::WorthCheckpointAtStop() {
  if (parts_.journal.poisoned()) return false;
  const RetentionFacts facts = Gather();
  return facts.appended > facts.checkpoint &&
         facts.since_checkpoint_bytes >=
             std::max(std::min(kStopCheckpointBytes, options_.retention.segment_bytes / 2),
                      facts.checkpoint_bytes / 4);
}

Status Housekeeper::BeginCompaction(SegmentId segment) {
  std::vector<SealedSegment> sealed;
  {
    MutexLock lock(parts_.journal.sequencer());
    sealed = parts_.journal.space().sealed;
  }
  const auto found = std::find_if(sealed.begin(), sealed.end(),
                                  [&](const SealedSegment& one) { return one.segment == segment; });
  CHECK(found != sealed.end());
  return compactor_.Begin(*found);
}

StatusOr<bool> Housekeeper::CompactPiece() {
  const SegmentId segment = compactor_.segment();
  const StatusOr<bool> more = compactor_.Step(kPieceBytes);
  restated_records_ = compactor_.counts().restated_records;
  restated_bytes_ = compactor_.counts().restated_bytes;
  if (!more.ok() || *more) return more;
  uint64_t left;
  {
    MutexLock lock(parts_.journal.sequencer());
    left = parts_.live.of(segment).records;
  }
  if (left > 0) {
    return DataLoss("segment {}: {} records that the state rests on are not in it", segment, left);
  }
  ++compacted_segments_;
  return false;
}

void Housekeeper::GiveUpOn(SegmentId segment, const Status& why) {
  given_up_ = segment;
  Log(LogLevel::kError,
      fmt::format("segment {} cannot be compacted, so it and all later ones stay: {}", segment,
                  Message(why)));
}

StatusOr<CompactionReport> Housekeeper::Compact() {
  MutexLock work(work_);
  CompactionReport report;
  RetentionFacts facts = Gather();
  report.disk_bytes_before = facts.disk_bytes;
  const uint64_t restated_records = restated_records_, restated_bytes = restated_bytes_,
                 compacted = compacted_segments_, retired = retired_segments_;
  // One checkpoint before and one behind the copies, so that the older one has passed the segments.
  if (!facts.sealed.empty()) RETURN_IF_ERROR(TakeCheckpoint(/*stoppable=*/true));
  for (const SegmentFacts& segment : facts.sealed) {
    if (facts.pinned && segment.id >= facts.pinned) break;
    if (segment.live_records == 0) continue;
    RETURN_IF_ERROR(BeginCompaction(segment.id));
    for (bool more = true; more;) {
      if (stop_.load()) return WrongState(Detail::kClosed, "the engine was closed");
      ASSIGN_OR_RETURN(more, CompactPiece());
    }
  }
  RETURN_IF_ERROR(parts_.journal.Flush());
  if (!facts.sealed.empty()) RETURN_IF_ERROR(TakeCheckpoint(/*stoppable=*/true));
  const SegmentId last = facts.sealed.empty() ? SegmentId() : facts.sealed.back().id;
  facts = Gather();
  if (TryRetire(facts)) facts = Gather();
  for (const SegmentFacts& segment : facts.sealed) {
    if (segment.id <= last && segment.live_records == 0) ++report.waiting_segments;
  }
  report.disk_bytes_after = facts.disk_bytes;
  report.restated_records = restated_records_ - restated_records;
  report.restated_bytes = restated_bytes_ - restated_bytes;
  report.compacted_segments = compacted_segments_ - compacted;
  report.retired_segments = retired_segments_ - retired;
  return report;
}

void Housekeeper::AddTo(EngineStats& stats) {
  {
    MutexLock lock(parts_.journal.sequencer());
    const JournalSpace space = parts_.journal.space();
    stats.disk_bytes = space.disk_bytes;
    stats.sealed_segments = space.sealed.size();
    stats.live_records = parts_.live.total().records;
    stats.live_bytes = parts_.live.total().bytes;
  }
  stats.disk_bytes_bound = DiskBound(options_.retention, stats.live_bytes);
  stats.compacted_segments = compacted_segments_;
  stats.restated_records = restated_records_;
  stats.restated_bytes = restated_bytes_;
  stats.retired_segments = retired_segments_;
  stats.checkpoints = checkpoints_;
  stats.checkpoint_lsn = checkpoint_lsn_;
  stats.checkpoint_bytes = checkpoint_bytes_;
  stats.checkpoint_written_bytes = checkpoint_written_bytes_;
}

void Housekeeper::Log(LogLevel level, const std::string& line) const {
  if (parts_.log != nullptr) parts_.log->Log(level, line);
}

}  // namespace holdfast
