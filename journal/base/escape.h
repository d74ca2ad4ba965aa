// Escaping: any bytes as text of a plain alphabet. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// Letters, digits and `more`.
struct PlainBytes {
  std::string_view more;

  bool Has(char byte) const {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || more.find(byte) != std::string_view::npos;
  }
};

// What needs no escape in a URL (RFC 3986, section 2.3).
inline constexpr PlainBytes kUnreserved{"-._~"};

// Plain bytes stand for themselves, each other one is `mark` and two upper-case hex digits.
// Needs: `mark` is not plain
std::string Escape(std::string_view bytes, char mark, PlainBytes plain);
// The bytes that Escape writes as `text`, in its only spelling; none: there are none.
std::optional<std::string> Unescape(std::string_view text, char mark, PlainBytes plain);

}  // namespace holdfast
