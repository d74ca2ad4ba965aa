// MetaHistory: random concurrent clients on one Meta, and the judgement of what they saw: every key
// linearizable, and watches that show every change once, in order, and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/meta_store.h"

namespace holdfast {

struct MetaHistoryOptions {
  uint64_t seed = 0;
  size_t keys = 2;
  size_t operations = 12;  // of each client
  // How long a client waits for an answer.
  absl::Duration timeout = absl::Seconds(5);
  // Called by the first client before each of its operations: what a test does to the Meta.
  std::function<void(size_t operation)> disturb = [](size_t) {};
  bool watches = true;  // are judged too: the Meta keeps the history of all of it
};

// Each of `clients` is used by a thread of its own; they reach the same Meta, over whatever breaks
// in between. `observer` reaches it undisturbed once the clients have ended. Keys of another seed
// are not touched. Failures are reported to the running test, with the seed.
void RunMetaHistory(const std::vector<MetaStore*>& clients, MetaStore& observer,
                    const MetaHistoryOptions& options);

}  // namespace holdfast
