// The composition root: storage, recovery, journal and stores become an Engine here and nowhere
// else.
#include "holdfast/engine.h"

#include <atomic>
#include <optional>

#include "journal/base/seeded_rng.h"
#include "journal/io/open_storage.h"
#include "journal/journal.h"
#include "journal/read_only_journal.h"
#include "recovery/housekeeper.h"
#include "recovery/opener.h"
#include "stores/engine_on_storage.h"
#include "stores/engine_options.h"
#include "stores/fork_guard.h"
#include "stores/local_stores.h"
#include "stores/memory_engine.h"

namespace holdfast {
namespace {

class JournalEngine final : public TickingEngine {
 public:
  // `owned` may be null; then `storage` is borrowed.
  JournalEngine(const EngineOptions& options, std::unique_ptr<Storage> owned, Storage& storage)
      : options_(options),
        clock_(options.clock != nullptr ? *options.clock : RealClock()),
        own_rng_(options.rng != nullptr ? 0 : EntropySeed()),
        rng_(options.rng != nullptr ? *options.rng : own_rng_),
        owned_storage_(std::move(owned)),
        storage_(storage),
        stores_(sequencer_, rng_, options_) {}
  ~JournalEngine() override;

  Status Start(bool threads);
  Status StartReadOnly();

  OffsetStore& offsets() override { return stores_.offsets(); }
  DeliveryStateStore& deliveries() override { return stores_.deliveries(); }
  DeadLetterStore& dead_letters() override { return stores_.dead_letters(); }
  SubscriptionStore& subscriptions() override { return *shared_.subscriptions; }
  SessionStore& sessions() override { return *shared_.sessions; }
  TaskStore& tasks() override { return *shared_.tasks; }
  MetaStore& meta() override { return stores_.meta(); }
  MetaStore* remote_meta() override {
    return options_.shared.backend == SharedBackend::kRemoteMeta ? shared_.meta.get() : nullptr;
  }
  Commit Transact(const std::function<void(Transaction&)>& fill) override {
    return stores_.Transact(fill);
  }

  std::string NewDeliveryId() override {
    return id_prefix_ + std::to_string(next_id_.fetch_add(1, std::memory_order_relaxed));
  }
  uint64_t boot_epoch() const override { return boot_epoch_; }
  absl::Duration EngineNow() override { return engine_clock_->Now(); }
  const RecoveryReport& recovery() const override { return report_; }
  EngineStats stats() override;
  Status Checkpoint() override;
  StatusOr<CompactionReport> Compact() override;
  Status Flush() override;
  Status Close() override;
  void Tick() override {
    if (journal_ == nullptr) return;
    journal_->Tick();
    housekeeper_->Tick();
    stores_.meta().Tick();
  }

 private:
  StatusOr<SharedStores> MakeShared(const StoreIdentity& identity);
  void BeginBoot(const StoreIdentity& identity, absl::Duration engine_time);
  void StartHousekeeper(const OpenedStore& opened, const StoreIdentity& identity, bool threads);
  Status CheckWriting();
  void LogStart();
  void Log(LogLevel level, const std::string& line) {
    if (options_.log != nullptr) options_.log->Log(level, line);
  }

