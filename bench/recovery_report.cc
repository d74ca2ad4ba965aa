#include "bench/recovery_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/samples.h"
#include "journal/base/json.h"

namespace holdfast::bench {
namespace {

constexpr double kMega = 1e-6;

double Mega(double bytes) { return bytes * kMega; }

// Median over the rounds of this store's figure against the other's in the same round.
double Against(const RecoveredStore& store, const RecoveredStore& other,
               double RecoverySample::* figure) {
  std::vector<double> ratios;
  for (size_t round = 0; round < std::min(store.rounds.size(), other.rounds.size()); ++round) {
    ratios.push_back(store.rounds[round].*figure / other.rounds[round].*figure);
  }
  return Median(ratios);
}

double OpenRate(const RecoverySample& sample) {
  return static_cast<double>(sample.open_read_bytes) / sample.open_seconds;
}

struct ReadSpeed {
  double open = 0, raw_one = 0, raw_four = 0;  // bytes a second
  double against_one = 0, against_four = 0;
};

ReadSpeed SpeedOf(const RecoveredStore& store) {
  std::vector<double> open, one, four, against_one, against_four;
  for (const RecoverySample& sample : store.rounds) {
    open.push_back(OpenRate(sample));
    one.push_back(sample.raw_one.bytes_per_second());
    four.push_back(sample.raw_four.bytes_per_second());
    against_one.push_back(open.back() / one.back());
    against_four.push_back(open.back() / four.back());
  }
  return {.open = Median(open),
          .raw_one = Median(one),
          .raw_four = Median(four),
          .against_one = Median(against_one),
          .against_four = Median(against_four)};
}

void AddTable(const RecoveryReport& report, std::string& out) {
  out +=
      "| store | open s | open + all s | CPU s: open | open + all | read MB: open | open + all "
      "| resident MB: open | peak | on disk MB | filled in s | live |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const RecoveredStore& store : report.stores) {
    const bool intact = std::all_of(store.rounds.begin(), store.rounds.end(),
                                    [](const RecoverySample& sample) { return sample.intact(); });
    const LiveDigest& found = store.rounds.back().found;
    fmt::format_to(std::back_inserter(out),
                   "| {} | {:.3f} | {:.2f} | {:.2f} | {:.2f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} "
                   "| {:.0f} | {:.1f} | {}{} |\n",
                   store.name, store.Middle(&RecoverySample::open_seconds),
                   store.Middle(&RecoverySample::all_seconds),
                   store.Middle(&RecoverySample::open_cpu_seconds),
                   store.Middle(&RecoverySample::all_cpu_seconds),
                   Mega(store.Middle(&RecoverySample::open_read_bytes)),
                   Mega(store.Middle(&RecoverySample::all_read_bytes)),
                   Mega(store.Middle(&RecoverySample::open_resident)),
                   Mega(store.Middle(&RecoverySample::peak_resident)),
                   Mega(store.Middle(&RecoverySample::disk_bytes)),
                   store.Middle(&RecoverySample::fill_seconds), found.count,
                   intact ? ", intact" : ", **not what was put**");
  }
  out += '\n';
}

void AddSettings(const RecoveryReport& report, std::string& out) {
  for (const RecoveredStore& store : report.stores) {
    fmt::format_to(std::back_inserter(out), "- {}: {}\n", store.name, store.settings);
  }
  double cached = 0;
  for (const RecoveredStore& store : report.stores) {
    for (const RecoverySample& sample : store.rounds) {
      cached = std::max(cached, static_cast<double>(sample.cached_bytes));
    }
  }
  fmt::format_to(std::back_inserter(out),
                 "- cold: every file synced, then posix_fadvise(DONTNEED); by mincore {:.1f} MB at "
                 "most stayed in the page cache\n\n",
                 Mega(cached));
}

void AddSample(const RecoverySample& sample, JsonWriter& json) {
  json.Field("open_seconds", sample.open_seconds)
      .Field("open_and_read_seconds", sample.all_seconds)
      .Field("open_cpu_seconds", sample.open_cpu_seconds)
      .Field("open_and_read_cpu_seconds", sample.all_cpu_seconds)
      .Field("open_read_bytes", sample.open_read_bytes)
      .Field("open_and_read_read_bytes", sample.all_read_bytes)
      .Field("open_resident_bytes", sample.open_resident)
      .Field("peak_resident_bytes", sample.peak_resident)
      .Field("disk_bytes", sample.disk_bytes)
      .Field("cached_bytes", sample.cached_bytes)
      .Field("fill_seconds", sample.fill_seconds)
      .Field("live", sample.found.count)
      .Field("intact", sample.intact());
  if (sample.raw_one.bytes > 0) {
    json.Field("raw_depth_1_bytes_per_second", sample.raw_one.bytes_per_second())
        .Field("raw_depth_4_bytes_per_second", sample.raw_four.bytes_per_second());
  }
}

}  // namespace

