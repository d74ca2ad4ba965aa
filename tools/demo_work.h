// The work of the demo: hand in every event for every client, acknowledge in random order, until
// all is finished. Goes on where an earlier run was killed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/engine.h"
#include "journal/base/status.h"

namespace holdfast {

struct DemoWork {
  std::vector<std::string> events;
  uint64_t repeat = 1;  // times through the events
  uint64_t clients = 1;
  uint64_t seed = 1;  // chooses the order of acknowledgements

  static constexpr char kTopic[] = "events";
  static constexpr uint64_t kIncarnation = 1;
  static constexpr uint64_t kPartition = 0;

  uint64_t event_count() const { return events.size() * repeat; }
  uint64_t delivery_count() const { return event_count() * clients; }
  // Needs: offset < event_count()
  const std::string& EventAt(uint64_t offset) const { return events[offset % events.size()]; }
  // number 0 .. clients - 1
  static std::string ClientName(uint64_t number);
};

enum class DemoStep { kPut, kTry, kAck };

// What a run tells: a put or an ack is durable, or an ack is about to be submitted.
struct DemoReport {
  DemoStep step = DemoStep::kPut;
  std::string id;
  uint64_t client = 0;  // number
  uint64_t offset = 0;  // of the event
  uint64_t next = 0;    // of kAck: the client's committed offset
};
std::string FormatDemoReport(const DemoReport& report);  // one line with its end
// Errors: kInvalidArgument
StatusOr<DemoReport> ParseDemoReport(std::string_view line);

// Blocks until every event is finished for every client, durably. `tell` is called from any thread.
// Errors: of the engine, and of `tell`
Status RunDemoWork(const DemoWork& work, Engine& engine, Clock& clock,
                   const std::function<Status(const DemoReport&)>& tell);

}  // namespace holdfast
