#include "bench/engine_subject.h"

#include <utility>

#include "bench/store_files.h"

namespace holdfast::bench {
namespace {

class EngineSubject final : public Subject {
 public:
  EngineSubject(std::unique_ptr<Engine> engine, std::string directory)
      : engine_(std::move(engine)), directory_(std::move(directory)) {}
  ~EngineSubject() override {
    engine_.reset();
    if (!directory_.empty()) RemoveStore(directory_);
  }

  Commit Run(const Cycle& cycle) override { return RunCycle(*engine_, cycle); }
  SubjectCounters counters() override {
    const EngineStats stats = engine_->stats();
    return {.written_bytes = stats.written_bytes, .flushes = stats.flushes + stats.durable_writes};
  }
  Status Close() override { return engine_->Close(); }
  std::string io() override {
    const EngineStats stats = engine_->stats();
    return stats.io_reason.empty() ? stats.io_backend
                                   : stats.io_backend + " (" + stats.io_reason + ")";
  }

 private:
  std::unique_ptr<Engine> engine_;
  const std::string directory_;
};

}  // namespace

Commit RunCycle(Engine& engine, const Cycle& cycle) {
  return engine.Transact([&cycle](Transaction& change) {
    change.PutDelivery(cycle.put);
    if (!cycle.remove_id.empty()) change.RemoveDelivery(cycle.remove_id, Reason::kAcked);
    change.WriteOffset(cycle.offset, cycle.next);
  });
}

StatusOr<std::unique_ptr<Subject>> OpenEngineSubject(const EngineOptions& options) {
  const std::string directory = options.backend == Backend::kJournal ? options.directory : "";
  if (!directory.empty()) RemoveStore(directory);
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Open(options));
  return std::make_unique<EngineSubject>(std::move(engine), directory);
}

}  // namespace holdfast::bench
