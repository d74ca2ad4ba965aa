#include "journal/io/file_size_signal.h"

#include <pthread.h>

#include <ctime>

namespace holdfast {
namespace {

sigset_t OnlyFileSizeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

bool FileSizeSignalPending() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  return sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

FileSizeSignalBlock::FileSizeSignalBlock() {
  const sigset_t set = OnlyFileSizeSignal();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  host_blocks_it_ = sigismember(&before_, SIGXFSZ) == 1;
  pending_before_ = host_blocks_it_ && FileSizeSignalPending();
}

FileSizeSignalBlock::~FileSizeSignalBlock() {
  if (!pending_before_ && FileSizeSignalPending()) {
    const sigset_t set = OnlyFileSizeSignal();
    const timespec now{};
    sigtimedwait(&set, nullptr, &now);
  }
  if (!host_blocks_it_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace holdfast
