// Which dead letters a filter takes, and in which order they are worked through.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "holdfast/dead_letter_store.h"
#include "journal/base/status.h"
#include "tools/console.h"
#include "tools/options.h"

namespace holdfast {

// Whether `filter` takes it, but for count_max. `now` is wall time, as DeadLetter::died.
bool Matches(const DeadLetterFilter& filter, const StoredDeadLetter& stored, absl::Time now);

struct DeadLetterSelection {
  std::vector<std::string> ids;  // those that died first come first; of one moment, by id
  // Of the first that could not be read: whether the filter takes it is not known.
  Status unreadable;
};

// Reads every dead letter, but keeps no more than the ids. Shows progress on the console.
DeadLetterSelection SelectDeadLetters(DeadLetterStore& store, const DeadLetterFilter& filter,
                                      Console& console);

}  // namespace holdfast
