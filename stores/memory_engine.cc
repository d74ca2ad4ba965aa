#include "stores/memory_engine.h"

#include <atomic>
#include <optional>

#include "journal/base/seeded_rng.h"
#include "journal/engine_clock.h"
#include "meta/memory_meta.h"
#include "stores/engine_options.h"
#include "stores/memory_stores.h"

namespace holdfast {
namespace {

class MemoryEngine final : public Engine {
 public:
  explicit MemoryEngine(const EngineOptions& options)
      : state_(LimitsOf(options), options.remembered_answers),
        offsets_(state_),
        deliveries_(state_),
        dead_letters_(state_),
        own_rng_(options.rng != nullptr ? 0 : EntropySeed()),
        rng_(options.rng != nullptr ? *options.rng : own_rng_),
        meta_(options.clock != nullptr ? *options.clock : RealClock(), rng_.Next()),
        engine_clock_(options.clock != nullptr ? *options.clock : RealClock(),
                      absl::ZeroDuration()),
        id_prefix_(fmt::format("{}-{:016x}-", kEpoch, rng_.Next())),
        durability_(options.durability),
        remote_(options.shared.backend == SharedBackend::kRemoteMeta) {
    if (options.log != nullptr) {
      options.log->Log(LogLevel::kInfo, "opened in memory: nothing survives this process");
    }
  }

  Status MakeShared(const EngineOptions& options) {
    Clock& clock = options.clock != nullptr ? *options.clock : RealClock();
    ASSIGN_OR_RETURN(shared_, options.shared.backend == SharedBackend::kEmbeddedMeta
                                  ? MakeSharedStoresOn(meta_, rng_.Next(), options.shared, clock)
                                  : MakeSharedStores(options.shared, clock));
    return absl::OkStatus();
  }

  OffsetStore& offsets() override { return offsets_; }
  DeliveryStateStore& deliveries() override { return deliveries_; }
  DeadLetterStore& dead_letters() override { return dead_letters_; }
  SubscriptionStore& subscriptions() override { return *shared_.subscriptions; }
  SessionStore& sessions() override { return *shared_.sessions; }
  TaskStore& tasks() override { return *shared_.tasks; }
  MetaStore& meta() override { return meta_; }
  MetaStore* remote_meta() override { return remote_ ? shared_.meta.get() : nullptr; }

  Commit Transact(const std::function<void(Transaction&)>& fill) override {
    // Not one for all: a transaction may be filled while another thread fills its own.
    static thread_local MemoryTransaction transaction;
    transaction.Begin(state_);
    fill(transaction);
    return transaction.Apply();
  }

  std::string NewDeliveryId() override {
    return id_prefix_ + std::to_string(next_id_.fetch_add(1, std::memory_order_relaxed));
  }
  uint64_t boot_epoch() const override { return kEpoch; }
  absl::Duration EngineNow() override { return engine_clock_.Now(); }
  const RecoveryReport& recovery() const override { return report_; }
  EngineStats stats() override {
    EngineStats stats;
    stats.io_backend = "memory";
    stats.durability = durability_;
    MutexLock lock(state_.mu);
    stats.remembered_answers = state_.answers.size();
    stats.appended_lsn = stats.written_lsn = stats.synced_lsn = state_.lsn;
    return stats;
  }
  Status Checkpoint() override { return absl::OkStatus(); }  // there is nothing to restart from
  StatusOr<CompactionReport> Compact() override { return CompactionReport(); }
  Status Flush() override { return absl::OkStatus(); }
  Status Close() override {
    MutexLock lock(state_.mu);
    state_.closed = true;
    return absl::OkStatus();
  }

 private:
  static constexpr uint64_t kEpoch = 1;

  MemoryState state_;
  MemoryOffsetStore offsets_;
  MemoryDeliveryStateStore deliveries_;
  MemoryDeadLetterStore dead_letters_;
  SeededRng own_rng_;
  Rng& rng_;
  MemoryMeta meta_;
  SharedStores shared_;  // Goes before the Meta that it may stand on.
  EngineClock engine_clock_;
  const std::string id_prefix_;
  const Durability durability_;
  const bool remote_;
  std::atomic<uint64_t> next_id_{1};
  RecoveryReport report_;
};

}  // namespace

StatusOr<std::unique_ptr<Engine>> MakeMemoryEngine(const EngineOptions& options) {
  auto engine = std::make_unique<MemoryEngine>(options);
  RETURN_IF_ERROR(engine->MakeShared(options));
  return engine;
}

}  // namespace holdfast
