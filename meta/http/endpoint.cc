#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "meta/http/transport.h"

namespace holdfast {

StatusOr<HttpEndpoint> ParseEndpoint(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Invalid("endpoint: no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  HttpEndpoint endpoint;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Invalid("endpoint: not a port number after the last colon");
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Invalid("endpoint: an IPv6 address stands in brackets");
  }
  const auto is_host_byte = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  };
  if (host.empty() || !std::ranges::all_of(host, is_host_byte)) {
    return Invalid("endpoint: not a host name before the port");
  }
  endpoint.host = host;
  return endpoint;
}

std::string EndpointText(const HttpEndpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", endpoint.host, brackets ? "]" : "",
                     endpoint.port);
}

StatusOr<HttpEndpoint> ParseEndpointUrl(std::string_view text) {
  constexpr std::string_view kPlain = "http://", kTls = "https://";
  const bool tls = text.starts_with(kTls);
  if (!tls && !text.starts_with(kPlain)) return Invalid("endpoint: neither http:// nor https://");
  text.remove_prefix(tls ? kTls.size() : kPlain.size());
  if (text.ends_with('/')) text.remove_suffix(1);
  ASSIGN_OR_RETURN(HttpEndpoint endpoint, ParseEndpoint(text));
  endpoint.tls = tls;
  return endpoint;
}

std::string EndpointUrl(const HttpEndpoint& endpoint) {
  return (endpoint.tls ? "https://" : "http://") + EndpointText(endpoint);
}

bool IsNumericAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

}  // namespace holdfast
