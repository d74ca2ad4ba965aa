// What the simulated clients of the demo do about what is pushed to them. Pure: the same for each
// seed, whatever the threads do.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace holdfast {

// Short, so that a demo with many retries takes seconds.
inline constexpr absl::Duration kDemoAckTimeout = absl::Milliseconds(80);
inline constexpr uint32_t kDemoAttemptsMax = 5;

enum class Temper {
  kFast,     // acknowledges at once
  kSlow,     // acknowledges within the ACK timeout, out of order
  kNacking,  // refuses some at first, and acknowledges when they come again
  kDying,    // loses its connection now and then, with deliveries that it did not acknowledge
  kPoison,   // never acknowledges certain events, and others at once
};
// Of client `number`, from 0: one after the other, then again from the first.
Temper TemperOf(uint64_t number);
const char* TemperName(Temper temper);

struct DemoPush {
  uint64_t seed = 0;
  uint64_t client = 0;  // number
  uint64_t offset = 0;  // of the event
  uint32_t attempt = 0;
};
struct DemoReply {
  enum class Act { kAck, kNack, kClose, kNothing };
  Act act = Act::kAck;
  absl::Duration after;       // from the push
  absl::Duration closed_for;  // until the next connection
};
DemoReply ReplyTo(const DemoPush& push);

}  // namespace holdfast
