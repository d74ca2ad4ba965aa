// Whether what concurrent clients saw of one key could have happened one operation at a time, each
// at some moment between its call and its answer (Herlihy and Wing, 1990). Pure.
//
// The state of a key is the id of the write that made it what it is, or none. Every write has an id
// of its own, so a read names exactly one write.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace holdfast {

struct KeyOperation {
  enum class Kind {
    kRead,       // saw `seen`
    kWrite,      // of `made`, whatever was there
    kWriteIfAt,  // of `made`, if `expected` was there
    kDelete,     // of whatever was there
  };
  enum class Outcome {
    kDone,
    kRefused,  // kWriteIfAt: another was there; kDelete: none was
    kUnknown,  // it happens at some moment after the call, or never
  };
  Kind kind = Kind::kRead;
  Outcome outcome = Outcome::kDone;
  // Ids of writes; none: the key is absent.
  std::optional<std::string> seen, made, expected;
  // Moments, all different, in the order in which they were noted.
  uint64_t called = 0;
  uint64_t answered = std::numeric_limits<uint64_t>::max();  // not looked at if kUnknown
};

// `start`: what was there before the first call. True: there is such an order.
// The search is that of Wing and Gong (1993), with the memory of Lowe (2017): what was tried once
// from one state with one set of operations done is not tried again.
// Needs: at most 64 operations
bool IsLinearizable(const std::vector<KeyOperation>& operations,
                    const std::optional<std::string>& start = std::nullopt);

}  // namespace holdfast
