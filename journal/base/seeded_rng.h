// The Rng of the product: splitmix64 (Steele, Lea, Flood, OOPSLA 2014) from a seed.
#pragma once

#include <cstdint>

#include "holdfast/rng.h"

namespace holdfast {

class SeededRng final : public Rng {
 public:
  explicit SeededRng(uint64_t seed) : state_(seed) {}

  uint64_t Next() override {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound), bound > 0; the bias of the remainder is below bound / 2^64.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

// A seed from the operating system's entropy, for a running program.
uint64_t EntropySeed();

}  // namespace holdfast
