#include "bench/dispatch_pending.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "bench/child_process.h"
#include "bench/samples.h"
#include "bench/stopwatch.h"
#include "bench/store_files.h"
#include "holdfast/dispatcher.h"
#include "holdfast/engine.h"
#include "journal/base/seeded_rng.h"

namespace holdfast::bench {
namespace {

constexpr absl::Duration kAckTimeout = absl::Hours(24);
constexpr absl::Duration kTickInterval = absl::Milliseconds(500);
constexpr uint64_t kTicks = 2'000;
// Of the last tick, on the first timer: time for all that it moves, on a slow machine too.
constexpr absl::Duration kLead = absl::Seconds(20);
constexpr uint64_t kProgressEvery = 1 << 14;

// The real clock, and a host that may leap ahead of it instead of waiting.
class LeapingClock final : public Clock {
 public:
  absl::Duration Now() override {
    return RealClock().Now() + absl::Nanoseconds(ahead_.load(std::memory_order_relaxed));
  }
  absl::Time WallNow() override { return RealClock().WallNow(); }
  absl::Duration Until(absl::Duration deadline) override {
    return std::max(absl::ZeroDuration(), deadline - Now());
  }
  void Leap(absl::Duration step) { ahead_ += absl::ToInt64Nanoseconds(step); }

 private:
  std::atomic<int64_t> ahead_{0};
};

// Takes everything and answers nothing.
class SilentChannel final : public Channel {
 public:
  void Push(const Delivery&) override {}
};

Status Fill(Dispatcher& dispatcher, uint64_t pending, const Progress& progress) {
  SourceEvent event{.source = {.topic = "orders.created", .incarnation = 1, .partition = 0}};
  event.event.assign(kEventBytes, 'e');
  const std::vector<Target> targets = {{.client = "archive"}};
  Commit last;
  for (uint64_t number = 0; number < pending; ++number) {
    event.offset = number;
    ASSIGN_OR_RETURN(const DeliverResult result, dispatcher.Deliver(event, targets));
    last = result.durable;
    if (number % kProgressEvery == 0) progress.Part(number, pending);
  }
  return last.Wait();
}

double TickMicros(Dispatcher& dispatcher) {
  const int64_t begin = NowNanos();
  dispatcher.Tick();
  return static_cast<double>(NowNanos() - begin) * 1e-3;
}

StatusOr<DispatchPendingFigures> Measure(const std::string& directory, IoBackend io,
                                         uint64_t pending, const Progress& progress) {
  DispatchPendingFigures figures{.pending = pending, .ticks = kTicks};
  LeapingClock clock;
  SeededRng rng(1);
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                   Engine::Open({.directory = directory,
                                 .io = io,
                                 .commit_interval = absl::Milliseconds(100),
                                 .clock = &clock}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Dispatcher> dispatcher,
                   Dispatcher::Make(*engine, rng,
                                    {.ack_timeout = kAckTimeout,
                                     .in_flight_per_client = pending,
                                     .in_flight_total = pending,
                                     .clock = &clock},
                                    {}));
  RETURN_IF_ERROR(dispatcher->Recover());
  dispatcher->ChannelOpened("archive", std::make_shared<SilentChannel>());

  const uint64_t memory_before = MemoryBytes("RssAnon");
  const int64_t begin = NowNanos();
  const absl::Duration first = engine->EngineNow() + kAckTimeout;
  RETURN_IF_ERROR(Fill(*dispatcher, pending, progress));
  figures.fill_seconds = static_cast<double>(NowNanos() - begin) * 1e-9;
  const uint64_t memory = MemoryBytes("RssAnon");
  figures.bytes = (static_cast<double>(memory) - static_cast<double>(memory_before) -
                   static_cast<double>(engine->stats().cache_bytes)) /
                      static_cast<double>(pending) -
                  static_cast<double>(engine->NewDeliveryId().size());

  std::vector<double> ticks;
  for (uint64_t tick = 0; tick < kTicks; ++tick) {
    clock.Leap(kTickInterval);
    ticks.push_back(TickMicros(*dispatcher));
  }
  std::sort(ticks.begin(), ticks.end());
  figures.tick_p50_micros = ticks[kTicks / 2];
  figures.tick_p99_micros = ticks[kTicks - kTicks / 100];
  figures.tick_max_micros = ticks.back();
  clock.Leap(first - engine->EngineNow() - kLead);
  figures.cascade_micros = TickMicros(*dispatcher);

  const DispatcherStats stats = dispatcher->Stats();
  const bool quiet = stats.pushed == pending && stats.redelivered == 0;
  figures.found = quiet ? std::min(stats.in_flight, engine->deliveries().Count()) : 0;
  return figures;
}

}  // namespace

StatusOr<DispatchPendingFigures> MeasureDispatchPending(const std::string& directory, IoBackend io,
                                                        uint64_t pending, Progress& progress) {
  constexpr uint64_t kBytesNeededOfDelivery = 600;  // record, padding, checkpoints
  constexpr uint64_t kBytesNeeded = uint64_t{512} << 20;
  if (pending == 0) return Invalid("no pending deliveries: give --pending 1 or more");
  RETURN_IF_ERROR(CheckFreeBytes(directory, kBytesNeeded + pending * kBytesNeededOfDelivery,
                                 fmt::format("{} pending deliveries", pending), "--pending"));
  const std::string store = directory + "/dispatcher-pending";
  RemoveStore(store);
  StatusOr<DispatchPendingFigures> figures =
      InChild<DispatchPendingFigures>([&] { return Measure(store, io, pending, progress); });
  RemoveStore(store);
  return figures;
}

}  // namespace holdfast::bench
