#include "tools/told_offsets.h"

#include <charconv>
#include <optional>

namespace holdfast {
namespace {

// The number that `text` begins with, taken off.
std::optional<uint64_t> TakeNumber(std::string_view& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

void ToldOffsets::Add(uint64_t offset) {
  open_.erase(offset);
  for (; next_ <= offset; ++next_) {
    if (next_ < offset) open_.insert(open_.end(), next_);
  }
}

std::string ToldOffsets::Text() const {
  std::string text = std::to_string(next_);
  char separator = ':';
  for (const uint64_t offset : open_) {
    text += separator + std::to_string(offset);
    separator = ',';
  }
  return text;
}

StatusOr<ToldOffsets> ToldOffsets::Parse(std::string_view text) {
  ToldOffsets told;
  std::optional<uint64_t> number = TakeNumber(text);
  if (number.has_value()) told.next_ = *number;
  for (char separator = ':'; number.has_value() && !text.empty(); separator = ',') {
    if (text.front() != separator) return Invalid("not a list of open offsets");
    text.remove_prefix(1);
    number = TakeNumber(text);
    if (number.has_value() && *number < told.next_) told.open_.insert(*number);
  }
  if (!number.has_value()) return Invalid("not a list of open offsets");
  return told;
}

}  // namespace holdfast
