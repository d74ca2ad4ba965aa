#include "meta/http/beast_connection.h"

#include <boost/beast/http/status.hpp>
#include <boost/beast/http/verb.hpp>
#include <utility>

#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "meta/http/parse_from.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr size_t kFirstReadBytes = 512;  // An idle connection holds no more.
constexpr size_t kReadBytes = 4096;
constexpr size_t kBodyBufferBytes = size_t{64} << 10;
// How long and how much is still taken from a client that is told to go, so that it can read why.
constexpr absl::Duration kLingerTime = absl::Seconds(2);
constexpr size_t kLingerBytesMax = size_t{1} << 20;
constexpr std::string_view kNotTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 23\r\n"
    "Connection: close\r\n\r\nthis port expects TLS\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view StatusText(int status) {
  const beast::string_view text =
      http::obsolete_reason(http::int_to_status(Narrow<unsigned>(status)));
  return {text.data(), text.size()};
}

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

}  // namespace

Connection::Connection(ServerCore& core, Wire::Tcp::socket socket)
    : core_(core),
      wire_(std::move(socket)),
      limit_(wire_.socket().get_executor()),
      buffer_(core.options.head_bytes_max + kBodyBufferBytes) {}

void Connection::Start() {
  if (core_.tls == nullptr) {
    Within(core_.options.head_timeout);
    return ReadHead();
  }
  state_ = State::kShaking;
  Within(core_.options.handshake_timeout);
  wire_.Secure(std::make_unique<TlsSession>(*core_.tls),
               [self = shared_from_this()](ErrorCode error) {
                 if (self->state_ == State::kShaking) self->Shaken(error);
               });
}

void Connection::Shaken(ErrorCode error) {
  if (!error) {
    state_ = State::kReadingHead;
    Within(core_.options.head_timeout);
    return ReadHead();
  }
  ++core_.refused;
  if (wire_.tls()->peer_speaks_http()) {
    ErrorCode ignored;  // Whoever does not hear why sees the end.
    wire_.socket().write_some(asio::buffer(kNotTls.data(), kNotTls.size()), ignored);
  }
  Close();
}

void Connection::Within(absl::Duration time) {
  limit_.expires_after(absl::ToChronoNanoseconds(time));
  // A limit that was over already when another one was set is no limit any more.
  limit_.async_wait([self = shared_from_this(), set = ++limits_set_](ErrorCode error) {
    if (error || set != self->limits_set_) return;
    if (self->state_ == State::kShaking) ++self->core_.refused;
    self->Close();
  });
}

void Connection::WithoutLimit() {
  ++limits_set_;
  limit_.cancel();
}

void Connection::Answer(HttpResponse response) {
  if (state_ != State::kHandling) return;
  state_ = State::kAnswering;
  keep_alive_ = keep_alive_ && !core_.stopping;
  head_ = HeadText(response, keep_alive_, response.body.size());
  body_ = std::move(response.body);
  WriteAnswer();
}

void Connection::BeginStream(HttpResponse head, std::shared_ptr<EventStream> events) {
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
  WithoutLimit();
  WatchReader();
  writing_ = true;
  WritePiece();
  if (core_.stopping) events_->End();
}

void Connection::Woken() {
  if (events_ == nullptr) return;
  if (state_ == State::kStreaming && events_->overrun()) {
    ++core_.slow_readers;
    return Close();
  }
  events_->RunCallbacks();
  if (state_ == State::kStreaming && !writing_) SendWaiting();
}

