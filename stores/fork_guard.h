// ForkGuard: tells whether this is still the process that made it.
#pragma once

#include "journal/base/status.h"

namespace holdfast {

// One memory read a question: a page that the kernel zeroes in every forked child.
// Threads: any.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool InChild() const;
  // Errors: kFailedPrecondition  kLocked: in a forked child
  Status Check() const;

 private:
  volatile int* page_ = nullptr;  // null: the kernel has no such page; then the process id is asked
  int owner_ = 0;                 // process id
};

}  // namespace holdfast
