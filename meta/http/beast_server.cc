#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "journal/base/mutex.h"
#include "meta/http/event_stream.h"
#include "meta/http/request_head.h"
#include "meta/http/routes.h"
#include "meta/http/server.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kFirstReadBytes = 512;  // An idle connection holds no more.
constexpr size_t kReadBytes = 4096;
constexpr size_t kHeadBytesLimit = size_t{32} << 10;  // Beast counts a field's bytes in 16 bits.
constexpr size_t kBodyBufferBytes = size_t{64} << 10;
// How long and how much is still taken from a client that is told to go, so that it can read why.
constexpr std::chrono::seconds kLingerTime(2);
constexpr size_t kLingerBytesMax = size_t{1} << 20;
constexpr std::chrono::milliseconds kAcceptRetry(100);  // The process has no descriptor left.
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::chrono::steady_clock::duration Chrono(absl::Duration time) {
  return absl::ToChronoNanoseconds(time);
}

std::string_view StatusText(int status) {
  const beast::string_view text =
      http::obsolete_reason(http::int_to_status(Narrow<unsigned>(status)));
  return {text.data(), text.size()};
}

// The way into the loop for other threads. Outlives the loop, and is shut when that ends.
class Gate {
 public:
  explicit Gate(asio::io_context& loop) : loop_(&loop) {}
  void Post(std::function<void()> work) {
    MutexLock lock(mu_);
    if (loop_ != nullptr) asio::post(*loop_, std::move(work));
  }
  void Shut() {
    MutexLock lock(mu_);
    loop_ = nullptr;
  }

 private:
  Mutex mu_;
  asio::io_context* loop_ ABSL_GUARDED_BY(mu_);
};

class Connection;

// What the connections share. Only the loop's thread touches it, but for the counters.
struct Core {
  HttpServerOptions options;
  Routes routes;
  std::shared_ptr<Gate> gate;  // last owner: the last reply
  // An owner besides the operations under way, for the stop.
  std::unordered_set<std::shared_ptr<Connection>> connections;
  bool stopping = false;
  std::function<void()> connection_closed;
  std::atomic<uint64_t> open = 0, streams = 0, requests = 0, refused = 0, slow_readers = 0;
};

