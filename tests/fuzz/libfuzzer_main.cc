// One libFuzzer program for each target: HOLDFAST_FUZZ_TARGET is the function.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  holdfast::HOLDFAST_FUZZ_TARGET({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
