// CHECK guards what would write bad data and stays on in release; DCHECK guards the rest. Neither
// ever judges bytes from a disk or a network. (The packaged Abseil has none.)
#pragma once

namespace holdfast {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace holdfast

#define CHECK(condition)                                       \
  do {                                                         \
    if (__builtin_expect(!(condition), 0)) {                   \
      ::holdfast::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                          \
  } while (false)
#define CHECK_OK(expr) CHECK((expr).ok())

#ifdef NDEBUG
#define DCHECK(condition) \
  do {                    \
    if (false) {          \
      (void)(condition);  \
    }                     \
  } while (false)
#else
#define DCHECK(condition) CHECK(condition)
#endif