// One client: its requests one after the other, or one stream. Lives on the loop's thread.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  // Borrows `core`, which outlives it.
  Connection(Core& core, Tcp::socket socket)
      : core_(core),
        stream_(std::move(socket)),
        buffer_(core.options.head_bytes_max + kBodyBufferBytes) {}

  void Start() {
    stream_.expires_after(Chrono(core_.options.head_timeout));
    ReadHead();
  }

  void Answer(HttpResponse response) {
    if (state_ != State::kHandling) return;
    state_ = State::kAnswering;
    keep_alive_ = keep_alive_ && !core_.stopping;
    head_ = HeadText(response, keep_alive_, response.body.size());
    body_ = std::move(response.body);
    WriteAnswer();
  }

  void BeginStream(HttpResponse head, std::shared_ptr<EventStream> events) {
    if (state_ != State::kHandling) {
      events->Close();
      return events->RunCallbacks();
    }
    state_ = State::kStreaming;
    events_ = std::move(events);
    ++core_.streams;
    keep_alive_ = false;
    head_ = HeadText(head, false, std::nullopt);
    if (!head.body.empty()) AppendPiece(head.body, head_);
    stream_.expires_never();
    WatchReader();
    writing_ = true;
    WritePiece();
    if (core_.stopping) events_->End();
  }

  // The stream may have something to say. Also called too early, before it has begun.
  void Woken() {
    if (events_ == nullptr) return;
    if (state_ == State::kStreaming && events_->overrun()) {
      ++core_.slow_readers;
      return Close();
    }
    events_->RunCallbacks();
    if (state_ == State::kStreaming && !writing_) SendWaiting();
  }

  // Ends as soon as what has begun is done.
  void Finish() {
    if (state_ == State::kReadingHead && buffer_.size() == 0) return Close();
    if (state_ == State::kStreaming) events_->End();
  }

  void Close() {
    if (state_ == State::kClosed) return;
    const bool streaming = state_ == State::kStreaming;
    state_ = State::kClosed;
    stream_.close();
    if (streaming) --core_.streams;
    if (events_ != nullptr) {
      events_->Close();
      events_->RunCallbacks();
    }
    --core_.open;
    const std::shared_ptr<Connection> self = shared_from_this();
    core_.connections.erase(self);
    core_.connection_closed();
  }

 private:
  enum class State {
    kReadingHead,
    kReadingBody,
    kHandling,
    kAnswering,
    kStreaming,
    kLingering,
    kClosed
  };

  std::string_view buffered() const {
    const asio::const_buffer bytes = buffer_.cdata();
    return {static_cast<const char*>(bytes.data()), bytes.size()};
  }

  void ReadHead() {
    if (const size_t bytes = RequestHeadBytes(buffered()); bytes != 0) return ParseHead(bytes);
    if (const auto refusal = CheckPartialHead(buffered(), core_.options.head_bytes_max)) {
      return Refuse(*refusal);
    }
    const size_t bytes = buffer_.size() == 0 ? kFirstReadBytes : kReadBytes;
    stream_.async_read_some(
        buffer_.prepare(bytes), [self = shared_from_this()](ErrorCode error, size_t got) {
          if (self->state_ == State::kClosed) return;
          if (error) return self->Close();
          if (self->buffer_.size() == 0) {
            self->stream_.expires_after(Chrono(self->core_.options.head_timeout));
          }
          self->buffer_.commit(got);
          self->ReadHead();
        });
  }

  void ParseHead(size_t head_bytes) {
    const std::string_view head = buffered().substr(0, head_bytes);
    if (head.size() > core_.options.head_bytes_max) return Refuse({431, "head: too large"});
    const RequestHeadLimits limits{.header_count_max = core_.options.header_count_max};
    if (const auto refusal = CheckRequestHead(head, limits)) return Refuse(*refusal);
    parser_.emplace();
    parser_->header_limit(Narrow<uint32_t>(core_.options.head_bytes_max));
    parser_->body_limit(core_.options.body_bytes_max);
    ErrorCode error;
    buffer_.consume(parser_->put(asio::buffer(head.data(), head.size()), error));
    if (error) return RefuseError(error);
    state_ = State::kReadingBody;
    stream_.expires_after(Chrono(core_.options.body_timeout));
    const bool expected = parser_->get().count(http::field::expect) != 0;
    if (!expected || parser_->is_done() || buffer_.size() != 0) return ReadBody();
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = shared_from_this()](ErrorCode error, size_t) {
                        if (self->state_ == State::kClosed) return;
                        if (error) return self->Close();
                        self->ReadBody();
                      });
  }

  void ReadBody() {
    if (parser_->is_done()) return Dispatch();
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](ErrorCode error, size_t) {
                       if (self->state_ == State::kClosed) return;
                       if (error) return self->RefuseError(error);
                       self->Dispatch();
                     });
  }

  void Dispatch();

  void RefuseError(ErrorCode error) {
    if (error == http::error::body_limit) return Refuse({413, "body: too large"});
    if (error == http::error::header_limit) return Refuse({431, "head: too large"});
    if (error == http::error::buffer_overflow) return Refuse({400, "chunk: too long a head"});
    // What the parser says is wrong is the client's fault; the rest is the connection's end.
    if (error.category() == make_error_code(http::error::bad_value).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return Refuse({400, "not HTTP"});
    }
    Close();
  }

  void Refuse(const HttpRefusal& refusal) {
    ++core_.refused;
    state_ = State::kHandling;
    keep_alive_ = false;
    linger_ = true;
    Answer({.status = refusal.status,
            .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
            .body = std::string(refusal.reason) + "\n"});
  }

  // The head of an answer; without a length the body comes as chunks, or ends with the connection.
  std::string HeadText(const HttpResponse& response, bool keep_alive,
                       std::optional<size_t> body_bytes) {
    std::string text =
        fmt::format("HTTP/1.1 {} {}\r\n", response.status, StatusText(response.status));
    for (const HttpHeader& header : response.headers) {
      fmt::format_to(std::back_inserter(text), "{}: {}\r\n", header.name, header.value);
    }
    if (body_bytes.has_value()) {
      fmt::format_to(std::back_inserter(text), "Content-Length: {}\r\n", *body_bytes);
    } else if (chunked_) {
      text += "Transfer-Encoding: chunked\r\n";
    }
    text += keep_alive ? (chunked_ ? "\r\n" : "Connection: keep-alive\r\n\r\n")
                       : "Connection: close\r\n\r\n";
    return text;
  }

  void AppendPiece(std::string_view bytes, std::string& out) const {
    if (!chunked_) {
      out += bytes;
    } else {
      fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
      out.append(bytes).append("\r\n");
    }
  }

  void WriteAnswer() {
    if (no_body_) body_.clear();
    stream_.expires_after(Chrono(core_.options.write_timeout));
    const std::array buffers = {asio::buffer(std::as_const(head_)),
                                asio::buffer(std::as_const(body_))};
    asio::async_write(stream_, buffers, [self = shared_from_this()](ErrorCode error, size_t) {
      if (self->state_ == State::kClosed) return;
      if (error) return self->Close();
      self->Answered();
    });
  }

  void Answered() {
    head_ = std::string();
    body_ = std::string();
    if (!keep_alive_ || core_.stopping) return linger_ ? Linger() : EndConnection();
    state_ = State::kReadingHead;
    if (buffer_.size() == 0) {
      buffer_.shrink_to_fit();
      stream_.expires_after(Chrono(core_.options.idle_timeout));
    } else {
      stream_.expires_after(Chrono(core_.options.head_timeout));
    }
    ReadHead();
  }

  void EndConnection() {
    ErrorCode ignored;  // The client has gone already; then nobody misses the end.
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    // Bytes that nobody read would make the kernel reset the connection, and the answer with it.
    if (buffer_.size() != 0 || stream_.socket().available(ignored) != 0) return Linger();
    Close();
  }

  void Linger() {
    state_ = State::kLingering;
    ErrorCode ignored;  // As above.
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLingerTime);
    buffer_.consume(buffer_.size());
    DiscardSome();
  }

  void DiscardSome() {
    stream_.async_read_some(buffer_.prepare(kReadBytes),
                            [self = shared_from_this()](ErrorCode error, size_t got) {
                              if (self->state_ == State::kClosed) return;
                              self->discarded_ += got;
                              if (error || self->discarded_ > kLingerBytesMax) return self->Close();
                              self->DiscardSome();
                            });
  }

  // A reader that goes shows only in reading.
  void WatchReader() {
    stream_.async_read_some(
        buffer_.prepare(kFirstReadBytes), [self = shared_from_this()](ErrorCode error, size_t got) {
          if (self->state_ != State::kStreaming) return;
          self->buffer_.commit(got);
          if (error || self->buffer_.size() > self->core_.options.head_bytes_max) {
            return self->Close();
          }
          self->WatchReader();
        });
  }

  void SendWaiting() {
    std::optional<std::string> bytes = events_->TakeForSending();
    if (bytes.has_value() && bytes->empty()) return;
    writing_ = true;
    head_.clear();
    if (bytes.has_value()) {
      AppendPiece(*bytes, head_);
    } else {
      last_piece_ = true;
      if (chunked_) head_ = "0\r\n\r\n";
    }
    WritePiece();
  }

  void WritePiece() {
    stream_.expires_after(Chrono(core_.options.write_timeout));
    asio::async_write(stream_, asio::buffer(std::as_const(head_)),
                      [self = shared_from_this()](ErrorCode error, size_t) {
                        if (self->state_ != State::kStreaming) return;
                        if (error) return self->Close();
                        self->PieceWritten();
                      });
  }

  void PieceWritten() {
    writing_ = false;
    head_ = std::string();
    if (last_piece_) return EndStream();
    events_->Sent();
    Woken();
  }

  void EndStream() {
    ErrorCode ignored;  // The reader may be gone; the end is the same.
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    Close();
  }

  Core& core_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  State state_ = State::kReadingHead;
  std::optional<http::request_parser<http::string_body>> parser_;
  bool keep_alive_ = false, chunked_ = true, no_body_ = false, linger_ = false;
  std::string head_, body_;  // being written
  size_t discarded_ = 0;
  std::shared_ptr<EventStream> events_;  // last owner: who writes to it
  bool writing_ = false, last_piece_ = false;
};

