// The stores under test, on either backend: in memory, or on the journal of a simulated disk.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "journal/base/check.h"
#include "journal/base/seeded_rng.h"
#include "stores/engine_on_storage.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"

namespace holdfast {

// One engine, and how it is stopped and started again. No threads: whoever waits drives the disk.
class StoreUnderTest {
 public:
  explicit StoreUnderTest(Backend backend, EngineOptions options = {}) : options_(options) {
    options_.backend = backend;
    options_.clock = &clock_;
    options_.rng = &rng_;
    if (options.segment_bytes == EngineOptions().segment_bytes) {
      options_.segment_bytes = uint64_t{1} << 20;
    }
    CHECK_OK(Open());
  }
  ~StoreUnderTest() { engine_.reset(); }

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  EngineOptions& options() { return options_; }
  SimClock& clock() { return clock_; }
  SimStorage& storage() { return *storage_; }
  bool is_durable() const { return options_.backend == Backend::kJournal; }

  // Each starts again with what is left; in memory nothing happens, and nothing is lost.
  void Reopen() {
    if (!is_durable()) return;
    CHECK_OK(engine_->Close());
    engine_.reset();
    CHECK_OK(Open());
  }
  void Kill(uint64_t seed = 1) {
    if (!is_durable()) return;
    Restart(storage_->disk().Kill(seed, /*late=*/false));
  }
  // Nothing that was not synced is left.
  void CutPower() {
    if (!is_durable()) return;
    const SimDisk disk = storage_->disk();
    Restart(disk.PowerCut(std::vector<bool>(disk.Loose().size(), false)));
  }
  Status Open() {
    if (!is_durable()) {
      StatusOr<std::unique_ptr<Engine>> engine = Engine::Open(options_);
      if (engine.ok()) engine_ = *std::move(engine);
      return engine.status();
    }
    if (storage_ == nullptr) storage_ = std::make_unique<SimStorage>();
    StatusOr<std::unique_ptr<TickingEngine>> engine =
        OpenEngineOn(*storage_, options_, /*threads=*/false);
    if (engine.ok()) engine_ = *std::move(engine);
    return engine.status();
  }

 private:
  void Restart(SimDisk disk) {
    storage_->PowerOff();
    engine_.reset();
    storage_ = std::make_unique<SimStorage>(std::move(disk));
    CHECK_OK(Open());
  }

  SimClock clock_;
  SeededRng rng_{7};
  EngineOptions options_;
  std::unique_ptr<SimStorage> storage_;  // outlives the engine
  std::unique_ptr<Engine> engine_;
};

inline std::string BackendName(const testing::TestParamInfo<Backend>& info) {
  return info.param == Backend::kMemory ? "Memory" : "Journal";
}
inline constexpr Backend kBackends[] = {Backend::kMemory, Backend::kJournal};

}  // namespace holdfast
