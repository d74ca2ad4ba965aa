#include "bench/backlog_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/child_process.h"
#include "bench/cycle_maker.h"
#include "bench/engine_subject.h"
#include "bench/progress.h"
#include "bench/recovery_workload.h"
#include "bench/samples.h"
#include "bench/stopwatch.h"
#include "bench/store_files.h"
#include "holdfast/engine.h"
#include "journal/base/json.h"

namespace holdfast::bench {
namespace {

constexpr uint64_t kFlowPending = 1'000;
constexpr uint64_t kIdBytes = 40;
constexpr int kBacklogThread = 1;  // its ids are not the flow's
constexpr uint64_t kCyclesBetweenLooks = 64;
constexpr uint64_t kProgressEvery = 1 << 14;
constexpr uint64_t kSegmentBytes = uint64_t{64} << 20;
constexpr uint64_t kFreeBytesMin = uint64_t{2} << 30;  // the flow ends early where less is left

double SecondsSince(int64_t begin) { return static_cast<double>(NowNanos() - begin) * 1e-9; }

// One engine and the flow on it.
class FlowStore {
 public:
  static StatusOr<std::unique_ptr<FlowStore>> Open(const BacklogOptions& options,
                                                   const std::string& name) {
    const std::string directory = options.directory + "/" + name;
    RemoveStore(directory);
    ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                     Engine::Open({.directory = directory,
                                   .io = options.io,
                                   .commit_interval = absl::Milliseconds(100),
                                   .segment_bytes = kSegmentBytes}));
    return std::make_unique<FlowStore>(std::move(engine), directory, options);
  }
  FlowStore(std::unique_ptr<Engine> engine, std::string directory, const BacklogOptions& options)
      : engine_(std::move(engine)),
        directory_(std::move(directory)),
        seconds_(options.seconds),
        cycles_(0, kFlowPending, options.event_bytes) {}

  // The deliveries of the flow that are pending before its first turn.
  Status Prepare() {
    Commit last;
    for (uint64_t count = 0; count < kFlowPending; ++count) last = RunOne();
    RETURN_IF_ERROR(last.Wait());
    before_ = engine_->stats();
    return absl::OkStatus();
  }

  Status Turn() {
    Commit last;
    uint64_t count = 0;
    const double cpu = CpuSeconds();
    const int64_t begin = NowNanos();
    while (SecondsSince(begin) < seconds_) {
      for (uint64_t step = 0; step < kCyclesBetweenLooks; ++step) last = RunOne();
      count += kCyclesBetweenLooks;
      RETURN_IF_ERROR(last.refused());
    }
    RETURN_IF_ERROR(last.Wait());
    micros_.push_back(SecondsSince(begin) * 1e6 / static_cast<double>(count));
    cpu_micros_.push_back((CpuSeconds() - cpu) * 1e6 / static_cast<double>(count));
    cycles_run_ += count;
    return absl::OkStatus();
  }

  FlowFigures Figures() {
    const EngineStats stats = engine_->stats();
    const uint64_t restated = stats.restated_bytes - before_.restated_bytes;
    const uint64_t records = stats.record_bytes - before_.record_bytes - restated;
    return {.micros = Median(micros_),
            .cpu_micros = Median(cpu_micros_),
            .cycles = cycles_run_,
            .amplification = static_cast<double>(stats.written_bytes - before_.written_bytes) /
                             static_cast<double>(std::max<uint64_t>(records, 1))};
  }

  Engine& engine() { return *engine_; }
  const std::string& directory() const { return directory_; }
  Status Close() {
    RETURN_IF_ERROR(engine_->Close());
    engine_.reset();
    RemoveStore(directory_);
    return absl::OkStatus();
  }

 private:
  Commit RunOne() { return RunCycle(*engine_, cycles_.Next()); }

