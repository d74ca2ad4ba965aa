// What the child of the demo tells its parent, one line each: what became durable, what it pushed
// and what its clients answered.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "journal/base/status.h"

namespace holdfast {

enum class DemoStep {
  kPut,     // a delivery is durable
  kAgain,   // an event that was handed in again: the same delivery is in flight still, durably
  kOver,    // ... or it was finished for this client, durably; without an id
  kPush,    // a client has it
  kTry,     // a client is about to acknowledge it
  kAck,     // a client was told that its acknowledgement is durable
  kRefuse,  // ... or that it has no effect
  kTold,    // the source was told that the event is finished for everybody; of no client, no id
  kStuck,   // the child gave up: nothing is finished any more, this event and others are open
};

struct DemoReport {
  DemoStep step = DemoStep::kPut;
  std::string id = {};
  uint64_t client = 0;    // number
  uint64_t offset = 0;    // of the event
  uint32_t attempt = 0;   // of kPush
  uint64_t checksum = 0;  // of kPush: of the event's bytes
};
using TellDemo = std::function<Status(const DemoReport&)>;  // called from any thread

uint64_t DemoChecksum(std::string_view event);

std::string FormatDemoReport(const DemoReport& report);  // one line with its end
// Errors: kInvalidArgument
StatusOr<DemoReport> ParseDemoReport(std::string_view line);

}  // namespace holdfast
