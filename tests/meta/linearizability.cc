#include "tests/meta/linearizability.h"

#include <algorithm>
#include <map>
#include <set>

#include "journal/base/check.h"

namespace holdfast {
namespace {

using Kind = KeyOperation::Kind;
using Outcome = KeyOperation::Outcome;
using State = std::optional<std::string>;

// What the key is after it; none: it could not have come to this outcome from `state`.
std::optional<State> Step(const KeyOperation& operation, const State& state) {
  const bool refused = operation.outcome == Outcome::kRefused;
  switch (operation.kind) {
    case Kind::kRead:
      if (state != operation.seen) return std::nullopt;
      return state;
    case Kind::kWrite:
      return operation.made;
    case Kind::kWriteIfAt:
      if ((state == operation.expected) == refused) return std::nullopt;
      return refused ? state : operation.made;
    case Kind::kDelete:
      if (state.has_value() == refused) return std::nullopt;
      return State();
  }
  return std::nullopt;
}

class Search {
 public:
  explicit Search(const std::vector<KeyOperation>& operations) : operations_(operations) {}

  bool From(uint64_t done, const State& state) {
    // The next one must have been called before every other that is left was answered.
    uint64_t first_answer = std::numeric_limits<uint64_t>::max();
    bool any_certain = false;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if ((done >> i & 1) != 0 || operations_[i].outcome == Outcome::kUnknown) continue;
      any_certain = true;
      first_answer = std::min(first_answer, operations_[i].answered);
    }
    if (!any_certain) return true;  // what is unknown need not have happened
    if (!tried_.emplace(done, state).second) return false;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if ((done >> i & 1) != 0 || operations_[i].called > first_answer) continue;
      const std::optional<State> next = Step(operations_[i], state);
      if (next.has_value() && From(done | uint64_t{1} << i, *next)) return true;
    }
    return false;
  }

 private:
  const std::vector<KeyOperation>& operations_;
  std::set<std::pair<uint64_t, State>> tried_;
};

}  // namespace

bool IsLinearizable(const std::vector<KeyOperation>& operations,
                    const std::optional<std::string>& start) {
  CHECK(operations.size() <= 64);
  return Search(operations).From(0, start);
}

}  // namespace holdfast
