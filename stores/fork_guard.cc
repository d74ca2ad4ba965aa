#include "stores/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

namespace holdfast {

ForkGuard::ForkGuard() : owner_(getpid()) {
  const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, bytes);
    return;
  }
  page_ = static_cast<int*>(page);
  *page_ = 1;
}

ForkGuard::~ForkGuard() {
  if (page_ != nullptr) {
    munmap(const_cast<int*>(page_), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  }
}

bool ForkGuard::InChild() const { return page_ != nullptr ? *page_ == 0 : getpid() != owner_; }

Status ForkGuard::Check() const {
  if (!InChild()) return absl::OkStatus();
  return WrongState(Detail::kLocked,
                    "a forked child: the engine belongs to the process that opened it");
}

}  // namespace holdfast
