#include "index/page_array.h"

#include <sys/mman.h>

namespace holdfast {

Pages::Pages(size_t bytes) {
  if (bytes >= kOwnPagesMin) {
    void* const pages =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED) {
      bytes_ = {static_cast<std::byte*>(pages), Release{.mapped = bytes}};
      return;
    }
  }
  bytes_ = {new std::byte[bytes](), Release{.mapped = 0}};
}

void Pages::Release::operator()(std::byte* bytes) const {
  if (mapped > 0) {
    munmap(bytes, mapped);
  } else {
    delete[] bytes;
  }
}

}  // namespace holdfast
