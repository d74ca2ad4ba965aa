#include "journal/base/checksum.h"

#include <xxhash.h>

namespace holdfast {

uint64_t Checksum(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace holdfast
