#include "tests/sim/sim_content.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr std::array<std::byte, SimContent::kPageBytes> kZeroPage{};

}  // namespace

void SimContent::SetSize(uint64_t bytes) {
  const bool shrinks = bytes < size_;
  size_ = bytes;
  if (shrinks) TrimToSize();
}

void SimContent::TrimToSize() {
  const uint64_t pages = AlignUp(size_, kPageBytes) / kPageBytes;
  if (pages_.size() > pages) pages_.resize(pages);
  if (const uint64_t used = size_ % kPageBytes;
      used != 0 && pages_.size() == pages && pages_.back()) {
    const std::vector<std::byte> zeros(kPageBytes - used);
    Write(size_, zeros);
  }
}

void SimContent::Read(uint64_t offset, ByteSpan buffer) const {
  while (!buffer.empty()) {
    const uint64_t page = offset / kPageBytes;
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(buffer.size(), kPageBytes - within);
    if (page < pages_.size() && pages_[page]) {
      std::memcpy(buffer.data(), pages_[page]->data() + within, count);
    } else {
      std::memset(buffer.data(), 0, count);
    }
    offset += count;
    buffer = buffer.subspan(count);
  }
}

void SimContent::Write(uint64_t offset, ByteView bytes) {
  while (!bytes.empty()) {
    const uint64_t index = offset / kPageBytes;
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(bytes.size(), kPageBytes - within);
    if (index >= pages_.size()) pages_.resize(index + 1);
    std::shared_ptr<Page>& page = pages_[index];
    const bool zeros = std::memcmp(bytes.data(), kZeroPage.data(), count) == 0;
    if (page || !zeros) {
      if (!page) {
        page = std::make_shared<Page>();
      } else if (page.use_count() > 1) {
        page = std::make_shared<Page>(*page);
      }
      std::memcpy(page->data() + within, bytes.data(), count);
    }
    offset += count;
    bytes = bytes.subspan(count);
  }
}

bool SimContent::Equals(uint64_t offset, ByteView bytes) const {
  while (!bytes.empty()) {
    const uint64_t page = offset / kPageBytes;
    const uint64_t within = offset % kPageBytes;
    const size_t count = std::min<uint64_t>(bytes.size(), kPageBytes - within);
    const bool written = page < pages_.size() && pages_[page];
    const std::byte* own = written ? pages_[page]->data() + within : kZeroPage.data();
    if (std::memcmp(own, bytes.data(), count) != 0) return false;
    offset += count;
    bytes = bytes.subspan(count);
  }
  return true;
}

}  // namespace holdfast
