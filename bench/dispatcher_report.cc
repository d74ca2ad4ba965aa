#include "bench/dispatcher_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/figures.h"
#include "journal/base/check.h"
#include "journal/base/json.h"

namespace holdfast::bench {
namespace {

// Of the same clients, on those stores; null if there are none.
const DispatchCase* Find(const std::vector<DispatchCase>& cases, int threads,
                         DispatchStores stores) {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const DispatchCase& measured) {
    return measured.plan.threads == threads && measured.plan.stores == stores;
  });
  return found == cases.end() ? nullptr : &*found;
}

const DispatchCase& InMemory(const std::vector<DispatchCase>& cases, const DispatchCase& measured) {
  const DispatchCase* found = Find(cases, measured.plan.threads, DispatchStores::kMemory);
  CHECK(found != nullptr);
  return *found;
}

// Time of a cycle beyond the other's in the same round; the median of the rounds.
double AddedMicros(const Samples& mine, const Samples& other) {
  std::vector<double> added;
  for (size_t round = 0; round < mine.all().size(); ++round) {
    const double rate = mine.all()[round].cycles_per_second;
    // A clock that ran shorter than a commit interval has seen nothing.
    if (rate > 0) added.push_back(1e6 / rate - 1e6 / other.all()[round].cycles_per_second);
  }
  return Median(added);
}

void AddEnds(const std::vector<DispatchCase>& cases, std::string& out) {
  uint64_t redelivered = 0, dead_lettered = 0;
  for (const DispatchCase& measured : cases) {
    redelivered += measured.redelivered;
    dead_lettered += measured.dead_lettered;
  }
  fmt::format_to(std::back_inserter(out), "\nPushed again: {}; dead letters: {}.\n\n", redelivered,
                 dead_lettered);
}

void AddClosed(const DispatcherReport& report, const DispatcherBenchOptions& options,
               std::string& out) {
  fmt::format_to(
      std::back_inserter(out),
      "## Closed loop: {} in flight at any time\n\n"
      "| clients | on | cycles/s | x in memory | added µs/cycle | p50 ms | p99 ms | p99.9 ms "
      "| CPU µs/cycle | bytes/cycle | flushes/cycle |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n",
      options.in_flight);
  for (const DispatchCase& measured : report.closed) {
    const Sample middle = measured.samples.Middle();
    const Samples& memory = InMemory(report.closed, measured).samples;
    fmt::format_to(
        std::back_inserter(out),
        "| {} | {} | {} | {:.2f} | {:.2f} | {:.0f} | {:.0f} | {:.0f} | {:.2f} | {:.0f} | {:.3g} "
        "|\n",
        measured.plan.threads, NameOf(measured.plan.stores), Rate(middle.cycles_per_second),
        measured.samples.RateAgainst(memory), AddedMicros(measured.samples, memory),
        middle.p50_micros * 1e-3, middle.p99_micros * 1e-3, middle.p999_micros * 1e-3,
        middle.cpu_micros, middle.bytes, middle.flushes);
  }
  AddEnds(report.closed, out);
}

void AddOpen(const DispatcherReport& report, const DispatcherBenchOptions& options,
             std::string& out) {
  fmt::format_to(std::back_inserter(out),
                 "## Open loop: {} a second by schedule, for {} s\n\n"
                 "| on | reached / asked | p50 µs | p99 µs | p99.9 µs |\n|---|---|---|---|---|\n",
                 Rate(options.rate), options.seconds);
  for (const DispatchCase& measured : report.open) {
    const Sample middle = measured.samples.Middle();
    fmt::format_to(std::back_inserter(out), "| {} | {:.3f} | {} | {} | {} |\n",
                   NameOf(measured.plan.stores), middle.cycles_per_second / options.rate,
                   Micros(middle.p50_micros), Micros(middle.p99_micros),
                   Micros(middle.p999_micros));
  }
  AddEnds(report.open, out);
}

void AddPending(const DispatchPendingFigures& figures, std::string& out) {
  fmt::format_to(std::back_inserter(out),
                 "## {} pushed and pending, nothing due\n\n| what | |\n|---|---|\n"
                 "| delivered and durable in | {:.1f} s |\n"
                 "| memory of a delivery besides its id | {:.0f} B |\n"
                 "| a tick: p50, p99, most of {} | {:.2f}, {:.2f}, {:.0f} µs |\n"
                 "| the tick that moves every timer to a finer ring | {:.0f} µs |\n"
                 "| pending at the end | {}, {} |\n\n",
                 figures.pending, figures.fill_seconds, figures.bytes, figures.ticks,
                 figures.tick_p50_micros, figures.tick_p99_micros, figures.tick_max_micros,
                 figures.cascade_micros, figures.found,
                 figures.intact() ? "all that should be" : "**not what was delivered**");
}

