// JSON in and out for tools and the runtime: any bytes can be written, and nothing that is read can
// hurt (depth, size and count are capped, no exception comes out).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "journal/base/status.h"

namespace holdfast {

bool IsUtf8(std::string_view bytes);
std::string Base64(std::string_view bytes);
// None: not canonical base64 with padding.
std::optional<std::string> FromBase64(std::string_view text);

// Appends JSON to a string that it borrows, commas included. Keys and values must come in an order
// that makes sense; that is not checked.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view name);
  // A string, or {"base64": "…"} where the bytes are not UTF-8.
  JsonWriter& Value(std::string_view bytes);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  template <std::integral T>
  JsonWriter& Value(T value) {
    if constexpr (std::same_as<T, bool>) {
      return Raw(value ? "true" : "false");
    } else {
      return Raw(std::to_string(value));
    }
  }
  JsonWriter& Value(double value);  // null if it is not finite
  JsonWriter& Null() { return Raw("null"); }
  // `Key(name).Value(value)`.
  template <typename T>
  JsonWriter& Field(std::string_view name, const T& value) {
    return Key(name).Value(value);
  }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  JsonWriter& Raw(std::string_view text);

  std::string& out_;
  bool comma_ = false;  // a value stands before in this object or array
};

// A parsed value; owns all of it.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object =
      std::vector<std::pair<std::string, Json>>;  // in the order of the text, keys distinct

  struct Limits {
    size_t bytes_max = size_t{16} << 20;
    size_t depth_max = 64;
    size_t values_max = 1'000'000;
  };
  // The message of an error tells where and echoes no input.
  // Errors: kInvalidArgument    not one JSON value, not UTF-8, or an object with a key twice
  //         kResourceExhausted  kLimit: over one of the limits
  static StatusOr<Json> Parse(std::string_view text, const Limits& limits);
  static StatusOr<Json> Parse(std::string_view text) { return Parse(text, Limits()); }

  Json() = default;  // null

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // Null if it is of another type.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  // None if it is not written as a whole number, or out of range.
  std::optional<uint64_t> unsigned_integer() const;
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  // The member of an object; null if this is none or has no such key.
  const Json* Find(std::string_view key) const;

 private:
  friend class JsonBuilder;
  std::variant<std::monostate, bool, uint64_t, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace holdfast
