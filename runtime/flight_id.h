// FlightId: the id of a delivery. One of up to 31 bytes, which all that an engine makes are, takes
// no memory of its own: with millions in flight that is half of what they take, and a cache miss.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast {

// Threads: one at a time.
class FlightId {
 public:
  void Set(std::string_view id) {
    longer_.reset();
    if (id.size() > kInlineBytes) {
      longer_ = std::make_unique<std::string>(id);
      return;
    }
    size_ = static_cast<uint8_t>(id.size());
    if (!id.empty()) std::memcpy(bytes_, id.data(), id.size());
  }
  // Until the next Set().
  std::string_view view() const {
    return longer_ != nullptr ? std::string_view(*longer_) : std::string_view(bytes_, size_);
  }

 private:
  static constexpr size_t kInlineBytes = 31;
  std::unique_ptr<std::string> longer_;
  uint8_t size_ = 0;
  char bytes_[kInlineBytes];
};
static_assert(sizeof(FlightId) == 40);

}  // namespace holdfast
