// Histories on a real server that is killed, restarted and stopped, with answers that get lost.
#pragma once

#include <cstdint>
#include <functional>

#include "meta/http/transport.h"

namespace holdfast {

// What the histories do to the server.
struct HistoryServer {
  std::function<HttpEndpoint()> endpoint;
  std::function<void()> kill_and_start;  // with the same data, at the same address
  std::function<void(int)> signal;
  bool history_survives = true;  // a restart: watches can begin before it
};

// Three clients and one of the seeds; every twelfth kills, every third of the others stops it.
// Failures are reported to the running test.
void RunServerHistory(const HistoryServer& server, HttpTransport& transport, uint64_t seed);

}  // namespace holdfast
