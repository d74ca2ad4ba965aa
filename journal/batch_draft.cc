#include "journal/batch_draft.h"

#include <cstring>

namespace holdfast {

void BatchDraft::Drop(const std::vector<size_t>& dropped) {
  auto next = dropped.begin();
  size_t kept = 0;
  size_t end = 0;
  size_t begin = 0;
  for (size_t index = 0; index < count(); ++index) {
    const size_t size = ends_[index] - begin;
    if (next != dropped.end() && *next == index) {
      ++next;
    } else {
      std::memmove(memory_.data() + end, memory_.data() + begin, size);
      end += size;
      ends_[kept++] = end;
    }
    begin += size;
  }
  CHECK(next == dropped.end());
  used_ = end;
  ends_.resize(kept);
}

}  // namespace holdfast
