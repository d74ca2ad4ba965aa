#include "meta/http/request_head.h"

#include <algorithm>
#include <string>

#include "meta/http/message.h"

namespace holdfast {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr size_t kLengthDigitsMax = 18;  // Fits 64 bits whatever the digits.

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr bool IsTokenByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsTokenByte);
}

constexpr bool IsTargetByte(char c) { return c > ' ' && c < 0x7f; }

constexpr bool IsValueByte(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find(kLineEnd);
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + kLineEnd.size());
  return line;
}

std::optional<HttpRefusal> CheckRequestLine(std::string_view line, bool& old_version) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return HttpRefusal{400, "request line: not three words"};
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(line.substr(0, first))) return HttpRefusal{400, "request line: not a method"};
  if (target.empty() || !std::ranges::all_of(target, IsTargetByte)) {
    return HttpRefusal{400, "request line: not a target"};
  }
  if (version.size() != 8 || !version.starts_with("HTTP/") || !IsDigit(version[5]) ||
      version[6] != '.' || !IsDigit(version[7])) {
    return HttpRefusal{400, "request line: not a version"};
  }
  old_version = version == "HTTP/1.0";
  if (!old_version && version != "HTTP/1.1") return HttpRefusal{505, "HTTP/1.0 or HTTP/1.1 only"};
  return std::nullopt;
}

// What the headers say about where the body ends, and whom the request is for.
struct Seen {
  bool host = false, length = false, coding = false, expect = false;
};

std::optional<HttpRefusal> CheckHeader(std::string_view name, std::string_view value, Seen& seen) {
  const auto twice = [](bool& flag) {
    const bool before = flag;
    flag = true;
    return before;
  };
  if (SameToken(name, "Host")) {
    if (twice(seen.host)) return HttpRefusal{400, "Host: twice"};
  } else if (SameToken(name, "Content-Length")) {
    if (twice(seen.length)) return HttpRefusal{400, "Content-Length: twice"};
    if (value.empty() || !std::ranges::all_of(value, IsDigit)) {
      return HttpRefusal{400, "Content-Length: not a number"};
    }
    if (value.size() > kLengthDigitsMax) return HttpRefusal{413, "Content-Length: too large"};
  } else if (SameToken(name, "Transfer-Encoding")) {
    if (twice(seen.coding)) return HttpRefusal{400, "Transfer-Encoding: twice"};
    if (!SameToken(value, "chunked")) return HttpRefusal{400, "Transfer-Encoding: only chunked"};
  } else if (SameToken(name, "Content-Encoding")) {
    if (!SameToken(value, "identity")) return HttpRefusal{415, "Content-Encoding: only identity"};
  } else if (SameToken(name, "Expect")) {
    if (twice(seen.expect) || !SameToken(value, "100-continue")) {
      return HttpRefusal{417, "Expect: only 100-continue"};
    }
  }
  return std::nullopt;
}

}  // namespace

size_t RequestHeadBytes(std::string_view bytes) {
  const size_t end = bytes.find(kHeadEnd);
  return end == std::string_view::npos ? 0 : end + kHeadEnd.size();
}

std::optional<HttpRefusal> CheckPartialHead(std::string_view bytes, size_t head_bytes_max) {
  if (bytes.size() > head_bytes_max) return HttpRefusal{431, "head: too large"};
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (bytes[at] == '\n' && (at == 0 || bytes[at - 1] != '\r')) {
      return HttpRefusal{400, "line feed without carriage return"};
    }
    if (bytes[at] == '\r' && at + 1 < bytes.size() && bytes[at + 1] != '\n') {
      return HttpRefusal{400, "carriage return without line feed"};
    }
  }
  if (bytes.starts_with(kLineEnd)) return HttpRefusal{400, "no request line"};
  if (!bytes.empty() && !IsTokenByte(bytes.front())) return HttpRefusal{400, "not a request"};
  return std::nullopt;
}

std::optional<HttpRefusal> CheckRequestHead(std::string_view head,
                                            const RequestHeadLimits& limits) {
  if (const auto refusal = CheckPartialHead(head, head.size()); refusal.has_value()) return refusal;
  bool old_version = false;
  if (const auto refusal = CheckRequestLine(TakeLine(head), old_version); refusal.has_value()) {
    return refusal;
  }
  Seen seen;
  size_t count = 0;
  for (std::string_view line = TakeLine(head); !line.empty(); line = TakeLine(head)) {
    if (++count > limits.header_count_max) return HttpRefusal{431, "head: too many headers"};
    if (line.front() == ' ' || line.front() == '\t') return HttpRefusal{400, "folded header"};
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return HttpRefusal{400, "not a header"};
    }
    const std::string_view value = Trimmed(line.substr(colon + 1));
    if (!std::ranges::all_of(value, IsValueByte)) {
      return HttpRefusal{400, "control byte in a header"};
    }
    const auto refusal = CheckHeader(line.substr(0, colon), value, seen);
    if (refusal.has_value()) return refusal;
  }
  if (seen.length && seen.coding) {
    return HttpRefusal{400, "Content-Length beside Transfer-Encoding"};
  }
  if (old_version && seen.coding) return HttpRefusal{400, "Transfer-Encoding in HTTP/1.0"};
  if (!old_version && !seen.host) return HttpRefusal{400, "no Host"};
  return std::nullopt;
}

}  // namespace holdfast
