#include "meta/backends/nacos_record.h"

#include <algorithm>
#include <charconv>

#include "journal/base/escape.h"
#include "journal/base/json.h"
#include "meta/value_envelope.h"

namespace holdfast {
namespace {

constexpr std::string_view kHead = "holdfast ";
constexpr std::string_view kVersion = "1 ";
constexpr std::string_view kPut = "put", kGone = "gone";
constexpr std::string_view kNamePrefix = "k";  // apart from whatever else is in the group
constexpr char kNameMark = '-';
constexpr PlainBytes kNamePlain{"./"};  // a slash is written as a colon

// Base64 as in URLs: a form writes '+', '/' and '=' as three bytes each.
std::string ToUrlBase64(std::string_view bytes) {
  std::string text = Base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> FromUrlBase64(std::string_view text) {
  if (text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  std::string padded(text);
  std::ranges::replace(padded, '-', '+');
  std::ranges::replace(padded, '_', '/');
  padded.append((4 - padded.size() % 4) % 4, '=');
  return FromBase64(padded);
}

// The words of a content, one after another.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  std::string_view Next() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }
  bool Number(uint64_t& number) {
    const std::string_view word = Next();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size();
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::string EncodeNacosRecord(const NacosRecord& record) {
  return fmt::format(
      "{}{}{} {} {} {} {} {} .{}", kHead, kVersion, record.there ? kPut : kGone, record.revision,
      record.create_revision, record.version, record.writes, record.write_id,
      ToUrlBase64(SealEnvelope({.request_id = record.request_id, .value = record.value})));
}

StatusOr<NacosRecord> DecodeNacosRecord(std::string_view content) {
  const Status damaged = DataLoss("nacos: the content of a config is not one of Holdfast's");
  if (!content.starts_with(kHead)) return damaged;
  content.remove_prefix(kHead.size());
  if (!content.starts_with(kVersion)) {
    return MakeStatus(StatusCode::kUnimplemented, Detail::kNone,
                      "nacos: the content of a config is of a version that this program does not "
                      "know: upgrade it");
  }
  content.remove_prefix(kVersion.size());
  Words words(content);
  NacosRecord record;
  const std::string_view kind = words.Next();
  if (kind != kPut && kind != kGone) return damaged;
  record.there = kind == kPut;
  if (!words.Number(record.revision) || !words.Number(record.create_revision) ||
      !words.Number(record.version) || !words.Number(record.writes)) {
    return damaged;
  }
  record.write_id = words.Next();
  const std::string_view stored = words.Next();
  if (record.revision == 0 || !stored.starts_with('.') || !words.done()) return damaged;
  const std::optional<std::string> bytes = FromUrlBase64(stored.substr(1));
  if (!bytes.has_value()) return damaged;
  const EnvelopeParts parts = OpenEnvelope(*bytes);
  record.request_id = parts.request_id;
  record.value = parts.value;
  return record;
}

std::string NacosDataId(std::string_view key) {
  std::string data_id = Escape(key, kNameMark, kNamePlain);
  std::ranges::replace(data_id, '/', ':');
  return std::string(kNamePrefix) + data_id;
}

std::optional<std::string> KeyOfNacosDataId(std::string_view data_id) {
  if (!data_id.starts_with(kNamePrefix) || data_id.find('/') != std::string_view::npos) {
    return std::nullopt;
  }
  std::string escaped(data_id.substr(kNamePrefix.size()));
  std::ranges::replace(escaped, ':', '/');
  return Unescape(escaped, kNameMark, kNamePlain);
}

}  // namespace holdfast
