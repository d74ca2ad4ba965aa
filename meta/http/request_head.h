// The head of a request judged byte by byte, before any parser sees it: whatever two readers of
// HTTP could understand differently is refused. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace holdfast {

// An answer to a request that nobody will run; the connection closes after it.
struct HttpRefusal {
  int status = 400;
  std::string_view reason;  // a constant
};

// Bytes of the head at the start of `bytes`, its empty line included; 0 while it is not all there.
size_t RequestHeadBytes(std::string_view bytes);

// For a head that is not all there yet: what can only become worse, so that nobody waits for the
// rest. `bytes` begins at the request line.
std::optional<HttpRefusal> CheckPartialHead(std::string_view bytes, size_t head_bytes_max);

struct RequestHeadLimits {
  size_t header_count_max = 100;
};

// `head` is a whole head, its empty line included. None: one request line and headers by RFC 9112,
// CRLF only, no folding, one Host, at most one of Content-Length (digits) and Transfer-Encoding
// (exactly "chunked"), no coded body, no expectation but 100-continue.
std::optional<HttpRefusal> CheckRequestHead(std::string_view head, const RequestHeadLimits& limits);

}  // namespace holdfast