  const EngineOptions options_;
  Clock& clock_;
  SeededRng own_rng_;
  Rng& rng_;
  std::unique_ptr<Storage> owned_storage_;
  Storage& storage_;
  const ForkGuard fork_guard_;
  Mutex sequencer_;  // Orders all records and guards the state of every store.
  LocalStores stores_;
  std::unique_ptr<Journal> journal_;               // null if read-only
  std::unique_ptr<Housekeeper> housekeeper_;       // likewise
  std::unique_ptr<ReadOnlyJournal> read_journal_;  // null if writing
  SharedStores shared_;  // Goes before what it may stand on: the journal and the Meta in it.
  std::optional<EngineClock> engine_clock_;
  RecoveryReport report_;
  uint64_t boot_epoch_ = 0;
  uint64_t disk_bytes_ = 0;  // when it was opened read-only
  std::string id_prefix_;
  std::atomic<uint64_t> next_id_{1};
  Mutex close_mu_;
  std::optional<Status> closed_ ABSL_GUARDED_BY(close_mu_);
};

JournalEngine::~JournalEngine() {
  if (fork_guard_.InChild()) {
    // Threads, locks and requests in flight belong to the parent: touch none of them.
    (void)housekeeper_.release();                // leaked on purpose
    (void)journal_.release();                    // leaked on purpose
    (void)owned_storage_.release();              // leaked on purpose
    (void)new SharedStores(std::move(shared_));  // leaked on purpose
    stores_.meta().AbandonInChild();
    return;
  }
  if (journal_ == nullptr) return;
  if (const Status closed = Close(); !closed.ok()) {
    Log(LogLevel::kError,
        fmt::format("{}: not closed cleanly: {}", storage_.display_path(), Message(closed)));
  }
}

Status JournalEngine::Start(bool threads) {
  ASSIGN_OR_RETURN(OpenedStore opened, OpenStore(storage_, clock_, rng_,
                                                 {.segment_bytes = options_.segment_bytes,
                                                  .lock_wait = options_.lock_wait,
                                                  .progress = options_.on_recovery_progress,
                                                  .log = options_.log},
                                                 stores_.machines()));
  report_ = opened.report;
  const StoreIdentity identity = opened.start.identity;
  BeginBoot(identity, opened.start.engine_time);
  ASSIGN_OR_RETURN(journal_,
                   Journal::Start(storage_, clock_, options_.log,
                                  {.durability = options_.durability,
                                   .commit_interval = options_.commit_interval,
                                   .segment_bytes = options_.segment_bytes,
                                   .threads = threads},
                                  std::move(opened.start), stores_.machines(), sequencer_));
  stores_.Attach(*journal_, fork_guard_, LimitsOf(options_),
                 {.clean = report_.clean || report_.created, .threads = threads});
  StartHousekeeper(opened, identity, threads);
  ASSIGN_OR_RETURN(shared_, MakeShared(identity));
  stores_.AddTo(report_);
  LogStart();
  return absl::OkStatus();
}

StatusOr<SharedStores> JournalEngine::MakeShared(const StoreIdentity& identity) {
  if (options_.shared.backend != SharedBackend::kEmbeddedMeta) {
    return MakeSharedStores(options_.shared, clock_);
  }
  // No two boots of a store share epoch and salt.
  SeededRng nonces(identity.id_salt + boot_epoch_);
  return MakeSharedStoresOn(stores_.meta(), nonces.Next(), options_.shared, clock_);
}

void JournalEngine::StartHousekeeper(const OpenedStore& opened, const StoreIdentity& identity,
                                     bool threads) {
  HousekeeperStart start{.since_checkpoint_bytes = opened.replayed_bytes, .pinned = opened.pinned};
  const std::vector<KeptCheckpoint>& kept = opened.checkpoints;  // oldest first
  if (!kept.empty()) {
    start.checkpoint = kept.back().from;
    start.checkpoint_bytes = kept.back().bytes;
  }
  if (kept.size() > 1) start.older_checkpoint = kept[kept.size() - 2].from;
  housekeeper_ = std::make_unique<Housekeeper>(
      HousekeeperOptions{.retention = {.segment_bytes = options_.segment_bytes,
                                       .checkpoint_every_bytes = options_.checkpoint_every_bytes,
                                       .space_ratio = options_.space_ratio},
                         .compact_bytes_per_second = options_.compact_bytes_per_second,
                         .threads = threads},
      HousekeeperParts{.storage = storage_,
                       .clock = clock_,
                       .log = options_.log,
                       .journal = *journal_,
                       .machines = stores_.machines(),
                       .live = stores_.live(),
                       .identity = identity},
      start);
}

Status JournalEngine::StartReadOnly() {
  ASSIGN_OR_RETURN(ReadStore read,
                   OpenReadOnly(storage_, stores_.machines(),
                                {.progress = options_.on_recovery_progress, .log = options_.log}));
  report_ = read.report;
  disk_bytes_ = read.disk_bytes;
  BeginBoot(read.identity, read.engine_time);
  read_journal_ = std::make_unique<ReadOnlyJournal>(storage_, read.identity.salt, sequencer_);
  stores_.Attach(*read_journal_, fork_guard_, LimitsOf(options_),
                 {.clean = report_.clean, .writable = false, .threads = false});
  ASSIGN_OR_RETURN(shared_, MakeShared(read.identity));
  stores_.AddTo(report_);
  LogStart();
  return absl::OkStatus();
}

void JournalEngine::BeginBoot(const StoreIdentity& identity, absl::Duration engine_time) {
  engine_clock_.emplace(clock_, engine_time);
  boot_epoch_ = identity.epoch.value();
  // Epoch 0 is never a boot: what a reader issues is nobody else's, and is never put.
  id_prefix_ = fmt::format("{}-{:016x}-", options_.read_only ? 0 : boot_epoch_, identity.id_salt);
}

void JournalEngine::LogStart() {
  const std::string reason = storage_.backend_reason();
  Log(LogLevel::kInfo,
      fmt::format(
          "{}: {} (boot {}), durability {}, commit interval {}, I/O {}{}{}{}; {} records of "
          "{} segments replayed in {}: {} deliveries, {} offsets, {} dead letters; last stop "
          "{}{}",
          storage_.display_path(),
          options_.read_only ? "opened read-only"
          : report_.created  ? "created"
                             : "opened",
          boot_epoch_, DurabilityName(options_.durability),
          absl::FormatDuration(options_.commit_interval), storage_.backend(),
          reason.empty() ? "" : " (", reason, reason.empty() ? "" : ")", report_.records,
          report_.segments, absl::FormatDuration(report_.duration), report_.deliveries,
          report_.offsets, report_.dead_letters,
          report_.clean || report_.created ? "clean" : "unclean",
          report_.unproven_tail ? ", unproven tail" : ""));
}

EngineStats JournalEngine::stats() {
  EngineStats stats;
  stats.io_backend = storage_.backend();
  stats.io_reason = storage_.backend_reason();
  stats.durability = options_.durability;
  if (journal_ != nullptr) {
    const JournalStats journal = journal_->stats();
    stats.appended_lsn = journal.appended.value();
    stats.written_lsn = journal.written.value();
    stats.synced_lsn = journal.synced.value();
    stats.records = journal.records;
    stats.batches = journal.batches;
    stats.groups = journal.groups;
    stats.record_bytes = journal.record_bytes;
    stats.written_bytes = journal.written_bytes;
    stats.durable_writes = journal.durable_writes;
    stats.flushes = journal.flushes;
    stats.segments = journal.segments;
    stats.segment_waits = journal.segment_waits;
    stats.segment_wait_time = journal.segment_wait_time;
    stats.poisoned = journal.poisoned;
    housekeeper_->AddTo(stats);
  } else {
    stats.appended_lsn = stats.written_lsn = stats.synced_lsn = report_.last_lsn;
    stats.segments = report_.segments;
    stats.checkpoint_lsn = report_.checkpoint_lsn;
    stats.checkpoint_bytes = report_.checkpoint_bytes;
    stats.disk_bytes = disk_bytes_;
    MutexLock lock(sequencer_);
    stats.live_records = stores_.live().total().records;
    stats.live_bytes = stores_.live().total().bytes;
  }
  stores_.AddTo(stats);
  return stats;
}

Status JournalEngine::CheckWriting() {
  RETURN_IF_ERROR(fork_guard_.Check());
  if (journal_ == nullptr) return WrongState(Detail::kReadOnly, "the store was opened read-only");
  return absl::OkStatus();
}

Status JournalEngine::Checkpoint() {
  RETURN_IF_ERROR(CheckWriting());
  return housekeeper_->Checkpoint();
}

StatusOr<CompactionReport> JournalEngine::Compact() {
  RETURN_IF_ERROR(CheckWriting());
  return housekeeper_->Compact();
}

Status JournalEngine::Flush() {
  if (fork_guard_.InChild()) return WrongState(Detail::kLocked, "a forked child cannot flush");
  return journal_ == nullptr ? absl::OkStatus() : journal_->Flush();
}

Status JournalEngine::Close() {
  if (fork_guard_.InChild()) return WrongState(Detail::kLocked, "a forked child cannot close");
  MutexLock lock(close_mu_);
  if (!closed_.has_value()) {
    stores_.meta().Close();
    if (housekeeper_ != nullptr) housekeeper_->Stop();
    closed_ = journal_ == nullptr ? absl::OkStatus() : journal_->Close();
  }
  return *closed_;
}

StatusOr<std::unique_ptr<TickingEngine>> OpenJournalEngine(const EngineOptions& options,
                                                           std::unique_ptr<Storage> owned,
                                                           Storage& storage, bool threads) {
  auto engine = std::make_unique<JournalEngine>(options, std::move(owned), storage);
  RETURN_IF_ERROR(options.read_only ? engine->StartReadOnly() : engine->Start(threads));
  return engine;
}

}  // namespace

StatusOr<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options) {
  RETURN_IF_ERROR(CheckEngineOptions(options));
  RETURN_IF_ERROR(CheckSharedStoreOptions(options.shared));
  if (options.backend == Backend::kMemory) return MakeMemoryEngine(options);
  ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage,
                   OpenStorage(options.directory, {.io = options.io,
                                                   .create = !options.read_only,
                                                   .read_only = options.read_only,
                                                   .log = options.log}));
  Storage& borrowed = *storage;
  return OpenJournalEngine(options, std::move(storage), borrowed, true);
}

StatusOr<std::unique_ptr<TickingEngine>> OpenEngineOn(Storage& storage,
                                                      const EngineOptions& options, bool threads) {
  EngineOptions checked = options;
  checked.backend = Backend::kJournal;
  checked.directory = storage.display_path();
  if (checked.directory.empty()) checked.directory = "-";
  RETURN_IF_ERROR(CheckEngineOptions(checked));
  RETURN_IF_ERROR(CheckSharedStoreOptions(checked.shared));
  return OpenJournalEngine(checked, nullptr, storage, threads);
}

}  // namespace holdfast
