#include "journal/journal.h"

#include <algorithm>
#include <utility>

#include "journal/appender.h"
#include "journal/group_committer.h"
#include "journal/record_reader.h"
#include "journal/upkeep.h"

namespace holdfast {
namespace {

constexpr uint64_t kBatchBytesMax = uint64_t{16} << 20;
constexpr absl::Duration kRejoinWait = absl::Microseconds(40);
constexpr uint64_t kGroupBytesFull = uint64_t{512} << 10;
constexpr size_t kWritesMax = 8;  // in flight at a time, if the disk takes so many and a flush
constexpr size_t kReadFilesMax = 64;

GroupCommitterOptions CommitterOptions(const JournalOptions& options, const WriteQueue& disk) {
  // In small segments several groups still fit into what may be unsynced.
  const uint64_t group_bytes_max =
      AlignUp(std::min(options.group_bytes_max, options.segment_bytes / 8), kBlockBytes);
  return {.queue = {.durability = options.durability,
                    .commit_interval = options.commit_interval,
                    .rejoin_wait = options.threads ? kRejoinWait : absl::ZeroDuration(),
                    .group_bytes_full = std::min(kGroupBytesFull, group_bytes_max / 2),
                    .unsynced_bytes_flush = options.segment_bytes / 4,
                    .depth_max = std::min(kWritesMax, disk.depth_max() - 1),
                    .writes_overlap = disk.overlaps()},
          .group_bytes_max = group_bytes_max,
          .threads = options.threads};
}

class RunningJournal final : public Journal {
 public:
  RunningJournal(Storage& storage, Clock& clock, LogSink* log, const JournalOptions& options,
                 JournalStart start, const StateMachines& machines, Mutex& sequencer,
                 const GroupCommitterOptions& committer_options, std::unique_ptr<WriteQueue> disk)
      : Journal(sequencer),
        engine_clock_(clock, start.engine_time),
        lock_(std::move(start.lock)),
        committer_(committer_options,
                   {.sequencer = sequencer,
                    .clock = clock,
                    .engine_clock = engine_clock_,
                    .log = log,
                    .disk = std::move(disk),
                    .epoch = start.identity.epoch,
                    .last = start.last},
                   std::make_unique<SegmentSet>(
                       SegmentSet::Options{.segment_bytes = options.segment_bytes}, start.identity,
                       SegmentSet::Start{.active = std::move(start.active),
                                         .end = start.end,
                                         .life_counter = start.life_counter,
                                         .sealed = std::move(start.sealed),
                                         .spares = std::move(start.spares)})),
        upkeep_({.storage = storage,
                 .clock = clock,
                 .engine_clock = engine_clock_,
                 .committer = committer_,
                 .mark = std::move(start.mark),
                 .identity = start.identity,
                 .oldest = start.oldest},
                options.threads),
        appender_({.batch_bytes_max = std::min(kBatchBytesMax, options.segment_bytes / 4),
                   .unsynced_bytes_max = options.segment_bytes / 2},
                  {.clock = clock,
                   .committer = committer_,
                   .upkeep = upkeep_,
                   .machines = machines,
                   .identity = start.identity,
                   .next = start.next}),
        reader_(storage, start.identity.salt, kReadFilesMax) {}

  ~RunningJournal() override {
    (void)Close();  // nobody is left to be told
  }

