#include "bench/dispatch_workload.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "bench/dispatch_client.h"
#include "bench/stopwatch.h"
#include "bench/store_files.h"
#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"

namespace holdfast::bench {
namespace {

constexpr absl::Duration kBatchInterval = absl::Milliseconds(100);
// Before the clock starts: three intervals, so that the first acknowledgements are confirmed.
constexpr double kLeadInSeconds = 0.3;

DispatcherOptions OptionsOf(const DispatchPlan& plan) {
  DispatcherOptions options;
  options.in_flight_per_client = options.in_flight_total = 2 * plan.in_flight + 1'000;
  if (plan.retries > 0 || plan.dlq > 0) {
    options.tick_interval = absl::Milliseconds(10);
    options.backoff_min = options.backoff_max = absl::Milliseconds(10);
  }
  if (plan.dlq > 0) {
    options.ack_timeout = absl::Seconds(1);
    options.attempts_max = plan.retries > 0 ? 2 : 1;
  }
  return options;
}

// Tells each source of the end of its events.
class Sources final : public SourceAck {
 public:
  explicit Sources(const std::vector<std::shared_ptr<DispatchClient>>& clients)
      : clients_(clients) {}
  void Finished(const SourceKey& source, std::optional<uint64_t> offset, uint64_t) override {
    clients_[source.partition]->Finished(offset.value_or(0));
  }

