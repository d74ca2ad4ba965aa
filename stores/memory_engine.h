// The engine without a journal: plain maps behind one lock. Nothing survives; for tests, and as the
// baseline that the journal is measured against.
#pragma once

#include <memory>

#include "holdfast/engine.h"
#include "holdfast/store_factory.h"

namespace holdfast {

// Needs: options that CheckEngineOptions accepts.
std::unique_ptr<Engine> MakeMemoryEngine(const EngineOptions& options, SharedStores shared);

}  // namespace holdfast