  // --- RecordSink ---
  Status Reserve(uint64_t batch_bytes, Claim claim) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    appender_.AssertHeld();
    return appender_.Reserve(batch_bytes, claim);
  }
  bool HasRoom(uint64_t batch_bytes, Claim claim) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    appender_.AssertHeld();
    return appender_.HasRoom(batch_bytes, claim);
  }
  Lsn Append(const BatchDraft& draft) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    appender_.AssertHeld();
    return appender_.Append(draft);
  }
  Lsn appended() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    committer_.mu().AssertHeld();
    return committer_.queue().positions().appended;
  }
  void Kick() override { committer_.Kick(); }
  StatusOr<std::string> ReadRecord(const RecordRef& ref, Lsn lsn) override {
    if (std::optional<std::string> record = committer_.FindInMemory(ref, lsn)) {
      return *std::move(record);
    }
    return reader_.Read(ref, lsn);
  }
  void ReadRecords(std::span<const Place> places, RecordBlock& records) override {
    size_t cold = 0;  // behind what was found: read together
    for (size_t i = 0; i < places.size(); ++i) {
      const std::optional<std::string> in_memory =
          committer_.FindInMemory(places[i].ref, places[i].lsn);
      if (!in_memory.has_value()) {
        ++cold;
        continue;
      }
      reader_.ReadMany(places.subspan(i - cold, cold), records);
      cold = 0;
      records.Add(AsBytes(*in_memory));
    }
    reader_.ReadMany(places.last(cold), records);
  }
  bool reads_ahead() const override { return reader_.reads_ahead(); }
  bool poisoned() const override { return committer_.poisoned(); }

  // --- CommitSource ---
  Status WaitFor(uint64_t lsn) override { return committer_.WaitFor(Lsn(lsn)); }
  void CallWhenReached(uint64_t lsn, std::function<void(Status)> callback) override {
    committer_.CallWhenReached(Lsn(lsn), std::move(callback));
  }
  bool Reached(uint64_t lsn) const override { return committer_.Reached(Lsn(lsn)); }

  // --- Journal ---
  Status Flush() override { return committer_.Flush(); }

  Status Close() override {
    MutexLock lock(close_mu_);
    if (!closed_) {
      closed_ = true;
      close_status_ = committer_.Stop();
      upkeep_.Stop();
      if (close_status_.ok() && committer_.poisoned()) close_status_ = committer_.poison();
      if (close_status_.ok()) close_status_ = upkeep_.WriteCleanMark();
    }
    return close_status_;
  }

  void Tick() override {
    committer_.Tick();
    upkeep_.Tick();
  }

  JournalSpace space() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    committer_.mu().AssertHeld();
    const SegmentSet& segments = committer_.segments();
    const CommitPositions& positions = committer_.queue().positions();
    return {.sealed = segments.sealed().all(),
            .active = segments.active().header.segment,
            .disk_bytes = segments.disk_bytes(),
            .short_of_space = !segments.shortage().ok(),
            .appended = positions.appended,
            .synced = positions.synced};
  }
  Status RetireBelow(SegmentId keep_from) override {
    return upkeep_.RetireBelow(keep_from,
                               [this](SegmentId oldest) { reader_.ForgetBelow(oldest); });
  }

  Status GiveUpReserve() override { return upkeep_.GiveUpReserve(); }

  void SetSpaceLimit(SpaceLimit* limit) override {
    MutexLock lock(committer_.mu());
    upkeep_.AssertHeld();
    upkeep_.SetSpaceLimit(limit);
  }
  void Recheck() override {
    MutexLock lock(committer_.mu());
    upkeep_.AssertHeld();
    upkeep_.Recheck();
  }

  EngineClock& engine_clock() override { return engine_clock_; }

  JournalStats stats() override {
    MutexLock lock(committer_.mu());
    const CommitPositions& positions = committer_.queue().positions();
    const CommitCounts& counts = committer_.counts();
    appender_.AssertHeld();
    return {.appended = positions.appended,
            .written = positions.written,
            .synced = positions.synced,
            .records = counts.records,
            .batches = counts.batches,
            .groups = counts.groups,
            .record_bytes = counts.record_bytes,
            .written_bytes = counts.written_bytes,
            .durable_writes = counts.durable_writes,
            .flushes = counts.flushes,
            .segments = committer_.segments().made(),
            .segment_waits = appender_.segment_waits(),
            .segment_wait_time = appender_.segment_wait_time(),
            .poisoned = committer_.poisoned()};
  }

 private:
  EngineClock engine_clock_;
  std::unique_ptr<File> lock_;  // DIR/LOCK: held until everything below is gone
  GroupCommitter committer_;
  Upkeep upkeep_;
  Appender appender_;
  RecordReader reader_;
  Mutex close_mu_;
  bool closed_ ABSL_GUARDED_BY(close_mu_) = false;
  Status close_status_ ABSL_GUARDED_BY(close_mu_);
};

Status CheckOptions(const JournalOptions& options) {
  if (options.segment_bytes < kSegmentBytesMin || options.segment_bytes > kSegmentBytesMax ||
      !IsAligned(options.segment_bytes, kBlockBytes)) {
    return Invalid("segment_bytes is {}: it must be a multiple of 4 KiB from {} to {}",
                   options.segment_bytes, kSegmentBytesMin, kSegmentBytesMax);
  }
  if (options.commit_interval < absl::ZeroDuration() ||
      options.commit_interval > absl::Seconds(10)) {
    return Invalid("commit_interval is {} ms: it must be from 0 to 10,000",
                   absl::ToInt64Milliseconds(options.commit_interval));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Journal>> Journal::Start(Storage& storage, Clock& clock, LogSink* log,
                                                  const JournalOptions& options, JournalStart start,
                                                  const StateMachines& machines, Mutex& sequencer) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(std::unique_ptr<WriteQueue> disk, storage.NewWriteQueue());
  CHECK(disk->depth_max() > 1);
  const GroupCommitterOptions committer_options = CommitterOptions(options, *disk);
  return std::make_unique<RunningJournal>(storage, clock, log, options, std::move(start), machines,
                                          sequencer, committer_options, std::move(disk));
}

}  // namespace holdfast
