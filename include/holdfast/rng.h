// Chance, handed in by the host so that tests can repeat it.
#pragma once

#include <cstdint>

namespace holdfast {

// The only source of ids, salts, jitter and shuffles. Not thread-safe: the engine serialises its
// calls.
class Rng {
 public:
  virtual ~Rng() = default;
  // Uniform over all 64-bit values.
  virtual uint64_t Next() = 0;
};

}  // namespace holdfast
