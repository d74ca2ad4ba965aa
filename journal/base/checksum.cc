#include "journal/base/checksum.h"

#ifdef HOLDFAST_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>  // the same names and values, by the widest vectors that there are
#else
#include <xxhash.h>
#endif

namespace holdfast {

uint64_t Checksum(ByteView bytes, uint64_t seed) {
  // A library that chooses by the processor does so in the first call: one thread at a time.
  [[maybe_unused]] static const uint64_t chosen = XXH3_64bits(nullptr, 0);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace holdfast
