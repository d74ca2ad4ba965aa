// The figures of `holdfast-bench dispatcher` as text: markdown for people, one JSON object a line
// for programs.
#pragma once

#include <string>

#include "bench/dispatcher_bench.h"
#include "bench/run_facts.h"

namespace holdfast::bench {

std::string DispatcherMarkdown(const DispatcherReport& report,
                               const DispatcherBenchOptions& options, const RunFacts& facts);
std::string DispatcherJson(const DispatcherReport& report, const DispatcherBenchOptions& options,
                           const RunFacts& facts);

}  // namespace holdfast::bench
