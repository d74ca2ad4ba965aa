#include "bench/engine_subject.h"
#include "bench/peers/recovery_store.h"
#include "holdfast/engine.h"

namespace holdfast::bench {
namespace {

class HoldfastStore final : public RecoveryStore {
 public:
  explicit HoldfastStore(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  Status Run(const Cycle& cycle) override { return RunCycle(*engine_, cycle).refused(); }
  Status Confirm() override { return engine_->Flush(); }
  Status ReadAll(const Visit& visit) override {
    return engine_->deliveries().Iterate([&visit](const StoredDelivery& stored) {
      visit(stored.delivery.id, stored.delivery.event);
      return true;
    });
  }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace

RecoveryKind HoldfastKind() {
  return {.name = "Holdfast",
          .settings = "commit_interval 100 ms, else defaults; reads past the page cache (O_DIRECT)",
          .open = [](const RecoverySetup& setup) -> StatusOr<std::unique_ptr<RecoveryStore>> {
            ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                             Engine::Open({.directory = setup.directory,
                                           .io = setup.io,
                                           .commit_interval = absl::Nanoseconds(kSyncNanos)}));
            return std::make_unique<HoldfastStore>(std::move(engine));
          }};
}

}  // namespace holdfast::bench
