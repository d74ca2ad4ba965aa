// HttpTransport: one request, one answer, one deadline, and streams that go on until closed. What
// was never sent and what was sent without being answered are told apart.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "journal/base/status.h"
#include "meta/http/message.h"
#include "meta/http/tls_options.h"

namespace holdfast {

struct HttpEndpoint {
  std::string host;  // a name or an address, IPv6 without brackets
  uint16_t port = 0;
  bool tls = false;  // https

  bool operator==(const HttpEndpoint&) const = default;
};

// "host:port" or "[::1]:port", of either kind.
// Errors: kInvalidArgument  something else
StatusOr<HttpEndpoint> ParseEndpoint(std::string_view text);
std::string EndpointText(const HttpEndpoint& endpoint);
// "http://host:port" or "https://host:port"; a slash may follow.
// Errors: kInvalidArgument  something else
StatusOr<HttpEndpoint> ParseEndpointUrl(std::string_view text);
std::string EndpointUrl(const HttpEndpoint& endpoint);
// An address that needs nobody to resolve it, of either version.
bool IsNumericAddress(const std::string& host);

// The body of an answer that has no end yet. The connection closes when this goes.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // The next bytes, at least one, as soon as there are any.
  // Threads: one reader at a time.
  // Errors:  kDeadlineExceeded  none came within `timeout`; read on
  //          kOutOfRange        the stream has ended as it should
  //          kUnavailable       it broke off, or was closed on this side
  virtual StatusOr<std::string> Read(absl::Duration timeout) = 0;
  // Closes the connection and wakes the reader. Any thread.
  virtual void Close() = 0;
};

struct HttpStreamStart {
  HttpResponse head;  // without a body
  std::unique_ptr<HttpStream> stream;
};

// Threads: any; calls run side by side.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // An answer of any status is OK.
  // Errors: kUnavailable, kNone            nobody has read a byte of it: it has not happened
  //         kUnavailable, kUnknownOutcome  sent, but not answered in full and in time
  //         kInvalidArgument               the request cannot be written as HTTP
  virtual StatusOr<HttpResponse> Send(const HttpEndpoint& endpoint, const HttpRequest& request,
                                      absl::Duration timeout) = 0;
  // Sends the request and returns when the head of the answer is there. Errors as Send.
  virtual StatusOr<HttpStreamStart> Open(const HttpEndpoint& endpoint, const HttpRequest& request,
                                         absl::Duration timeout) = 0;
};

struct HttpClientOptions {
  size_t head_bytes_max = size_t{16} << 10;
  size_t body_bytes_max = size_t{64} << 20;          // of a whole answer
  size_t stream_buffer_bytes_max = size_t{1} << 20;  // read ahead of a stream's reader
  size_t idle_connections_max = 8;                   // kept open, over all endpoints
  std::optional<TlsClientOptions> tls;               // none: nothing is sent to a https endpoint
};

// One thread of its own serves every exchange. It must outlive the streams that it opened.
// Errors: kFailedPrecondition  this build has no HTTP
//         kInvalidArgument     a limit, or a file of `tls`; names the setting
StatusOr<std::unique_ptr<HttpTransport>> NewHttpTransport(const HttpClientOptions& options);

}  // namespace holdfast
