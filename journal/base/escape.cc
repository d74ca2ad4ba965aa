#include "journal/base/escape.h"

namespace holdfast {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

}  // namespace

std::string Escape(std::string_view bytes, char mark, PlainBytes plain) {
  std::string text;
  text.reserve(bytes.size());
  for (const char byte : bytes) {
    if (plain.Has(byte)) {
      text += byte;
      continue;
    }
    const auto value = static_cast<unsigned char>(byte);
    text += mark;
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

std::optional<std::string> Unescape(std::string_view text, char mark, PlainBytes plain) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    if (plain.Has(text[at])) {
      bytes += text[at];
      continue;
    }
    if (text[at] != mark || text.size() - at < 3) return std::nullopt;
    const size_t high = kDigits.find(text[at + 1]), low = kDigits.find(text[at + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    const char byte = static_cast<char>(high << 4 | low);
    if (plain.Has(byte)) return std::nullopt;
    bytes += byte;
    at += 2;
  }
  return bytes;
}

}  // namespace holdfast