 private:
  const std::vector<std::shared_ptr<DispatchClient>>& clients_;
};

// Engine, dispatcher and clients of one run.
class Run {
 public:
  explicit Run(const DispatchPlan& plan) : plan_(plan), sources_(clients_), rng_(1) {}
  ~Run() {
    dispatcher_.reset();
    engine_.reset();
    if (OnDisk()) RemoveStore(plan_.directory);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Status Open() {
    if (OnDisk()) RemoveStore(plan_.directory);
    EngineOptions options{.directory = plan_.directory, .io = plan_.io};
    if (!OnDisk()) options = {.backend = Backend::kMemory};
    if (plan_.stores == DispatchStores::kBatched) options.commit_interval = kBatchInterval;
    ASSIGN_OR_RETURN(engine_, Engine::Open(options));
    ASSIGN_OR_RETURN(dispatcher_,
                     Dispatcher::Make(*engine_, rng_, OptionsOf(plan_), {.source_ack = &sources_}));
    RETURN_IF_ERROR(dispatcher_->Recover());
    const auto count = static_cast<uint64_t>(plan_.threads);
    for (uint64_t number = 0; number < count; ++number) {
      clients_.push_back(
          std::make_shared<DispatchClient>(ClientPlan{.number = number,
                                                      .in_flight = plan_.in_flight / count,
                                                      .retries = plan_.retries,
                                                      .dlq = plan_.dlq}));
      dispatcher_->ChannelOpened(clients_.back()->name(), clients_.back());
    }
    dispatcher_->Start();
    return absl::OkStatus();
  }

  void RunClosed(WorkloadResult& work) {
    std::atomic<bool> stop = false;
    std::latch filled(plan_.threads);
    std::vector<std::thread> threads;
    for (const auto& client : clients_) {
      threads.emplace_back([&, this] { client->RunClosed(*dispatcher_, stop, filled); });
    }
    filled.wait();
    Pause(std::min(kLeadInSeconds, plan_.seconds));
    const Snapshot before = TakeSnapshot();
    Measure(true);
    Pause(plan_.seconds);
    Measure(false);
    const Snapshot after = TakeSnapshot();
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    work.cycles = after.asked - before.asked;
    work.seconds = static_cast<double>(after.nanos - before.nanos) * 1e-9;
    Differ(before, after, work);
  }

  void RunOpen(WorkloadResult& work) {
    const auto share = static_cast<double>(plan_.threads);
    const Snapshot before = TakeSnapshot();
    Measure(true);
    std::vector<std::thread> threads;
    for (const auto& client : clients_) {
      threads.emplace_back([&, this] {
        client->RunOpen(*dispatcher_,
                        {.begin = before.nanos,
                         .per_second = plan_.rate / share,
                         .count = static_cast<uint64_t>(plan_.rate * plan_.seconds / share)});
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Snapshot after = TakeSnapshot();
    work.cycles = after.asked - before.asked;
    double slope = 0;
    for (const auto& client : clients_) slope += client->pace().slope() / share;
    // Nobody is faster than the schedule: less than 1 is the noise of the last burst.
    work.seconds = static_cast<double>(work.cycles) / plan_.rate * std::max(slope, 1.0);
    Differ(before, after, work);
  }

  // Every event came to one end, and nothing is left of any.
  Status Audit(DispatchResult& result) {
    const auto expect = [&result](const char* what, uint64_t found, uint64_t expected) {
      if (found != expected) {
        result.faults.push_back(fmt::format("{}: {}, expected {}", what, found, expected));
      }
    };
    const DispatcherStats stats = dispatcher_->Stats();
    ClientEnd all;
    for (const auto& client : clients_) {
      const ClientEnd end = client->End();
      RETURN_IF_ERROR(end.status);
      all.delivered += end.delivered;
      all.acked += end.acked;
      all.dead_lettered += end.dead_lettered;
      all.twice += end.twice;
      const auto stored = engine_->offsets().Read(
          {"orders.created", client->name(), static_cast<uint64_t>(&client - clients_.data())});
      expect("offset of a client", stored.ok() ? stored->position.next : 0, end.next);
      result.work.latency.Merge(client->latency());
    }
    expect("events that came to an end", all.acked + all.dead_lettered, all.delivered);
    expect("ends told twice", all.twice, 0);
    expect("acknowledged, as the dispatcher counts", stats.acked, all.acked);
    expect("dead-lettered, as the dispatcher counts", stats.dead_lettered, all.dead_lettered);
    expect("source acknowledgements", stats.source_acks, all.delivered);
    expect("left in flight", stats.in_flight, 0);
    expect("left in the store", engine_->deliveries().Count(), 0);
    if (plan_.dlq == 0) expect("dead-lettered", all.dead_lettered, 0);
    result.redelivered = stats.redelivered;
    result.dead_lettered = all.dead_lettered;
    result.io = engine_->stats().io_backend;
    dispatcher_.reset();
    return engine_->Close();
  }

 private:
  struct Snapshot {
    uint64_t asked = 0;
    EngineStats engine;
    double cpu_seconds = 0;
    int64_t nanos = 0;
  };
  bool OnDisk() const { return plan_.stores != DispatchStores::kMemory; }
  Snapshot TakeSnapshot() {
    Snapshot taken{.engine = engine_->stats(), .cpu_seconds = CpuSeconds(), .nanos = NowNanos()};
    for (const auto& client : clients_) taken.asked += client->asked();
    return taken;
  }
  static void Differ(const Snapshot& before, const Snapshot& after, WorkloadResult& work) {
    work.cpu_seconds = after.cpu_seconds - before.cpu_seconds;
    work.counters = {.written_bytes = after.engine.written_bytes - before.engine.written_bytes,
                     .flushes = after.engine.flushes + after.engine.durable_writes -
                                before.engine.flushes - before.engine.durable_writes};
  }
  void Measure(bool on) {
    for (const auto& client : clients_) client->Measure(on);
  }

  const DispatchPlan plan_;
  std::vector<std::shared_ptr<DispatchClient>> clients_;  // shared with the dispatcher
  Sources sources_;
  SeededRng rng_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Dispatcher> dispatcher_;  // goes before the engine
};

}  // namespace

const char* NameOf(DispatchStores stores) {
  switch (stores) {
    case DispatchStores::kMemory:
      return "in-memory stores";
    case DispatchStores::kBatched:
      return "journal, batched";
    case DispatchStores::kWriteThrough:
      return "journal, write-through";
  }
  return "";
}

StatusOr<DispatchResult> RunDispatch(const DispatchPlan& plan) {
  DispatchResult result;
  Run run(plan);
  RETURN_IF_ERROR(run.Open());
  if (plan.rate > 0) {
    run.RunOpen(result.work);
  } else {
    run.RunClosed(result.work);
  }
  RETURN_IF_ERROR(run.Audit(result));
  return result;
}

}  // namespace holdfast::bench
