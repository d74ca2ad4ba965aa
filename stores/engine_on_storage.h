// The engine on a Storage that the caller owns: how tests put it on the simulated disk.
#pragma once

#include <memory>

#include "holdfast/engine.h"

namespace holdfast {

class Storage;

// Without threads whoever waits drives the disk, and Tick() does what the clock asks for: one seed
// replays a run.
class TickingEngine : public Engine {
 public:
  virtual void Tick() = 0;
};

// As Engine::Open on options.backend = kJournal; `options.directory` and `options.io` are ignored,
// `storage` is borrowed and outlives the engine. `options.clock` and `options.rng` should be set
// too.
absl::StatusOr<std::unique_ptr<TickingEngine>> OpenEngineOn(Storage& storage,
                                                            const EngineOptions& options,
                                                            bool threads);

}  // namespace holdfast
