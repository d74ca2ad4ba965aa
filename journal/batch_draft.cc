#include "journal/batch_draft.h"

#include <cstring>

namespace holdfast {

void BatchDraft::Keep(const std::vector<bool>& keep) {
  CHECK(keep.size() == count());
  size_t kept = 0;
  size_t end = 0;
  size_t begin = 0;
  for (size_t index = 0; index < keep.size(); ++index) {
    const size_t size = ends_[index] - begin;
    if (keep[index]) {
      std::memmove(memory_.data() + end, memory_.data() + begin, size);
      end += size;
      ends_[kept++] = end;
    }
    begin += size;
  }
  used_ = end;
  ends_.resize(kept);
}

}  // namespace holdfast
