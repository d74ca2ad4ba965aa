#include "journal/base/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace holdfast {
namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// How many bytes the character at the start of `bytes` takes; 0 if it is none.
size_t CharacterBytes(std::string_view bytes) {
  const auto at = [&](size_t index) { return static_cast<uint8_t>(bytes[index]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < size) return 0;
  for (size_t index = 1; index < size; ++index) {
    if ((at(index) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = at(1);
  if (lead == 0xe0 && second < 0xa0) return 0;  // overlong
  if (lead == 0xed && second > 0x9f) return 0;  // surrogates
  if (lead == 0xf0 && second < 0x90) return 0;  // overlong
  if (lead == 0xf4 && second > 0x8f) return 0;  // beyond U+10FFFF
  return size;
}

void AppendQuoted(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t size = CharacterBytes(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string Base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t index = 0; index < bytes.size(); index += 3) {
    const std::string_view three = bytes.substr(index, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < three.size() ? static_cast<uint8_t>(three[i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= three.size() ? kBase64Digits[(bits >> (18 - 6 * i)) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t index = 0; index < text.size(); index += 4) {
    std::string_view four = text.substr(index, 4);
    if (index + 4 == text.size()) {
      for (int padding = 0; padding < 2 && four.ends_with('='); ++padding) four.remove_suffix(1);
    }
    uint32_t bits = 0;
    for (const char digit : four) {
      const size_t value = kBase64Digits.find(digit);
      if (value == std::string_view::npos) return std::nullopt;
      bits = bits << 6 | static_cast<uint32_t>(value);
    }
    bits <<= 6 * (4 - four.size());
    for (size_t i = 0; i + 1 < four.size(); ++i) {
      bytes += static_cast<char>(bits >> (16 - 8 * i));
    }
    if ((bits & ((uint32_t{1} << (8 * (4 - four.size()))) - 1)) != 0) return std::nullopt;
  }
  return bytes;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  if (comma_) out_ += ',';
  AppendQuoted(name, out_);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view bytes) {
  if (!IsUtf8(bytes)) return BeginObject().Field("base64", Base64(bytes)).EndObject();
  if (comma_) out_ += ',';
  AppendQuoted(bytes, out_);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Value(double value) {
  return std::isfinite(value) ? Raw(fmt::format("{}", value)) : Null();
}

JsonWriter& JsonWriter::Open(char bracket) {
  if (comma_) out_ += ',';
  out_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view text) {
  if (comma_) out_ += ',';
  out_ += text;
  comma_ = true;
  return *this;
}

// Takes the events of nlohmann's parser, which calls itself for nothing, and builds the value from
// the inside out. A callback that returns false ends the parse; `status_` says why.
class JsonBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit JsonBuilder(const Json::Limits& limits) : limits_(limits) {}

  // The names are those that nlohmann calls.
  bool null() { return Add({}); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(number_integer_t value) { return Add(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) { return Add(uint64_t{value}); }
  bool number_float(number_float_t value, const string_t&) { return Add(double{value}); }
  bool string(string_t& value) { return Add(std::move(value)); }
  bool binary(binary_t&) { return false; }
  bool start_object(size_t) { return Open(Json::Object()); }
  bool start_array(size_t) { return Open(Json::Array()); }
  bool key(string_t& name) {
    open_.back().keys.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    std::vector<std::string>& keys = open_.back().keys;
    Json::Object& members = std::get<Json::Object>(open_.back().value);
    for (size_t index = 0; index < keys.size(); ++index) members[index].first = keys[index];
    std::sort(keys.begin(), keys.end());
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) {
      status_ = Invalid("JSON: an object has a key twice");
      return false;
    }
    return end_array();
  }
  bool end_array() {
    Value closed = std::move(open_.back().value);
    open_.pop_back();
    return Place(std::move(closed));
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    if (status_.ok()) status_ = Invalid("JSON: not valid at byte {}", position);
    return false;
  }

  const Status& status() const { return status_; }
  Json Take() { return std::move(root_); }

 private:
  using Value = decltype(Json::value_);
  struct Container {
    Value value;  // an Array or an Object
    std::vector<std::string> keys;
  };

  bool Over(const char* what, size_t limit) {
    status_ = Exhausted(Detail::kLimit, "JSON: more than {} {}", limit, what);
    return false;
  }
  bool Count() { return ++values_ <= limits_.values_max || Over("values", limits_.values_max); }
  bool Add(Value value) { return Count() && Place(std::move(value)); }
  bool Open(Value value) {
    if (open_.size() >= limits_.depth_max) return Over("levels", limits_.depth_max);
    if (!Count()) return false;
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool Place(Value value) {
    Json json;
    json.value_ = std::move(value);
    if (open_.empty()) {
      root_ = std::move(json);
    } else if (auto* array = std::get_if<Json::Array>(&open_.back().value); array != nullptr) {
      array->push_back(std::move(json));
    } else {
      std::get_if<Json::Object>(&open_.back().value)->emplace_back(std::string(), std::move(json));
    }
    return true;
  }

  const Json::Limits& limits_;  // Borrowed for one parse.
  std::vector<Container> open_;
  Json root_;
  size_t values_ = 0;
  Status status_;
};

StatusOr<Json> Json::Parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes_max) {
    return Exhausted(Detail::kLimit, "JSON: {} bytes, more than {}", text.size(), limits.bytes_max);
  }
  // The parser takes a zero byte for the end of its input.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return Invalid("JSON: not valid at byte {}", zero);
  }
  JsonBuilder builder(limits);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  RETURN_IF_ERROR(builder.status());
  if (!parsed) return Invalid("JSON: not valid");
  return builder.Take();
}

std::optional<uint64_t> Json::unsigned_integer() const {
  if (const auto* value = std::get_if<uint64_t>(&value_); value != nullptr) return *value;
  return std::nullopt;
}

std::optional<int64_t> Json::integer() const {
  if (const auto* value = std::get_if<int64_t>(&value_); value != nullptr) return *value;
  const std::optional<uint64_t> value = unsigned_integer();
  if (!value.has_value() || *value > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*value);
}

std::optional<double> Json::number() const {
  if (const auto* value = std::get_if<double>(&value_); value != nullptr) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_); value != nullptr) {
    return static_cast<double>(*value);
  }
  if (const auto* value = std::get_if<uint64_t>(&value_); value != nullptr) {
    return static_cast<double>(*value);
  }
  return std::nullopt;
}

const Json* Json::Find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  for (const auto& [name, value] : *members) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace holdfast
