// Byte spans, alignment and narrowing that is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "journal/base/check.h"

namespace holdfast {

using ByteView = std::span<const std::byte>;
using ByteSpan = std::span<std::byte>;

inline ByteView AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// `alignment` is a power of two.
constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}
constexpr uint64_t AlignDown(uint64_t value, uint64_t alignment) {
  return value & ~(alignment - 1);
}
constexpr bool IsAligned(uint64_t value, uint64_t alignment) {
  return (value & (alignment - 1)) == 0;
}

// The same number in a narrower type; it must fit.
template <typename To, typename From>
constexpr To Narrow(From value) {
  static_assert(std::is_integral_v<To> && std::is_integral_v<From>);
  const To narrowed = static_cast<To>(value);
  CHECK(static_cast<From>(narrowed) == value);
  CHECK((narrowed < To{}) == (value < From{}));
  return narrowed;
}

}  // namespace holdfast
