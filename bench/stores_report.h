// The figures of `holdfast-bench stores` as text: markdown for people, one JSON object a line for
// programs.
#pragma once

#include <string>
#include <vector>

#include "bench/run_facts.h"
#include "bench/stores_bench.h"

namespace holdfast::bench {

std::vector<Target> TargetsOf(const StoresReport& report);

std::string StoresMarkdown(const StoresReport& report, const RunFacts& facts);
std::string StoresJson(const StoresReport& report, const RunFacts& facts);

}  // namespace holdfast::bench
