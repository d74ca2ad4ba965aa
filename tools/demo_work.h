// The work of the demo: a source hands every event to a dispatcher, for each of several simulated
// clients, until all is acknowledged or given up. Goes on where an earlier run was killed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "tools/demo_report.h"
#include "tools/told_offsets.h"

namespace holdfast {

struct DemoWork {
  std::vector<std::string> events;
  uint64_t repeat = 1;  // times through the events
  uint64_t clients = 1;
  uint64_t seed = 1;  // chooses what the clients do

  static constexpr char kTopic[] = "events";
  static constexpr uint64_t kIncarnation = 1;
  static constexpr uint64_t kPartition = 0;

  uint64_t event_count() const { return events.size() * repeat; }
  uint64_t delivery_count() const { return event_count() * clients; }
  // Needs: offset < event_count()
  const std::string& EventAt(uint64_t offset) const { return events[offset % events.size()]; }
  // number 0 .. clients - 1; says its temper
  static std::string ClientName(uint64_t number);
};

// Blocks until the source was told the end of every event. What is in `told` it was told before.
// Errors: of the engine, of the dispatcher, and of `tell`
//         kDeadlineExceeded  nothing is finished any more; told as DemoStep::kStuck
Status RunDemoWork(const DemoWork& work, Engine& engine, Clock& clock, ToldOffsets told,
                   const TellDemo& tell);

}  // namespace holdfast
