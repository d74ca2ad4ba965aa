// The engine without a journal: plain maps behind one lock. Nothing survives; for tests, and as the
// baseline that the journal is measured against.
#pragma once

#include <memory>

#include "holdfast/engine.h"

namespace holdfast {

// Needs: options that CheckEngineOptions accepts.
// Errors: those of MakeSharedStores
absl::StatusOr<std::unique_ptr<Engine>> MakeMemoryEngine(const EngineOptions& options);

}  // namespace holdfast