  std::unique_ptr<Engine> engine_;
  const std::string directory_;
  const double seconds_;
  CycleMaker cycles_;
  EngineStats before_;
  std::vector<double> micros_, cpu_micros_;
  uint64_t cycles_run_ = 0;
};

Status FillBacklog(Engine& engine, const BacklogOptions& options, const Progress& progress) {
  Delivery put;
  put.topic = "orders.created";
  put.client = "archive";
  put.due = absl::Hours(24);
  put.created = absl::FromUnixSeconds(1'790'000'000);
  Commit last;
  for (uint64_t number = 0; number < options.pending; ++number) {
    put.id = MakeDeliveryId(kBacklogThread, number);
    put.offset = number;
    FillJsonEvent(number, options.event_bytes, put.event);
    last = engine.deliveries().Put(put);
    RETURN_IF_ERROR(last.refused());
    if (number % kProgressEvery == 0) progress.Part(number, options.pending);
  }
  return last.Wait();
}

StatusOr<BacklogReport> Measure(const BacklogOptions& options, Progress& progress) {
  BacklogReport report;
  const auto turns_on = [&](FlowStore& store, const char* title) -> Status {
    for (int turn = 0; turn < options.turns; ++turn) {
      progress.Step(title);
      RETURN_IF_ERROR(store.Turn());
    }
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(std::unique_ptr<FlowStore> small, FlowStore::Open(options, "backlog-small"));
  RETURN_IF_ERROR(small->Prepare());
  RETURN_IF_ERROR(turns_on(*small, "1,000 pending: the flow"));

  progress.Step("putting the backlog");
  ASSIGN_OR_RETURN(std::unique_ptr<FlowStore> large, FlowStore::Open(options, "backlog"));
  Engine& engine = large->engine();
  const uint64_t memory_before = MemoryBytes("RssAnon");
  const int64_t begin = NowNanos();
  RETURN_IF_ERROR(FillBacklog(engine, options, progress));
  report.fill_seconds = SecondsSince(begin);
  const EngineStats filled = engine.stats();
  const uint64_t memory = MemoryBytes("RssAnon");
  report.index_bytes = (static_cast<double>(memory) - static_cast<double>(memory_before) -
                        static_cast<double>(filled.cache_bytes)) /
                           static_cast<double>(options.pending) -
                       static_cast<double>(kIdBytes);
  // The records of the backlog, and as many bytes for each pending delivery of the flow.
  const uint64_t backlog_bytes = filled.record_bytes - filled.restated_bytes;
  report.live_bytes = backlog_bytes + kFlowPending * backlog_bytes / options.pending;
  report.bound_bytes = std::max(3 * report.live_bytes, report.live_bytes + 8 * kSegmentBytes);

  RETURN_IF_ERROR(large->Prepare());
  for (int turn = 0; turn < options.turns; ++turn) {
    progress.Step("the flow beside the backlog");
    ASSIGN_OR_RETURN(const uint64_t free, FreeBytes(options.directory));
    if (free < kFreeBytesMin) break;
    RETURN_IF_ERROR(large->Turn());
    report.disk_bytes = SizeOf(large->directory(), "/journal/").disk_bytes;
    report.disk_bytes_max = std::max(report.disk_bytes_max, report.disk_bytes);
  }
  report.backlog = large->Figures();
  const EngineStats stats = engine.stats();
  report.checkpoint_bytes = SizeOf(large->directory(), "/checkpoint").disk_bytes;
  report.engine_live_bytes = stats.live_bytes;
  report.restated_bytes = stats.restated_bytes;
  report.retired_segments = stats.retired_segments;
  report.found = engine.deliveries().Count();
  RETURN_IF_ERROR(large->Close());

  RETURN_IF_ERROR(turns_on(*small, "1,000 pending: the flow again"));
  report.small = small->Figures();
  RETURN_IF_ERROR(small->Close());
  return report;
}

double Mega(uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

// What may be there if nothing is compacted while it runs.
uint64_t BytesNeeded(const BacklogOptions& options) {
  constexpr uint64_t kOfDelivery = 160;  // id, fields, headers
  return options.pending * (options.event_bytes + kOfDelivery) * 3 + kFreeBytesMin * 2;
}

}  // namespace

uint64_t BacklogExpected(const BacklogOptions& options) { return options.pending + kFlowPending; }

StatusOr<BacklogReport> RunBacklogBench(const BacklogOptions& options) {
  if (options.pending == 0) return Invalid("no pending deliveries: give --pending 1 or more");
  RETURN_IF_ERROR(
      CheckFreeBytes(options.directory, BytesNeeded(options),
                     fmt::format("{} pending deliveries with events of {} B and their flow",
                                 options.pending, options.event_bytes),
                     "--pending"));
  Progress progress(3 * options.turns + 1);
  StatusOr<BacklogReport> report =
      InChild<BacklogReport>([&] { return Measure(options, progress); });
  RemoveStore(options.directory + "/backlog");
  RemoveStore(options.directory + "/backlog-small");
  return report;
}

std::vector<Target> TargetsOf(const BacklogReport& report) {
  return {
      {"cost of a cycle beside the backlog / with 1,000 pending",
       report.backlog.micros / report.small.micros, false, 1.5},
      {"disk, at most / max(3 x live, live + 8 segments)",
       static_cast<double>(report.disk_bytes_max) / static_cast<double>(report.bound_bytes), false,
       1},
      {"memory of a delivery besides its id, bytes", report.index_bytes, false, 64},
      {"bytes written / bytes of records, 1,000 pending", report.small.amplification, false, 1.5},
      {"bytes written / bytes of records, beside the backlog", report.backlog.amplification, false,
       2.2}};
}

std::string BacklogMarkdown(const BacklogReport& report, const BacklogOptions& options,
                            const RunFacts& facts) {
  std::string out = "# holdfast-bench backlog\n\n" + FactsMarkdown(facts, "");
  fmt::format_to(
      std::back_inserter(out),
      "{} deliveries with events of {} B stay pending, put in {:.1f} s. Beside them a cycle puts a "
      "delivery, removes the one put {} cycles earlier and moves its offset on, in one "
      "transaction, "
      "batched at 100 ms: {} turns of {} s, and as many on a small store before and after.\n\n"
      "| flow | µs/cycle | CPU µs/cycle | cycles | bytes written / bytes of records |\n"
      "|---|---|---|---|---|\n",
      options.pending, options.event_bytes, report.fill_seconds, kFlowPending, options.turns,
      options.seconds);
  for (const auto& [name, flow] :
       {std::pair{"1,000 pending", &report.small}, {"beside the backlog", &report.backlog}}) {
    fmt::format_to(std::back_inserter(out), "| {} | {:.2f} | {:.2f} | {} | {:.2f} |\n", name,
                   flow->micros, flow->cpu_micros, flow->cycles, flow->amplification);
  }
  fmt::format_to(
      std::back_inserter(out),
      "\n| what | |\n|---|---|\n"
      "| live records | {:.0f} MB (the engine counts {:.0f} MB) |\n"
      "| journal on disk: at the end, at most | {:.0f} MB, {:.0f} MB |\n"
      "| its bound, max(3 x live, live + 8 segments) | {:.0f} MB |\n"
      "| checkpoints on disk | {:.0f} MB |\n"
      "| stated again by compaction | {:.0f} MB |\n"
      "| segments retired | {} |\n"
      "| pending at the end | {}, {} |\n\n",
      Mega(report.live_bytes), Mega(report.engine_live_bytes), Mega(report.disk_bytes),
      Mega(report.disk_bytes_max), Mega(report.bound_bytes), Mega(report.checkpoint_bytes),
      Mega(report.restated_bytes), report.retired_segments, report.found,
      report.found == BacklogExpected(options) ? "all that should be" : "**not what was put**");
  return out + TargetsMarkdown(TargetsOf(report));
}

std::string BacklogJson(const BacklogReport& report, const BacklogOptions& options,
                        const RunFacts& facts) {
  std::string out = FactsJson(facts, "");
  JsonWriter json(out);
  json.BeginObject()
      .Field("kind", "backlog")
      .Field("pending", options.pending)
      .Field("event_bytes", options.event_bytes)
      .Field("fill_seconds", report.fill_seconds)
      .Field("small_us_per_cycle", report.small.micros)
      .Field("small_cpu_us_per_cycle", report.small.cpu_micros)
      .Field("small_cycles", report.small.cycles)
      .Field("small_amplification", report.small.amplification)
      .Field("backlog_us_per_cycle", report.backlog.micros)
      .Field("backlog_cpu_us_per_cycle", report.backlog.cpu_micros)
      .Field("backlog_cycles", report.backlog.cycles)
      .Field("backlog_amplification", report.backlog.amplification)
      .Field("index_bytes_per_delivery", report.index_bytes)
      .Field("live_bytes", report.live_bytes)
      .Field("engine_live_bytes", report.engine_live_bytes)
      .Field("bound_bytes", report.bound_bytes)
      .Field("disk_bytes", report.disk_bytes)
      .Field("disk_bytes_max", report.disk_bytes_max)
      .Field("checkpoint_bytes", report.checkpoint_bytes)
      .Field("restated_bytes", report.restated_bytes)
      .Field("retired_segments", report.retired_segments)
      .Field("found", report.found)
      .EndObject();
  out += '\n';
  return out + TargetsJson(TargetsOf(report));
}

}  // namespace holdfast::bench
