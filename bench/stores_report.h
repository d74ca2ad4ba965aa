// The figures of `holdfast-bench stores` as text: markdown for people, one JSON object a line for
// programs.
#pragma once

#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/stores_bench.h"

namespace holdfast::bench {

struct RunFacts {
  Machine machine;
  std::string command_line;
};

// A line of the list of targets: `measured` is a ratio inside the run.
struct Target {
  std::string what;
  double measured = 0;
  bool at_least = true;  // else at most
  double bound = 0;
  bool met() const { return at_least ? measured >= bound : measured <= bound; }
};
std::vector<Target> TargetsOf(const StoresReport& report);

std::string StoresMarkdown(const StoresReport& report, const RunFacts& facts);
std::string StoresJson(const StoresReport& report, const RunFacts& facts);

}  // namespace holdfast::bench
