#include "tools/dead_letter_selection.h"

#include <set>
#include <utility>

namespace holdfast {

bool Matches(const DeadLetterFilter& filter, const StoredDeadLetter& stored, absl::Time now) {
  const DeadLetter& dead = stored.dead_letter;
  if (filter.topic.has_value() && dead.topic != *filter.topic) return false;
  if (filter.client.has_value() && dead.client != *filter.client) return false;
  if (dead.reason.find(filter.reason) == std::string::npos) return false;
  if (filter.older_than.has_value() && now - dead.died < *filter.older_than) return false;
  return !filter.not_redriven || stored.replays == 0;
}

DeadLetterSelection SelectDeadLetters(DeadLetterStore& store, const DeadLetterFilter& filter,
                                      Console& console) {
  const absl::Time now = console.clock.WallNow();
  std::set<std::pair<absl::Time, std::string>> taken;
  Progress progress(console, "dead letters looked at", store.Count());
  uint64_t seen = 0;
  DeadLetterSelection selection;
  selection.unreadable = store.Iterate([&](const StoredDeadLetter& stored) {
    progress.Update(++seen);
    if (!Matches(filter, stored, now)) return true;
    taken.emplace(stored.dead_letter.died, stored.dead_letter.delivery_id);
    if (filter.count_max.has_value() && taken.size() > *filter.count_max) {
      taken.erase(std::prev(taken.end()));
    }
    return true;
  });
  selection.ids.reserve(taken.size());
  while (!taken.empty()) {
    selection.ids.push_back(std::move(taken.extract(taken.begin()).value().second));
  }
  return selection;
}

}  // namespace holdfast
