#include "runtime/flight_id.h"

#include <charconv>
#include <cstring>

#include "journal/base/check.h"

namespace holdfast {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

FlightKey FlightIds::Add(std::string_view id) {
  const Parts parts = Split(id);
  if (!parts.digits.empty()) {
    std::optional<uint64_t> prefix = PrefixOf(parts.prefix);
    if (!prefix.has_value() && prefixes_.size() < kPrefixesMax) {
      prefix = prefixes_.size();
      prefixes_.emplace_back(parts.prefix);
      prefix_of_.emplace(std::string(parts.prefix), *prefix);
    }
    if (prefix.has_value()) return *prefix << kNumberBits | NumberIn(parts.digits);
  }
  const FlightKey key = next_kept_++;
  kept_.emplace(key, std::string(id));
  CHECK(kept_of_.emplace(std::string(id), key).second);
  return key;
}

// An id may have been kept before its prefix had a number only if it never gets one.
std::optional<FlightKey> FlightIds::Find(std::string_view id) const {
  const Parts parts = Split(id);
  if (!parts.digits.empty()) {
    const std::optional<uint64_t> prefix = PrefixOf(parts.prefix);
    if (prefix.has_value()) return *prefix << kNumberBits | NumberIn(parts.digits);
  }
  const auto kept = kept_of_.find(id);
  if (kept == kept_of_.end()) return std::nullopt;
  return kept->second;
}

FlightId FlightIds::TextOf(FlightKey key) const {
  FlightId id;
  if (key >= kKept) {
    const std::string& text = kept_.find(key)->second;
    id.text_.assign(text.begin(), text.end());
    return id;
  }
  const std::string& prefix = prefixes_[key >> kNumberBits];
  id.text_.resize(prefix.size() + kDigitsMax);
  std::memcpy(id.text_.data(), prefix.data(), prefix.size());
  const auto written = std::to_chars(id.text_.data() + prefix.size(),
                                     id.text_.data() + id.text_.size(), key & ~kKept);
  CHECK(written.ec == std::errc());
  id.text_.resize(static_cast<size_t>(written.ptr - id.text_.data()));
  return id;
}

void FlightIds::Remove(FlightKey key) {
  if (key < kKept) return;
  const auto kept = kept_.find(key);
  kept_of_.erase(kept->second);
  kept_.erase(kept);
}

// The digits are what a number is written with: zeros before it belong to the prefix.
FlightIds::Parts FlightIds::Split(std::string_view id) {
  size_t begin = id.size();
  while (begin > 0 && id.size() - begin < kDigitsMax && IsDigit(id[begin - 1])) --begin;
  while (begin + 1 < id.size() && id[begin] == '0') ++begin;
  return {.prefix = id.substr(0, begin), .digits = id.substr(begin)};
}

uint64_t FlightIds::NumberIn(std::string_view digits) {
  uint64_t number = 0;
  for (const char digit : digits) number = number * 10 + static_cast<uint64_t>(digit - '0');
  return number;
}

std::optional<uint64_t> FlightIds::PrefixOf(std::string_view prefix) const {
  if (found_ < prefixes_.size() && prefixes_[found_] == prefix) return found_;
  const auto found = prefix_of_.find(prefix);
  if (found == prefix_of_.end()) return std::nullopt;
  found_ = found->second;
  return found_;
}

}  // namespace holdfast
