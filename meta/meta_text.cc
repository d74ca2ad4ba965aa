#include "meta/meta_text.h"

#include <charconv>

namespace holdfast {
namespace {

constexpr uint64_t kVersion = 1;

}  // namespace

std::string EncodeMetaText(std::initializer_list<uint64_t> numbers, std::string_view text) {
  std::string value = std::to_string(kVersion);
  for (const uint64_t number : numbers) value += ' ' + std::to_string(number);
  value += ' ';
  value += text;
  return value;
}

StatusOr<MetaText> DecodeMetaText(const MetaEntry& entry, size_t numbers) {
  MetaText decoded;
  std::string_view rest = entry.value;
  for (size_t at = 0; at <= numbers; ++at) {
    uint64_t number = 0;
    const char* const end = rest.data() + rest.size();
    const auto [behind, error] = std::from_chars(rest.data(), end, number);
    if (error != std::errc() || behind == end || *behind != ' ') {
      return DataLoss("the value of {} does not decode", entry.key);
    }
    rest.remove_prefix(static_cast<size_t>(behind - rest.data()) + 1);
    if (at > 0) {
      decoded.numbers.push_back(number);
    } else if (number != kVersion) {
      return MakeStatus(StatusCode::kUnimplemented, Detail::kNone,
                        fmt::format("the value of {} is of version {}, this program knows {}: "
                                    "upgrade it",
                                    entry.key, number, kVersion));
    }
  }
  decoded.text = rest;
  return decoded;
}

}  // namespace holdfast
