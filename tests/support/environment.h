// What a test run was told from outside.
#pragma once

#include <cstdlib>
#include <string>

namespace holdfast {

// The value of an environment variable; empty if it is not set.
inline std::string TextFromEnvironment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace holdfast
