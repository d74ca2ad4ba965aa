// The tables that the demo ends with. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/demo_audit.h"
#include "tools/demo_work.h"

namespace holdfast {

// How far each client came.
std::string ClientsTable(const std::vector<DemoTally>& tallies);

struct TimedRun {
  std::string name;
  absl::Duration duration;
};
// How fast the work went in each run, and in comparison with the first.
// Needs: at least one run
std::string TimesTable(const DemoWork& work, const std::vector<TimedRun>& runs);

}  // namespace holdfast