class Reply final : public HttpReply {
 public:
  Reply(std::shared_ptr<Gate> gate, std::weak_ptr<Connection> connection, size_t buffer_bytes_max)
      : gate_(std::move(gate)),
        connection_(std::move(connection)),
        buffer_bytes_max_(buffer_bytes_max) {}
  ~Reply() override {
    if (!used_) Send({.status = 500});
  }

  void Send(HttpResponse response) override {
    if (used_.exchange(true)) return;
    gate_->Post([connection = connection_, response = std::move(response)]() mutable {
      if (const auto live = connection.lock()) live->Answer(std::move(response));
    });
  }

  std::shared_ptr<HttpEventStream> Stream(HttpResponse head) override {
    CHECK(!used_.exchange(true));
    auto events =
        std::make_shared<EventStream>(buffer_bytes_max_, [gate = gate_, connection = connection_] {
          gate->Post([connection] {
            if (const auto live = connection.lock()) live->Woken();
          });
        });
    gate_->Post([connection = connection_, head = std::move(head), events]() mutable {
      if (const auto live = connection.lock()) {
        live->BeginStream(std::move(head), std::move(events));
      } else {
        events->Close();
        events->RunCallbacks();
      }
    });
    return events;
  }

 private:
  const std::shared_ptr<Gate> gate_;
  const std::weak_ptr<Connection> connection_;
  const size_t buffer_bytes_max_;
  std::atomic<bool> used_ = false;
};