void Connection::Finish() {
  if (state_ == State::kShaking) return Close();
  if (state_ == State::kReadingHead && buffer_.size() == 0) return Close();
  if (state_ == State::kStreaming) events_->End();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  const bool streaming = state_ == State::kStreaming;
  state_ = State::kClosed;
  WithoutLimit();
  wire_.Close();
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

std::string_view Connection::buffered() const {
  const asio::const_buffer bytes = buffer_.cdata();
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

void Connection::ReadHead() {
  if (const size_t bytes = RequestHeadBytes(buffered()); bytes != 0) return ParseHead(bytes);
  if (const auto refusal = CheckPartialHead(buffered(), core_.options.head_bytes_max)) {
    return Refuse(*refusal);
  }
  const size_t bytes = buffer_.size() == 0 ? kFirstReadBytes : kReadBytes;
  wire_.ReadSome(buffer_.prepare(bytes), [self = shared_from_this()](ErrorCode error, size_t got) {
    if (self->state_ == State::kClosed) return;
    if (error) return self->Close();
    if (self->buffer_.size() == 0) {
      self->Within(self->core_.options.head_timeout);
    }
    self->buffer_.commit(got);
    self->ReadHead();
  });
}

void Connection::ParseHead(size_t head_bytes) {
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
  parser_->eager(true);
  state_ = State::kReadingBody;
  Within(core_.options.body_timeout);
  const bool expected = parser_->get().count(http::field::expect) != 0;
  if (!expected || parser_->is_done() || buffer_.size() != 0) return ReadBody();
  wire_.Write(kContinue, {}, [self = shared_from_this()](ErrorCode error, size_t) {
    if (self->state_ == State::kClosed) return;
    if (error) return self->Close();
    self->ReadBody();
  });
}

void Connection::ReadBody() {
  if (parser_->is_done()) return Dispatch();
  ParseFrom<true>(
      {wire_, buffer_, *parser_}, [this] { return parser_->is_done(); },
      [self = shared_from_this()](ErrorCode error) {
        if (self->state_ == State::kClosed) return;
        if (error) return self->RefuseError(error);
        self->Dispatch();
      });
}

void Connection::RefuseError(ErrorCode error) {
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

void Connection::Refuse(const HttpRefusal& refusal) {
  ++core_.refused;
  state_ = State::kHandling;
  keep_alive_ = false;
  linger_ = true;
  Answer({.status = refusal.status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::string(refusal.reason) + "\n"});
}

std::string Connection::HeadText(const HttpResponse& response, bool keep_alive,
                                 std::optional<size_t> body_bytes) const {
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

void Connection::AppendPiece(std::string_view bytes, std::string& out) const {
  if (!chunked_) {
    out += bytes;
  } else {
    fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
    out.append(bytes).append("\r\n");
  }
}

void Connection::WriteAnswer() {
  if (no_body_) body_.clear();
  Within(core_.options.write_timeout);
  wire_.Write(head_, body_, [self = shared_from_this()](ErrorCode error, size_t) {
    if (self->state_ == State::kClosed) return;
    if (error) return self->Close();
    self->Answered();
  });
}

void Connection::Answered() {
  head_ = std::string();
  body_ = std::string();
  if (!keep_alive_ || core_.stopping) return linger_ ? Linger() : EndConnection();
  state_ = State::kReadingHead;
  if (buffer_.size() == 0) {
    buffer_.shrink_to_fit();
    Within(core_.options.idle_timeout);
  } else {
    Within(core_.options.head_timeout);
  }
  ReadHead();
}

void Connection::EndConnection() {
  wire_.EndWriting();
  // Bytes that nobody read would make the kernel reset the connection, and the answer with it.
  if (buffer_.size() != 0 || wire_.HasUnread()) return Linger();
  Close();
}

void Connection::Linger() {
  state_ = State::kLingering;
  wire_.EndWriting();
  Within(kLingerTime);
  buffer_.consume(buffer_.size());
  DiscardSome();
}

void Connection::DiscardSome() {
  wire_.ReadSome(buffer_.prepare(kReadBytes),
                 [self = shared_from_this()](ErrorCode error, size_t got) {
                   if (self->state_ == State::kClosed) return;
                   self->discarded_ += got;
                   if (error || self->discarded_ > kLingerBytesMax) return self->Close();
                   self->DiscardSome();
                 });
}

void Connection::WatchReader() {
  wire_.ReadSome(buffer_.prepare(kFirstReadBytes),
                 [self = shared_from_this()](ErrorCode error, size_t got) {
                   if (self->state_ != State::kStreaming) return;
                   self->buffer_.commit(got);
                   if (error || self->buffer_.size() > self->core_.options.head_bytes_max) {
                     return self->Close();
                   }
                   self->WatchReader();
                 });
}

void Connection::SendWaiting() {
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

void Connection::WritePiece() {
  Within(core_.options.write_timeout);
  wire_.Write(head_, {}, [self = shared_from_this()](ErrorCode error, size_t) {
    if (self->state_ != State::kStreaming) return;
    if (error) return self->Close();
    self->PieceWritten();
  });
}

void Connection::PieceWritten() {
  writing_ = false;
  head_ = std::string();
  if (last_piece_) return EndStream();
  events_->Sent();
  Woken();
}

void Connection::EndStream() {
  wire_.EndWriting();
  Close();
}

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
  WithoutLimit();
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

}  // namespace holdfast
