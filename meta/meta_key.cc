#include "meta/meta_key.h"

#include <charconv>
#include <optional>

#include "journal/base/escape.h"

namespace holdfast {
namespace {

constexpr std::string_view kRoot = "/em/";
constexpr char kMark = '%';

// One spelling only: two keys must not mean the same.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || behind != end || std::to_string(number) != text) return std::nullopt;
  return number;
}

Status NotOurs(std::string_view kind, std::string_view key) {
  return DataLoss("a key under {} is not one of ours: {} bytes", MetaPrefix(kind, {}), key.size());
}

}  // namespace

std::string MetaKey(std::string_view kind, std::initializer_list<std::string_view> parts) {
  std::string key(kRoot);
  key += kind;
  for (const std::string_view part : parts) {
    key += '/';
    key += Escape(part, kMark, kUnreserved);
  }
  return key;
}

std::string MetaPrefix(std::string_view kind, std::initializer_list<std::string_view> parts) {
  return MetaKey(kind, parts) + '/';
}

StatusOr<std::vector<std::string>> ParseMetaKey(std::string_view kind, size_t count,
                                                std::string_view key) {
  const std::string prefix = MetaPrefix(kind, {});
  std::vector<std::string> parts;
  bool well_formed = key.starts_with(prefix);
  std::string_view rest = well_formed ? key.substr(prefix.size()) : std::string_view();
  for (bool more = well_formed; more && well_formed;) {
    const size_t slash = rest.find('/');
    more = slash != std::string_view::npos;
    std::optional<std::string> part = Unescape(rest.substr(0, slash), kMark, kUnreserved);
    well_formed = part.has_value();
    if (well_formed) parts.push_back(*std::move(part));
    if (more) rest = rest.substr(slash + 1);
  }
  if (well_formed && parts.size() == count) return parts;
  return NotOurs(kind, key);
}

std::string MetaSourceKey(std::string_view kind, const SourceKey& source) {
  return MetaKey(
      kind, {source.topic, std::to_string(source.incarnation), std::to_string(source.partition)});
}

StatusOr<SourceKey> ParseSourceKey(std::string_view kind, std::string_view key) {
  ASSIGN_OR_RETURN(std::vector<std::string> parts, ParseMetaKey(kind, 3, key));
  const std::optional<uint64_t> incarnation = ParseNumber(parts[1]),
                                partition = ParseNumber(parts[2]);
  if (!incarnation.has_value() || !partition.has_value()) return NotOurs(kind, key);
  return SourceKey{std::move(parts[0]), *incarnation, *partition};
}

}  // namespace holdfast
