// How reports write a rate and a time.
#pragma once

#include <fmt/format.h>

#include <string>

namespace holdfast::bench {

inline std::string Rate(double per_second) {
  if (per_second >= 999'500) return fmt::format("{:.2f}M", per_second * 1e-6);
  if (per_second >= 99'950) return fmt::format("{:.0f}k", per_second * 1e-3);
  if (per_second >= 1'000) return fmt::format("{:.1f}k", per_second * 1e-3);
  return fmt::format("{:.0f}", per_second);
}

inline std::string Micros(double micros) {
  return micros >= 100 ? fmt::format("{:.0f}", micros) : fmt::format("{:.2g}", micros);
}

}  // namespace holdfast::bench
