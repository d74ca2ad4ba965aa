#include "journal/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace holdfast {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "holdfast: %s:%d: CHECK(%s) failed\n", file, line, condition);
  std::abort();
}

}  // namespace holdfast
