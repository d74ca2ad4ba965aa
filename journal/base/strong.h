// Numbers that must not be mixed up: log sequence numbers, segment ids, boot epochs.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>

namespace holdfast {

// A 64-bit number with a meaning. Zero is "none" for every tag.
template <typename Tag>
class Strong64 {
 public:
  constexpr Strong64() = default;
  constexpr explicit Strong64(uint64_t value) : value_(value) {}
  constexpr uint64_t value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }
  constexpr auto operator<=>(const Strong64&) const = default;
  // Moves along the sequence.
  constexpr Strong64 operator+(uint64_t count) const { return Strong64(value_ + count); }
  constexpr Strong64 operator-(uint64_t count) const { return Strong64(value_ - count); }
  // The distance between two.
  constexpr uint64_t operator-(Strong64 other) const { return value_ - other.value_; }

 private:
  uint64_t value_ = 0;
};

using Lsn = Strong64<struct LsnTag>;              // of a record, in append order, never reused
using SegmentId = Strong64<struct SegmentIdTag>;  // of a segment file
using Epoch = Strong64<struct EpochTag>;          // counts boots of a store

}  // namespace holdfast

template <typename Tag>
struct fmt::formatter<holdfast::Strong64<Tag>> : fmt::formatter<uint64_t> {
  template <typename Context>
  auto format(holdfast::Strong64<Tag> number, Context& context) const {
    return fmt::formatter<uint64_t>::format(number.value(), context);
  }
};

template <typename Tag>
struct std::hash<holdfast::Strong64<Tag>> {
  size_t operator()(holdfast::Strong64<Tag> number) const noexcept {
    return std::hash<uint64_t>()(number.value());
  }
};
