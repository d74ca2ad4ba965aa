#include "bench/stores_report.h"

#include <fmt/format.h>

#include "bench/figures.h"
#include "journal/base/json.h"

namespace holdfast::bench {
namespace {

void AddTable(const StoresReport& report, bool batched, std::string& out) {
  out +=
      "| callers | on | cycles/s | x floor | x in memory | p50 µs | p99 µs | p99.9 µs "
      "| CPU µs/cycle | bytes/cycle | flushes/cycle |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const StoresCase& measured : report.cases) {
    if (measured.batched != batched) continue;
    for (const auto& [kind, samples] : measured.subjects) {
      const Sample middle = samples.Middle();
      fmt::format_to(
          std::back_inserter(out),
          "| {} | {} | {} | {:.2f} | {:.2f} | {} | {} | {} | {:.2f} | {:.0f} | {:.3g} |\n",
          measured.callers, NameOf(kind), Rate(middle.cycles_per_second),
          samples.RateAgainst(measured.of(SubjectKind::kFloor)),
          samples.RateAgainst(measured.of(SubjectKind::kMemory)), Micros(middle.p50_micros),
          Micros(middle.p99_micros), Micros(middle.p999_micros), middle.cpu_micros, middle.bytes,
          middle.flushes);
    }
  }
  out += '\n';
}

const StoresCase* FindCase(const StoresReport& report, bool batched, const std::string& callers) {
  for (const StoresCase& measured : report.cases) {
    if (measured.batched == batched && measured.callers == callers) return &measured;
  }
  return nullptr;
}

// Median over the rounds of the lone caller's p50 against the device's in the same round.
double AgainstDevice(const StoresCase& lone) {
  std::vector<double> ratios;
  const std::vector<Sample>& samples = lone.of(SubjectKind::kJournal).all();
  for (size_t round = 0; round < samples.size(); ++round) {
    ratios.push_back(samples[round].p50_micros / lone.device_p50_micros[round]);
  }
  return Median(ratios);
}

void AddSample(const Sample& sample, JsonWriter& json) {
  json.Field("cycles_per_second", sample.cycles_per_second)
      .Field("p50_us", sample.p50_micros)
      .Field("p99_us", sample.p99_micros)
      .Field("p999_us", sample.p999_micros)
      .Field("cpu_us_per_cycle", sample.cpu_micros)
      .Field("bytes_per_cycle", sample.bytes)
      .Field("flushes_per_cycle", sample.flushes);
}

}  // namespace

std::vector<Target> TargetsOf(const StoresReport& report) {
  std::vector<Target> targets;
  for (const char* threads : {"1", "2", "4"}) {
    if (const StoresCase* batched = FindCase(report, true, threads)) {
      const Samples& floor = batched->of(SubjectKind::kFloor);
      targets.push_back({fmt::format("batched, {} threads: journal stores / floor", threads),
                         batched->of(SubjectKind::kJournal).RateAgainst(floor), true, 0.6});
      targets.push_back({fmt::format("batched, {} threads: floor / in-memory stores", threads),
                         floor.RateAgainst(batched->of(SubjectKind::kMemory)), true, 0.4});
    }
  }
  if (const StoresCase* lone = FindCase(report, false, "1")) {
    targets.push_back({"synced, 1 caller: p50 / the device's durable overwrite of 4 KiB",
                       AgainstDevice(*lone), false, 1.4});
  }
  if (const StoresCase* crowd = FindCase(report, false, "64")) {
    targets.push_back({"synced, 64 callers: journal stores / floor",
                       crowd->of(SubjectKind::kJournal).RateAgainst(crowd->of(SubjectKind::kFloor)),
                       true, 0.7});
  }
  return targets;
}

std::string StoresMarkdown(const StoresReport& report, const RunFacts& facts) {
  std::string out = "# holdfast-bench stores\n\n" + FactsMarkdown(facts, report.io);
  out +=
      "A cycle puts a new delivery (event of 256 B), removes an earlier one and moves its offset "
      "on, "
      "in one transaction.\n\n";
  out += "## Batched: one flush each 100 ms confirms everything before it\n\n";
  AddTable(report, true, out);
  out += "## Synced: every cycle is on the device before its caller goes on\n\n";
  AddTable(report, false, out);
  std::vector<double> device;
  for (const StoresCase& measured : report.cases) {
    device.insert(device.end(), measured.device_p50_micros.begin(),
                  measured.device_p50_micros.end());
  }
  fmt::format_to(
      std::back_inserter(out),
      "The device alone: a durable overwrite of 4 KiB takes {:.0f} µs (p50, median of {} "
      "measurements over the run).\n\n",
      Median(device), device.size());
  out += TargetsMarkdown(TargetsOf(report));
  return out;
}

std::string StoresJson(const StoresReport& report, const RunFacts& facts) {
  std::string out = FactsJson(facts, report.io);
  for (const StoresCase& measured : report.cases) {
    for (const auto& [kind, samples] : measured.subjects) {
      JsonWriter json(out);
      json.BeginObject()
          .Field("kind", "case")
          .Field("commit_interval_ms", measured.batched ? 100 : 0)
          .Field("threads", measured.plan.threads)
          .Field("in_flight", measured.plan.threads * measured.plan.window)
          .Field("on", NameOf(kind));
      AddSample(samples.Middle(), json);
      json.Field("against_floor", samples.RateAgainst(measured.of(SubjectKind::kFloor)))
          .Field("against_in_memory", samples.RateAgainst(measured.of(SubjectKind::kMemory)))
          .Field("device_p50_us", Median(measured.device_p50_micros))
          .EndObject();
      out += '\n';
    }
  }
  return out + TargetsJson(TargetsOf(report));
}

}  // namespace holdfast::bench
