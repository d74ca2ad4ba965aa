#include "bench/recovery_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/child_process.h"
#include "bench/peers/recovery_store.h"
#include "bench/progress.h"
#include "bench/samples.h"
#include "bench/stopwatch.h"

namespace holdfast::bench {
namespace {

constexpr uint64_t kFieldBytes = 40 + 50;  // id and fields of a delivery
constexpr uint64_t kEventBytesMin = 96;    // the frame of the JSON
constexpr uint64_t kProgressEvery = 1 << 14;

struct Filled {
  double seconds = 0;
  uint64_t disk_bytes = 0;
  LiveDigest expected;
};

struct Opened {
  double open_seconds = 0, all_seconds = 0, open_cpu = 0, all_cpu = 0;
  uint64_t open_read = 0, all_read = 0, open_resident = 0, peak_resident = 0;
  LiveDigest found;
};

double SecondsSince(int64_t begin) { return static_cast<double>(NowNanos() - begin) * 1e-9; }

// Leaves the store open: the process is killed from outside, and closing would defeat the purpose.
StatusOr<Filled> Fill(const RecoveryKind& kind, const RecoverySetup& setup,
                      const RecoveryPlan& plan, Progress& progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<RecoveryStore> store, kind.open(setup));
  RecoveryWorkload workload(plan);
  const int64_t begin = NowNanos();
  while (!workload.done()) {
    RETURN_IF_ERROR(store->Run(workload.Next()));
    if (workload.number() % kProgressEvery == 0) progress.Part(workload.number(), plan.cycles);
  }
  RETURN_IF_ERROR(store->Confirm());
  Filled filled{.seconds = SecondsSince(begin), .expected = workload.Digest()};
  store.release();
  return filled;
}

StatusOr<Opened> OpenAndRead(const RecoveryKind& kind, const RecoverySetup& setup) {
  Opened opened;
  const double cpu = CpuSeconds();
  const uint64_t read = DeviceReadBytes();
  const int64_t begin = NowNanos();
  ASSIGN_OR_RETURN(std::unique_ptr<RecoveryStore> store, kind.open(setup));
  opened.open_seconds = SecondsSince(begin);
  opened.open_cpu = CpuSeconds() - cpu;
  opened.open_read = DeviceReadBytes() - read;
  opened.open_resident = MemoryBytes("VmRSS");
  LiveDigest found;
  RETURN_IF_ERROR(store->ReadAll(
      [&found](std::string_view id, std::string_view event) { found.Add(id, event); }));
  opened.all_seconds = SecondsSince(begin);
  opened.all_cpu = CpuSeconds() - cpu;
  opened.all_read = DeviceReadBytes() - read;
  opened.peak_resident = MemoryBytes("VmHWM");
  opened.found = found;
  store.release();
  return opened;
}

StatusOr<RecoverySample> Measure(const RecoveryKind& kind, const RecoverySetup& setup,
                                 const RecoveryPlan& plan, bool raw, Progress& progress) {
  RemoveStore(setup.directory);
  progress.Step(kind.name + ": filling");
  ASSIGN_OR_RETURN(const Filled filled,
                   InChild<Filled>([&] { return Fill(kind, setup, plan, progress); }));
  RecoverySample sample{.fill_seconds = filled.seconds,
                        .disk_bytes = SizeOf(setup.directory).disk_bytes,
                        .expected = filled.expected};
  progress.Step(kind.name + ": killed; opening and reading with a cold page cache");
  ASSIGN_OR_RETURN(sample.cached_bytes, DropPageCache(setup.directory));
  ASSIGN_OR_RETURN(const Opened opened, InChild<Opened>([&] { return OpenAndRead(kind, setup); }));
  sample.open_seconds = opened.open_seconds;
  sample.all_seconds = opened.all_seconds;
  sample.open_cpu_seconds = opened.open_cpu;
  sample.all_cpu_seconds = opened.all_cpu;
  sample.open_read_bytes = opened.open_read;
  sample.all_read_bytes = opened.all_read;
  sample.open_resident = opened.open_resident;
  sample.peak_resident = opened.peak_resident;
  sample.found = opened.found;
  if (raw) {
    ASSIGN_OR_RETURN(sample.raw_one, ReadRaw(setup.directory, 1));
    ASSIGN_OR_RETURN(sample.raw_four, ReadRaw(setup.directory, 4));
  }
  RemoveStore(setup.directory);
  return sample;
}

std::vector<RecoveryKind> KindsOf(const RecoveryOptions& options) {
  using Peers = RecoveryOptions::Peers;
  std::vector<RecoveryKind> kinds = {HoldfastKind()};
  std::vector<RecoveryKind> peers;
  if (options.peers == Peers::kFound) peers = PeerKinds();
  if (options.peers == Peers::kRocksDb) peers = RocksDbKinds();
  if (options.peers == Peers::kLmdb) peers = LmdbKinds();
  kinds.insert(kinds.end(), peers.begin(), peers.end());
  return kinds;
}

Status CheckOptions(const RecoveryOptions& options) {
  const RecoveryPlan& plan = options.plan;
  if (plan.live == 0 || plan.live > plan.cycles) {
    return Invalid("{} live deliveries out of {} cycles: give 1 <= --live <= --cycles", plan.live,
                   plan.cycles);
  }
  if (plan.event_bytes < kEventBytesMin) {
    return Invalid("events of {} B: give --event-bytes {} or more", plan.event_bytes,
                   kEventBytesMin);
  }
  return CheckFreeBytes(options.directory, RecoveryBytesNeeded(plan),
                        fmt::format("{} cycles with events of {} B", plan.cycles, plan.event_bytes),
                        "--cycles");
}

}  // namespace

