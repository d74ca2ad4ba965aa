// Which real backend the test suites use: io_uring where the kernel has it, or what the environment
// variable HOLDFAST_STORAGE ("posix", "uring") says. The suites run once with each.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "journal/base/check.h"
#include "journal/io/open_storage.h"

namespace holdfast {

inline IoBackend BackendUnderTest() {
  const char* const wish = std::getenv("HOLDFAST_STORAGE");
  if (wish == nullptr || std::string_view(wish).empty()) return IoBackend::kAuto;
  CHECK(std::string_view(wish) == "posix" || std::string_view(wish) == "uring");
  return std::string_view(wish) == "posix" ? IoBackend::kPosix : IoBackend::kUring;
}

// A storage for a test that is not about storage.
inline std::unique_ptr<Storage> OpenTestStorage(const std::string& directory) {
  StatusOr<std::unique_ptr<Storage>> storage = OpenStorage(directory, {.io = BackendUnderTest()});
  CHECK(storage.ok());
  return *std::move(storage);
}

}  // namespace holdfast