std::vector<Target> TargetsOf(const RecoveryReport& report) {
  std::vector<Target> targets;
  const RecoveredStore& ours = report.stores.front();
  if (const RecoveredStore* rocks = report.Find("RocksDB")) {
    targets.push_back({"open / RocksDB's open",
                       Against(ours, *rocks, &RecoverySample::open_seconds), false, 0.5});
  }
  if (const RecoveredStore* lmdb = report.Find("LMDB")) {
    targets.push_back({"open + read all / LMDB's (aim 0.6)",
                       Against(ours, *lmdb, &RecoverySample::all_seconds), false, 0.9});
  }
  return targets;
}

std::string RecoveryMarkdown(const RecoveryReport& report, const RecoveryOptions& options,
                             const RunFacts& facts) {
  const RecoveryPlan& plan = options.plan;
  std::string out = "# holdfast-bench recovery\n\n" + FactsMarkdown(facts, "");
  fmt::format_to(
      std::back_inserter(out),
      "{} live deliveries (id of 40 B, about 50 B of fields, event of {} B) out of {} cycles: each "
      "puts one, removes {} and moves an offset on, as one transaction, synced each 100 ms. The "
      "process is killed when all are confirmed; another one opens the store and reads every "
      "event. Medians of {} rounds.\n\n",
      plan.live, plan.event_bytes, plan.cycles,
      plan.order == RemovalOrder::kFifo ? "the oldest live one" : "any live one", options.rounds);
  AddTable(report, out);
  AddSettings(report, out);
  const ReadSpeed speed = SpeedOf(report.stores.front());
  fmt::format_to(std::back_inserter(out),
                 "Opening reads {:.0f} MB/s from the device. The same files read by O_DIRECT and "
                 "nothing else: one read of 1 MiB at a time {:.0f} MB/s (x {:.2f}), four {:.0f} "
                 "MB/s (x {:.2f}).\n\n",
                 Mega(speed.open), Mega(speed.raw_one), speed.against_one, Mega(speed.raw_four),
                 speed.against_four);
  const std::vector<Target> targets = TargetsOf(report);
  if (targets.empty()) {
    out += "No peer was measured: there is nothing to compare with.\n";
  } else {
    out += TargetsMarkdown(targets);
  }
  return out;
}

std::string RecoveryJson(const RecoveryReport& report, const RecoveryOptions& options,
                         const RunFacts& facts) {
  std::string out = FactsJson(facts, "");
  for (const RecoveredStore& store : report.stores) {
    for (size_t round = 0; round < store.rounds.size(); ++round) {
      JsonWriter json(out);
      json.BeginObject()
          .Field("kind", "recovery")
          .Field("store", store.name)
          .Field("settings", store.settings)
          .Field("round", round)
          .Field("live_wanted", options.plan.live)
          .Field("cycles", options.plan.cycles)
          .Field("event_bytes", options.plan.event_bytes)
          .Field("removal_order", options.plan.order == RemovalOrder::kFifo ? "fifo" : "random");
      AddSample(store.rounds[round], json);
      json.EndObject();
      out += '\n';
    }
  }
  return out + TargetsJson(TargetsOf(report));
}

}  // namespace holdfast::bench
