// The stores of an Engine as the subject of a workload.
#pragma once

#include <memory>
#include <string>

#include "bench/subject.h"
#include "holdfast/engine.h"
#include "journal/base/status.h"

namespace holdfast::bench {

// One cycle, as one transaction. A cycle without an earlier delivery removes none.
Commit RunCycle(Engine& engine, const Cycle& cycle);

// Opens an Engine with `options`; a directory in it is removed first, and again when the subject
// ends.
StatusOr<std::unique_ptr<Subject>> OpenEngineSubject(const EngineOptions& options);

}  // namespace holdfast::bench
