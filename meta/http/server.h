// HttpServer: routes, limits and long-lived streams on one thread. Shared by the Meta gateway and
// the runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "journal/base/status.h"
#include "meta/http/message.h"
#include "meta/http/tls_options.h"

namespace holdfast {

struct HttpServerOptions {
  std::string address = "127.0.0.1";    // a numeric address
  uint16_t port = 0;                    // 0: a free one
  std::optional<TlsServerOptions> tls;  // none: plain HTTP
  size_t connections_max = 20'000;      // one more is answered 503
  size_t head_bytes_max = size_t{16} << 10;
  size_t header_count_max = 100;
  size_t body_bytes_max = size_t{4} << 20;
  size_t stream_buffer_bytes_max = size_t{1} << 20;  // per stream, waiting for its reader
  // Totals, not pauses: who sends a byte now and then is cut off all the same.
  absl::Duration handshake_timeout = absl::Seconds(10);  // of TLS
  absl::Duration head_timeout = absl::Seconds(10);
  absl::Duration body_timeout = absl::Seconds(30);
  absl::Duration write_timeout = absl::Seconds(30);  // of one answer, or one piece of a stream
  absl::Duration idle_timeout = absl::Seconds(90);   // between two requests of a connection
};

// The body of an answer that is written bit by bit, as chunks.
// Threads: any; what one thread writes stays in order.
class HttpEventStream {
 public:
  virtual ~HttpEventStream() = default;
  // Owns: copies `bytes`. False: the stream is closed, or is closed by this call because more than
  // stream_buffer_bytes_max would wait for a slow reader. The reader then sees a body without end.
  virtual bool Write(std::string_view bytes) = 0;
  // Ends the body as it should; what was written before still goes out.
  virtual void End() = 0;
  // Called once when no more can be written: the reader went, was too slow, or the server stops.
  // On the server's thread, which holds no lock; at once if it is so already. Drop by giving null.
  virtual void OnClosed(std::function<void()> closed) = 0;
  // Called on the server's thread each time that nothing waits for the reader any more.
  virtual void OnDrained(std::function<void()> drained) = 0;
};

// The right to answer one request, once. Dropped unused it answers 500.
// Threads: any. It may outlive the server; then nobody hears it.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void Send(HttpResponse response) = 0;
  // The body of `head` goes first. The connection ends with the stream.
  virtual std::shared_ptr<HttpEventStream> Stream(HttpResponse head) = 0;
};

struct HttpRoute {
  std::string method;
  std::string path;  // without query; one that ends in '/' also takes everything below it
  // Runs on the server's thread: it must not block. It may keep the reply and answer later.
  std::function<void(const HttpRequest&, std::shared_ptr<HttpReply>)> handler;
};

struct HttpServerStats {
  uint64_t connections = 0;   // open now
  uint64_t streams = 0;       // open now
  uint64_t requests = 0;      // handed to a route
  uint64_t refused = 0;       // by the layer itself, with an error or in the handshake
  uint64_t slow_readers = 0;  // streams closed at their cap
};

class HttpServer {
 public:
  // Whether Listen would take these files. Errors: kInvalidArgument, with the setting's name
  //         kFailedPrecondition  this build has no HTTP
  static Status CheckFiles(const TlsServerOptions& tls);
  // Listens when it returns, and lets clients wait until Serve(). A request that fits no route is
  // answered 404, or 405 if another method does; the longest path that fits is taken. Errors:
  // kInvalidArgument     not a numeric address; a file of `tls`, with the setting's name
  //         kUnavailable         the address cannot be listened on
  //         kFailedPrecondition  this build has no HTTP
  static StatusOr<std::unique_ptr<HttpServer>> Listen(const HttpServerOptions& options,
                                                      std::vector<HttpRoute> routes);
  // As Stop with no grace.
  virtual ~HttpServer() = default;
  virtual uint16_t port() const = 0;
  // Starts to answer, so that handlers may use whatever was made until now. Once.
  virtual void Serve() = 0;
  virtual HttpServerStats Stats() const = 0;
  // Takes no new request, answers those that came, ends the streams, and closes what is not done
  // within `grace`. Afterwards no handler and no callback runs. Not from a handler.
  virtual void Stop(absl::Duration grace) = 0;
};

}  // namespace holdfast