void Connection::Dispatch() {
  const auto& message = parser_->get();
  HttpRequest request{.method = std::string(message.method_string()),
                      .target = std::string(message.target())};
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  request.body = std::move(parser_->get().body());
  keep_alive_ = parser_->keep_alive() && !core_.stopping;
  chunked_ = message.version() >= 11;
  no_body_ = request.method == "HEAD";
  parser_.reset();
  state_ = State::kHandling;
  stream_.expires_never();
  bool other_method = false;
  const HttpRoute* const route = core_.routes.Find(request.method, request.target, other_method);
  if (route == nullptr) {
    ++core_.refused;
    return Answer({.status = other_method ? 405 : 404,
                   .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
                   .body = other_method ? "Method Not Allowed\n" : "Not Found\n"});
  }
  ++core_.requests;
  route->handler(request, std::make_shared<Reply>(core_.gate, weak_from_this(),
                                                  core_.options.stream_buffer_bytes_max));
}

class BeastServer final : public HttpServer {
 public:
  BeastServer(const HttpServerOptions& options, std::vector<HttpRoute> routes)
      : gate_(std::make_shared<Gate>(loop_)),
        core_{.options = options,
              .routes = Routes(std::move(routes)),
              .gate = gate_,
              .connection_closed = [this] { FinishWhenEmpty(); }},
        acceptor_(loop_),
        retry_(loop_),
        grace_(loop_) {}
  ~BeastServer() override { Stop(absl::ZeroDuration()); }

  Status Listen() {
    ErrorCode error;
    const auto address = asio::ip::make_address(core_.options.address, error);
    if (error) return Invalid("HTTP server: {} is no numeric address", core_.options.address);
    const Tcp::endpoint endpoint(address, core_.options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(Tcp::acceptor::max_listen_connections, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    if (error) {
      return Unavailable(Detail::kIo, "HTTP server: cannot listen on {} port {}: {}",
                         core_.options.address, core_.options.port, error.message());
    }
    return absl::OkStatus();
  }

  void Serve() override {
    CHECK(!thread_.joinable());
    Accept();
    thread_ = std::thread([this] { loop_.run(); });
  }

  uint16_t port() const override { return port_; }

  HttpServerStats Stats() const override {
    return {.connections = core_.open,
            .streams = core_.streams,
            .requests = core_.requests,
            .refused = core_.refused,
            .slow_readers = core_.slow_readers};
  }

  void Stop(absl::Duration grace) override {
    if (!thread_.joinable()) return;
    gate_->Post([this, grace] { BeginStop(grace); });
    thread_.join();
    gate_->Shut();
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](ErrorCode error, Tcp::socket socket) {
      if (core_.stopping) return;
      if (error) {
        retry_.expires_after(kAcceptRetry);
        return retry_.async_wait([this](ErrorCode) {
          if (!core_.stopping) Accept();
        });
      }
      Greet(std::move(socket));
      Accept();
    });
  }

  void Greet(Tcp::socket socket) {
    ErrorCode ignored;  // Without it answers are only later.
    socket.set_option(Tcp::no_delay(true), ignored);
    if (core_.open >= core_.options.connections_max) {
      ++core_.refused;
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(kTooMany.data(), kTooMany.size()), ignored);
      return;
    }
    ++core_.open;
    const auto connection = std::make_shared<Connection>(core_, std::move(socket));
    core_.connections.insert(connection);
    connection->Start();
  }

  void BeginStop(absl::Duration grace) {
    core_.stopping = true;
    ErrorCode ignored;  // It accepts nothing more, closed or not.
    acceptor_.close(ignored);
    retry_.cancel();
    const auto open = core_.connections;
    for (const auto& connection : open) connection->Finish();
    if (core_.connections.empty()) return;
    grace_.expires_after(Chrono(grace));
    grace_.async_wait([this](ErrorCode error) {
      if (error) return;
      const auto left = core_.connections;
      for (const auto& connection : left) connection->Close();
    });
  }

  void FinishWhenEmpty() {
    if (core_.stopping && core_.connections.empty()) grace_.cancel();
  }

  asio::io_context loop_{1};
  const std::shared_ptr<Gate> gate_;  // last owner: the last reply
  Core core_;
  Tcp::acceptor acceptor_;
  asio::steady_timer retry_, grace_;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpServerOptions& options,
                                                         std::vector<HttpRoute> routes) {
  if (options.head_bytes_max > kHeadBytesLimit) {
    return Invalid("HTTP server: head_bytes_max {} is over {}", options.head_bytes_max,
                   kHeadBytesLimit);
  }
  auto server = std::make_unique<BeastServer>(options, std::move(routes));
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace holdfast
