#include "bench/dispatcher_bench.h"

#include <fmt/format.h>

#include "bench/progress.h"

namespace holdfast::bench {
namespace {

constexpr DispatchStores kAllStores[] = {DispatchStores::kMemory, DispatchStores::kBatched,
                                         DispatchStores::kWriteThrough};

void AddCases(const DispatcherBenchOptions& options, int threads, double rate,
              std::vector<DispatchCase>& cases) {
  for (const DispatchStores stores : kAllStores) {
    cases.push_back({.plan = {.stores = stores,
                              .directory = options.directory + "/dispatcher",
                              .io = options.io,
                              .threads = threads,
                              .in_flight = options.in_flight,
                              .rate = rate,
                              .seconds = options.seconds,
                              .retries = options.retries,
                              .dlq = options.dlq},
                     .samples = {}});
  }
}

std::string TitleOf(const DispatchPlan& plan) {
  return fmt::format("{} loop, {} client{}, {}", plan.rate > 0 ? "open" : "closed", plan.threads,
                     plan.threads > 1 ? "s" : "", NameOf(plan.stores));
}

Status RunCase(DispatchCase& measured, DispatcherReport& report) {
  ASSIGN_OR_RETURN(const DispatchResult result, RunDispatch(measured.plan));
  measured.samples.Add(Summarize(result.work));
  measured.redelivered += result.redelivered;
  measured.dead_lettered += result.dead_lettered;
  for (const std::string& fault : result.faults) {
    report.faults.push_back(TitleOf(measured.plan) + ": " + fault);
  }
  if (measured.plan.stores != DispatchStores::kMemory) report.io = result.io;
  return absl::OkStatus();
}

}  // namespace

StatusOr<DispatcherReport> RunDispatcherBench(const DispatcherBenchOptions& options) {
  DispatcherReport report;
  const auto wanted = [&](const char* name) {
    return options.cases == "all" || options.cases == name;
  };
  if (wanted("closed")) {
    for (const int threads : options.threads) AddCases(options, threads, 0, report.closed);
  }
  if (wanted("open")) AddCases(options, 1, options.rate, report.open);
  const auto steps = static_cast<int>(report.closed.size() + report.open.size()) * options.rounds;
  Progress progress(steps + (wanted("pending") ? 1 : 0));
  for (int round = 0; round < options.rounds; ++round) {
    for (std::vector<DispatchCase>* cases : {&report.closed, &report.open}) {
      for (DispatchCase& measured : *cases) {
        progress.Step(TitleOf(measured.plan));
        RETURN_IF_ERROR(RunCase(measured, report));
      }
    }
  }
  if (wanted("pending")) {
    progress.Step("many pending, nothing due");
    ASSIGN_OR_RETURN(report.pending, MeasureDispatchPending(options.directory, options.io,
                                                            options.pending, progress));
    if (!report.pending->intact()) {
      report.faults.push_back(fmt::format("pending at the end: {}, expected {}",
                                          report.pending->found, options.pending));
    }
  }
  return report;
}

}  // namespace holdfast::bench