// The share of the in-memory rate, or what the journal adds: one of the two has to hold.
Target AgainstMemory(const Samples& journal, const Samples& memory) {
  const Target share{"closed loop, 1 client: journal, batched / in-memory stores",
                     journal.RateAgainst(memory), true, 0.85};
  const Target added{"closed loop, 1 client: µs that the journal, batched, adds to a cycle",
                     AddedMicros(journal, memory), false, 0.6};
  return !share.met() && added.met() ? added : share;
}

std::vector<Target> TargetsOf(const DispatcherReport& report,
                              const DispatcherBenchOptions& options) {
  std::vector<Target> targets;
  if (const DispatchCase* lone = Find(report.closed, 1, DispatchStores::kBatched)) {
    targets.push_back(AgainstMemory(lone->samples, InMemory(report.closed, *lone).samples));
    targets.push_back({"closed loop, 1 client: journal, batched, thousand cycles a second",
                       lone->samples.Middle().cycles_per_second * 1e-3, true, 300});
  }
  for (const DispatchCase& measured : report.open) {
    targets.push_back({fmt::format("open loop, {}: reached / asked", NameOf(measured.plan.stores)),
                       measured.samples.Middle().cycles_per_second / options.rate, true, 0.99});
  }
  if (report.pending.has_value()) {
    targets.push_back(
        {"a tick with nothing due, µs (p50)", report.pending->tick_p50_micros, false, 10});
    targets.push_back(
        {"memory of a pending delivery besides its id, bytes", report.pending->bytes, false, 128});
  }
  return targets;
}

void AddCaseJson(const DispatchCase& measured, const Samples& memory, std::string& out) {
  const Sample middle = measured.samples.Middle();
  JsonWriter json(out);
  json.BeginObject()
      .Field("kind", measured.plan.rate > 0 ? "open" : "closed")
      .Field("on", NameOf(measured.plan.stores))
      .Field("threads", measured.plan.threads)
      .Field("in_flight", measured.plan.in_flight)
      .Field("retries", measured.plan.retries)
      .Field("dlq", measured.plan.dlq);
  if (measured.plan.rate > 0) json.Field("asked_per_second", measured.plan.rate);
  json.Field("cycles_per_second", middle.cycles_per_second)
      .Field("against_in_memory", measured.samples.RateAgainst(memory))
      .Field("added_us_per_cycle", AddedMicros(measured.samples, memory))
      .Field("p50_us", middle.p50_micros)
      .Field("p99_us", middle.p99_micros)
      .Field("p999_us", middle.p999_micros)
      .Field("cpu_us_per_cycle", middle.cpu_micros)
      .Field("bytes_per_cycle", middle.bytes)
      .Field("flushes_per_cycle", middle.flushes)
      .Field("redelivered", measured.redelivered)
      .Field("dead_lettered", measured.dead_lettered)
      .EndObject();
  out += '\n';
}

}  // namespace

std::string DispatcherMarkdown(const DispatcherReport& report,
                               const DispatcherBenchOptions& options, const RunFacts& facts) {
  std::string out = "# holdfast-bench dispatcher\n\n" + FactsMarkdown(facts, report.io);
  out +=
      "A cycle delivers an event of 256 B to one client, is pushed to it and acknowledged by it; "
      "delivery and acknowledgement are a batch each. Over when the acknowledgement is "
      "confirmed.\n\n";
  if (!report.closed.empty()) AddClosed(report, options, out);
  if (!report.open.empty()) AddOpen(report, options, out);
  if (report.pending.has_value()) AddPending(*report.pending, out);
  const std::vector<Target> targets = TargetsOf(report, options);
  if (!targets.empty()) out += TargetsMarkdown(targets);
  for (const std::string& fault : report.faults) out += "\n**" + fault + "**\n";
  return out;
}

std::string DispatcherJson(const DispatcherReport& report, const DispatcherBenchOptions& options,
                           const RunFacts& facts) {
  std::string out = FactsJson(facts, report.io);
  for (const std::vector<DispatchCase>* cases : {&report.closed, &report.open}) {
    for (const DispatchCase& measured : *cases) {
      AddCaseJson(measured, InMemory(*cases, measured).samples, out);
    }
  }
  if (report.pending.has_value()) {
    const DispatchPendingFigures& figures = *report.pending;
    JsonWriter(out)
        .BeginObject()
        .Field("kind", "pending")
        .Field("pending", figures.pending)
        .Field("found", figures.found)
        .Field("fill_seconds", figures.fill_seconds)
        .Field("bytes_per_delivery", figures.bytes)
        .Field("tick_p50_us", figures.tick_p50_micros)
        .Field("tick_p99_us", figures.tick_p99_micros)
        .Field("tick_max_us", figures.tick_max_micros)
        .Field("cascade_us", figures.cascade_micros)
        .EndObject();
    out += '\n';
  }
  for (const std::string& fault : report.faults) {
    JsonWriter(out).BeginObject().Field("kind", "fault").Field("what", fault).EndObject();
    out += '\n';
  }
  return out + TargetsJson(TargetsOf(report, options));
}

}  // namespace holdfast::bench
