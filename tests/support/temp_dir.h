// A directory of its own for a test, removed afterwards.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "journal/base/check.h"

namespace holdfast {

// Under $TMPDIR or /tmp: tests of durability want a real file system there.
class TempDir {
 public:
  TempDir() {
    const char* const base = std::getenv("TMPDIR");
    std::string name = (base != nullptr ? std::string(base) : "/tmp") + "/holdfast-test-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace holdfast
