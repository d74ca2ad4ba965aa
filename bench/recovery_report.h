// The figures of `holdfast-bench recovery` as text.
#pragma once

#include <string>
#include <vector>

#include "bench/recovery_bench.h"
#include "bench/run_facts.h"

namespace holdfast::bench {

// Ratios to the peers that were measured.
std::vector<Target> TargetsOf(const RecoveryReport& report);

std::string RecoveryMarkdown(const RecoveryReport& report, const RecoveryOptions& options,
                             const RunFacts& facts);
std::string RecoveryJson(const RecoveryReport& report, const RecoveryOptions& options,
                         const RunFacts& facts);

}  // namespace holdfast::bench
