// A dispatcher on an engine on the simulated disk, with the clock in hand, and what its host sees.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "holdfast/dispatcher.h"
#include "journal/base/seeded_rng.h"
#include "stores/engine_on_storage.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {

// Keeps what it was handed.
class RecordingChannel final : public Channel {
 public:
  void Push(const Delivery& delivery) override { pushed.push_back(delivery); }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const Delivery& delivery : pushed) ids.push_back(delivery.id);
    return ids;
  }
  std::vector<Delivery> pushed;
};

class RecordingSource final : public SourceAck {
 public:
  void Finished(const SourceKey&, std::optional<uint64_t> offset, uint64_t token) override {
    if (offset.has_value()) {
      ++finished[*offset];
    } else {
      ++tokens[token];
    }
  }
  std::map<uint64_t, int> finished;  // offset to how often
  std::map<uint64_t, int> tokens;
};

class DispatcherWorld {
 public:
  static inline const SourceKey kSource{"orders", 1, 0};

  DispatcherWorld() {
    options.clock = &clock;
    host.source_ack = &source;
  }
  ~DispatcherWorld() { Stop(); }

  void Start() {
    if (storage == nullptr) storage = std::make_unique<SimStorage>();
    EngineOptions engine_options;
    engine_options.segment_bytes = uint64_t{256} << 10;
    engine_options.clock = &clock;
    engine_options.rng = &engine_rng;
    engine = OpenEngineOn(*storage, engine_options, /*threads=*/false).value();
    dispatcher = Dispatcher::Make(*engine, rng, options, host).value();
  }
  void StartAndRecover() {
    Start();
    EXPECT_OK(dispatcher->Recover());
  }
  void Stop() {
    dispatcher.reset();
    engine.reset();
  }
  // The process is killed: what was written stays, of what was in flight some.
  void Kill(uint64_t seed = 1) { Restart(storage->disk().Kill(seed, /*late=*/false)); }
  // The power is cut: of what was not synced stays what `keep` says, nothing by itself.
  void CutPower(const std::function<bool()>& keep = [] { return false; }) {
    const SimDisk now = storage->disk();
    std::vector<bool> kept(now.Loose().size());
    for (size_t i = 0; i < kept.size(); ++i) kept[i] = keep();
    Restart(now.PowerCut(kept));
  }

  // What is appended becomes durable, and what waited for that happens.
  void Settle() {
    for (int turn = 0; turn < 4; ++turn) engine->Tick();
  }
  void Advance(absl::Duration by) {
    for (const absl::Duration step = absl::Milliseconds(100); by > absl::ZeroDuration();
         by -= step) {
      clock.Advance(std::min(step, by));
      dispatcher->Tick();
      Settle();
    }
  }
  std::shared_ptr<RecordingChannel> Open(const std::string& client) {
    auto channel = std::make_shared<RecordingChannel>();
    dispatcher->ChannelOpened(client, channel);
    Settle();
    return channel;
  }
  DeliverResult Deliver(uint64_t offset, const std::vector<std::string>& clients) {
    std::vector<Target> targets;
    for (const std::string& client : clients) targets.push_back({.client = client, .epoch = 1});
    StatusOr<DeliverResult> result = dispatcher->Deliver(
        {.source = kSource, .offset = offset, .event = "event " + std::to_string(offset)}, targets);
    EXPECT_OK(result);
    Settle();
    return result.ok() ? *std::move(result) : DeliverResult();
  }
  // The answer, once it is there.
  Status Ack(const std::string& id, const std::string& client, uint64_t epoch = 1,
             const std::string& key = "") {
    Status answer = absl::UnknownError("no answer");
    dispatcher->Ack({.id = id, .client = client, .epoch = epoch, .idempotency_key = key},
                    [&answer](const Status& status) { answer = status; });
    Settle();
    return answer;
  }
  uint64_t NextOf(const std::string& client) {
    const auto stored = engine->offsets().Read({kSource.topic, client, kSource.partition});
    return stored.ok() ? stored->position.next : 0;
  }

  SimClock clock;
  SeededRng rng{11}, engine_rng{12};
  DispatcherOptions options;
  RecordingSource source;
  DispatcherHost host;
  std::unique_ptr<SimStorage> storage;
  std::unique_ptr<TickingEngine> engine;
  std::unique_ptr<Dispatcher> dispatcher;

 private:
  void Restart(SimDisk disk) {
    storage->PowerOff();
    Stop();
    storage = std::make_unique<SimStorage>(std::move(disk));
  }
};

}  // namespace holdfast
