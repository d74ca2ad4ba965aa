// What every report begins and ends with: where the figures come from, and the ratios that this
// version is built to.
#pragma once

#include <string>
#include <vector>

#include "bench/machine.h"

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

std::string FactsMarkdown(const RunFacts& facts, const std::string& io);
std::string TargetsMarkdown(const std::vector<Target>& targets);
// One JSON object a line.
std::string FactsJson(const RunFacts& facts, const std::string& io);
std::string TargetsJson(const std::vector<Target>& targets);

}  // namespace holdfast::bench
