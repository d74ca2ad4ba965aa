// Which of a source's events it was told the end of: what it need not hand in again after a
// restart. Small as long as few are open, whatever their number in all.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "journal/base/status.h"

namespace holdfast {

// Threads: one at a time.
class ToldOffsets {
 public:
  void Add(uint64_t offset);
  bool Has(uint64_t offset) const { return offset < next_ && !open_.contains(offset); }

  // As one word for a command line: the offset after the highest that was told, and the open ones
  // below it, as in "17:3,9".
  std::string Text() const;
  // Errors: kInvalidArgument
  static StatusOr<ToldOffsets> Parse(std::string_view text);

  bool operator==(const ToldOffsets&) const = default;

 private:
  uint64_t next_ = 0;
  std::set<uint64_t> open_;  // below next_
};

}  // namespace holdfast