double RecoveredStore::Middle(double RecoverySample::* figure) const {
  std::vector<double> values;
  for (const RecoverySample& sample : rounds) values.push_back(sample.*figure);
  return Median(values);
}

double RecoveredStore::Middle(uint64_t RecoverySample::* figure) const {
  std::vector<double> values;
  for (const RecoverySample& sample : rounds) values.push_back(static_cast<double>(sample.*figure));
  return Median(values);
}

bool RecoveryReport::intact() const {
  return std::all_of(stores.begin(), stores.end(), [](const RecoveredStore& store) {
    return std::all_of(store.rounds.begin(), store.rounds.end(),
                       [](const RecoverySample& sample) { return sample.intact(); });
  });
}

const RecoveredStore* RecoveryReport::Find(const std::string& name) const {
  const auto found =
      std::find_if(stores.begin(), stores.end(),
                   [&name](const RecoveredStore& store) { return store.name.starts_with(name); });
  return found == stores.end() ? nullptr : &*found;
}

// A journal that nothing was removed from: put, removal and offset of each cycle with their headers
// and padding, and segments made ahead of need.
uint64_t RecoveryBytesNeeded(const RecoveryPlan& plan) {
  constexpr uint64_t kOfCycle = 2 * kFieldBytes + 128;
  return plan.cycles * (plan.event_bytes + kOfCycle) * 11 / 10 + (uint64_t{512} << 20);
}

StatusOr<RecoveryReport> RunRecoveryBench(const RecoveryOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  const std::vector<RecoveryKind> kinds = KindsOf(options);
  RecoveryReport report;
  for (const RecoveryKind& kind : kinds) {
    report.stores.push_back({.name = kind.name, .settings = kind.settings, .rounds = {}});
  }
  const RecoverySetup setup{
      .directory = options.directory + "/recovery",
      .io = options.io,
      .live_bytes = options.plan.live * (options.plan.event_bytes + kFieldBytes)};
  Progress progress(options.rounds * static_cast<int>(kinds.size()) * 2);
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t index = 0; index < kinds.size(); ++index) {
      ASSIGN_OR_RETURN(const RecoverySample sample,
                       Measure(kinds[index], setup, options.plan, /*raw=*/index == 0, progress));
      report.stores[index].rounds.push_back(sample);
    }
  }
  return report;
}

}  // namespace holdfast::bench
