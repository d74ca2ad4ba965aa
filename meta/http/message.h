// HttpRequest and HttpResponse: whole HTTP/1.1 messages, as the client sends and the server hands
// on.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct HttpHeader {
  std::string name;
  std::string value;
};
using HttpHeaders = std::vector<HttpHeader>;

// ASCII letters are alike in both cases, as in names of headers.
inline bool SameToken(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// The value of the first header of that name; null if there is none.
inline const std::string* FindHeader(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::ranges::find_if(
      headers, [&](const HttpHeader& header) { return SameToken(header.name, name); });
  return found == headers.end() ? nullptr : &found->value;
}

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  // path and query, as on the wire
  HttpHeaders headers;       // framing and connection headers are made and read by the layer itself
  std::string body;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;
  std::string body;
};

}  // namespace holdfast
