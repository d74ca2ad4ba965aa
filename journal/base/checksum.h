// The one checksum of everything on disk: XXH3-64, seeded.
#pragma once

#include <cstdint>

#include "journal/base/bytes.h"

namespace holdfast {

uint64_t Checksum(ByteView bytes, uint64_t seed);

}  // namespace holdfast
