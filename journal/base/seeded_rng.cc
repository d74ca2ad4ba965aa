#include "journal/base/seeded_rng.h"

#include <random>

namespace holdfast {

uint64_t EntropySeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace holdfast
