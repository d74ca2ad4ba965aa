// Seeds of a randomised test: a few fixed ones in CI, any range in a long run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace holdfast {

// The value of an environment variable as a number, or `otherwise`.
inline uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

// HOLDFAST_SEED_FIRST (1) onwards, HOLDFAST_SEEDS (`count`) of them. A test prints the one it is at
// with SCOPED_TRACE; HOLDFAST_SEED_FIRST=<it> HOLDFAST_SEEDS=1 runs that one again.
inline std::vector<uint64_t> Seeds(uint64_t count) {
  const uint64_t first = NumberFromEnvironment("HOLDFAST_SEED_FIRST", 1);
  std::vector<uint64_t> seeds(NumberFromEnvironment("HOLDFAST_SEEDS", count));
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i] = first + i;
  return seeds;
}

// Sweeps over every place take one place in so many: all, unless HOLDFAST_ONE_IN says otherwise.
// From FirstOf(seed) on, so that successive seeds take all of them.
inline uint64_t OneIn() {
  return std::max(uint64_t{1}, NumberFromEnvironment("HOLDFAST_ONE_IN", 1));
}
inline uint64_t FirstOf(uint64_t seed) { return seed % OneIn(); }

}  // namespace holdfast
