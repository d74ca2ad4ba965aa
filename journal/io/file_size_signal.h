// A write beyond RLIMIT_FSIZE sends SIGXFSZ, which kills a process that does not expect it. The
// library must not, and it must not change the host's signal handling either.
#pragma once

#include <csignal>

namespace holdfast {

// Holds SIGXFSZ back from the calling thread while it lives, and swallows one that came from
// inside: the call then just fails with EFBIG. Nothing else of the host's signals is touched.
class FileSizeSignalBlock {
 public:
  FileSizeSignalBlock();
  ~FileSizeSignalBlock();
  FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
  FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;

 private:
  sigset_t before_;
  bool host_blocks_it_ = false;
  bool pending_before_ = false;
};

}  // namespace holdfast
