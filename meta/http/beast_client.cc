#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "holdfast/clock.h"
#include "journal/base/bytes.h"
#include "journal/base/check.h"
#include "journal/base/mutex.h"
#include "meta/http/transport.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kHeadBytesLimit = size_t{32} << 10;  // Beast counts a field's bytes in 16 bits.
constexpr size_t kReadBytes = size_t{16} << 10;

bool IsLineByte(char c) { return c == '\t' || static_cast<unsigned char>(c) >= ' '; }

// What a peer would read as something else than one request is not sent.
bool CanBeWritten(const HttpRequest& request) {
  const auto is_word = [](std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != ':'; });
  };
  const auto is_target = [](std::string_view text) {
    return text.starts_with('/') &&
           std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  };
  return is_word(request.method) && is_target(request.target) &&
         std::ranges::all_of(request.headers, [&](const HttpHeader& header) {
           return is_word(header.name) && std::ranges::all_of(header.value, IsLineByte);
         });
}

std::string HeadText(const HttpEndpoint& endpoint, const HttpRequest& request) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target,
                                 EndpointText(endpoint));
  for (const HttpHeader& header : request.headers) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", header.name, header.value);
  }
  fmt::format_to(std::back_inserter(text), "Content-Length: {}\r\n\r\n", request.body.size());
  return text;
}

Status NotSent(const HttpEndpoint& endpoint, std::string_view why) {
  return Unavailable(Detail::kNone, "{}: not sent: {}", EndpointText(endpoint), why);
}
Status NotAnswered(const HttpEndpoint& endpoint, std::string_view why) {
  return Unavailable(Detail::kUnknownOutcome, "{}: sent, but not answered: {}",
                     EndpointText(endpoint), why);
}

struct IdleConnection {
  HttpEndpoint endpoint;
  Tcp::socket socket;
};

// Nothing came and nobody closed it, as far as this side has heard.
bool StillOpen(Tcp::socket& socket) {
  char byte = 0;
  return ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

// What the exchanges share. Only the loop's thread touches the idle connections.
struct Core {
  HttpClientOptions options;
  asio::io_context loop{1};
  std::deque<IdleConnection> idle;  // oldest first

  std::optional<Tcp::socket> TakeIdle(const HttpEndpoint& endpoint) {
    std::erase_if(idle, [](IdleConnection& one) { return !StillOpen(one.socket); });
    for (auto one = idle.rbegin(); one != idle.rend(); ++one) {
      if (one->endpoint != endpoint) continue;
      Tcp::socket socket = std::move(one->socket);
      idle.erase(std::next(one).base());
      return socket;
    }
    return std::nullopt;
  }
  void Keep(const HttpEndpoint& endpoint, Tcp::socket socket) {
    if (options.idle_connections_max == 0) return;
    if (idle.size() >= options.idle_connections_max) idle.pop_front();
    idle.push_back({endpoint, std::move(socket)});
  }
};

// One request and its answer. Lives on the loop's thread; the caller waits at Wait().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Core& core, const HttpEndpoint& endpoint, const HttpRequest& request)
      : core_(core),
        endpoint_(endpoint),
        head_(HeadText(endpoint, request)),
        body_(request.body),
        socket_(core.loop),
        resolver_(core.loop),
        timer_(core.loop),
        buffer_(kHeadBytesLimit + (size_t{64} << 10)) {}
  virtual ~Exchange() = default;

  void Start(absl::Duration timeout) {
    timer_.expires_after(absl::ToChronoNanoseconds(timeout));
    timer_.async_wait([self = shared_from_this()](ErrorCode error) {
      if (!error) self->Fail("no answer in time");
    });
    if (std::optional<Tcp::socket> idle = core_.TakeIdle(endpoint_)) {
      socket_ = std::move(*idle);
      return Write();
    }
    ErrorCode error;
    const auto address = asio::ip::make_address(endpoint_.host, error);
    if (!error) return Connect(std::array{Tcp::endpoint(address, endpoint_.port)});
    resolver_.async_resolve(
        endpoint_.host, std::to_string(endpoint_.port), Tcp::resolver::numeric_service,
        [self = shared_from_this()](ErrorCode error, const Tcp::resolver::results_type& found) {
          if (self->done_) return;
          if (error) return self->Fail(error.message());
          std::vector<Tcp::endpoint> addresses(found.begin(), found.end());
          self->Connect(addresses);
        });
  }

  // Once.
  Status Wait() {
    MutexLock lock(mu_);
    while (!outcome_.has_value()) finished_.Wait(mu_);
    return *std::move(outcome_);
  }

 protected:
  // Reads the answer and ends with Finish or Fail.
  virtual void ReadAnswer() = 0;

  void Fail(std::string_view why) {
    Finish(sent_ ? NotAnswered(endpoint_, why) : NotSent(endpoint_, why));
  }

  void Finish(Status outcome) {
    if (std::exchange(done_, true)) return;
    timer_.cancel();
    if (!outcome.ok()) CloseSocket();
    resolver_.cancel();
    MutexLock lock(mu_);
    outcome_ = std::move(outcome);
    finished_.NotifyAll();
  }

  void CloseSocket() {
    ErrorCode ignored;  // Nothing is left to do about a socket that does not close.
    socket_.close(ignored);
  }

  Core& core_;  // Borrowed; outlives every exchange.
  const HttpEndpoint endpoint_;
  std::string head_, body_;  // being sent
  Tcp::socket socket_;
  Tcp::resolver resolver_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_;
  bool sent_ = false;  // a byte may have left
  bool done_ = false;

 private:
  template <typename Addresses>
  void Connect(Addresses addresses) {
    addresses_.assign(addresses.begin(), addresses.end());
    asio::async_connect(socket_, addresses_,
                        [self = shared_from_this()](ErrorCode error, const Tcp::endpoint&) {
                          if (self->done_) return;
                          if (error) return self->Fail(error.message());
                          ErrorCode ignored;  // Without it requests are only later.
                          self->socket_.set_option(Tcp::no_delay(true), ignored);
                          self->Write();
                        });
  }

  void Write() {
    sent_ = true;
    const std::array buffers = {asio::buffer(std::as_const(head_)),
                                asio::buffer(std::as_const(body_))};
    asio::async_write(socket_, buffers, [self = shared_from_this()](ErrorCode error, size_t) {
      // A server that refuses may answer before it has read everything, and then close: what it
      // said counts, so a failed write is not the end yet.
      if (self->done_) return;
      if (error && error != asio::error::broken_pipe && error != asio::error::connection_reset) {
        return self->Fail(error.message());
      }
      self->ReadAnswer();
    });
  }

  std::vector<Tcp::endpoint> addresses_;
  Mutex mu_;
  CondVar finished_;
  std::optional<Status> outcome_ ABSL_GUARDED_BY(mu_);
};

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

template <typename Message>
HttpResponse HeadOf(const Message& message) {
  HttpResponse head{.status = Narrow<int>(message.result_int()), .headers = {}, .body = {}};
  for (const auto& field : message) {
    head.headers.push_back(
        {std::string(View(field.name_string())), std::string(View(field.value()))});
  }
  return head;
}

class WholeExchange final : public Exchange {
 public:
  WholeExchange(Core& core, const HttpEndpoint& endpoint, const HttpRequest& request)
      : Exchange(core, endpoint, request) {
    parser_.header_limit(Narrow<uint32_t>(core.options.head_bytes_max));
    parser_.body_limit(core.options.body_bytes_max);
    parser_.skip(request.method == "HEAD");
  }
  // After Wait() said OK.
  HttpResponse& response() { return response_; }

 private:
  std::shared_ptr<WholeExchange> Self() {
    return std::static_pointer_cast<WholeExchange>(shared_from_this());
  }
  void ReadAnswer() override {
    http::async_read(socket_, buffer_, parser_, [self = Self()](ErrorCode error, size_t) {
      if (self->done_) return;
      if (error) return self->Fail(error.message());
      self->Read();
    });
  }
  void Read() {
    response_ = HeadOf(parser_.get());
    // Nobody asked for one, and what follows it would pass for the next answer.
    if (response_.status < 200) return Fail("an interim answer");
    response_.body = std::move(parser_.get().body());
    // What comes behind the answer belongs to no request.
    if (parser_.keep_alive() && buffer_.size() == 0 && StillOpen(socket_)) {
      core_.Keep(endpoint_, std::move(socket_));
    } else {
      CloseSocket();
    }
    Finish(absl::OkStatus());
  }

  http::response_parser<http::string_body> parser_;
  HttpResponse response_;
};

// An exchange whose answer goes on. The reader waits in Read(), the loop reads ahead of it.
class StreamExchange final : public Exchange {
 public:
  StreamExchange(Core& core, const HttpEndpoint& endpoint, const HttpRequest& request)
      : Exchange(core, endpoint, request) {
    parser_.header_limit(Narrow<uint32_t>(core.options.head_bytes_max));
    parser_.body_limit(boost::none);
  }
  // After Wait() said OK.
  HttpResponse& head() { return answer_head_; }

  StatusOr<std::string> ReadSome(absl::Duration timeout, Clock& clock) {
    const absl::Duration deadline = clock.Now() + timeout;
    MutexLock lock(stream_mu_);
    while (waiting_.empty() && end_ == StatusCode::kOk) {
      const absl::Duration left = clock.Until(deadline);
      if (left <= absl::ZeroDuration()) {
        return MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone,
                          fmt::format("{}: nothing came", EndpointText(endpoint_)));
      }
      arrived_.WaitFor(stream_mu_, left);
    }
    if (waiting_.empty()) return MakeStatus(end_, Detail::kNone, end_reason_);
    if (std::exchange(paused_, false)) {
      asio::post(core_.loop, [self = Self()] { self->ReadOn(); });
    }
    return std::exchange(waiting_, std::string());
  }

  void Close() {
    EndWith(StatusCode::kUnavailable, "the stream was closed");
    asio::post(core_.loop, [self = Self()] { self->CloseSocket(); });
  }

 private:
  std::shared_ptr<StreamExchange> Self() {
    return std::static_pointer_cast<StreamExchange>(shared_from_this());
  }

  void ReadAnswer() override {
    http::async_read_header(socket_, buffer_, parser_, [self = Self()](ErrorCode error, size_t) {
      if (self->done_) return;
      if (error) return self->Fail(error.message());
      self->answer_head_ = HeadOf(self->parser_.get());
      self->Finish(absl::OkStatus());
      self->ReadOn();
    });
  }

  void ReadOn() {
    if (parser_.is_done()) {
      return EndWith(StatusCode::kOutOfRange, "the stream has ended");
    }
    piece_.resize(kReadBytes);
    parser_.get().body().data = piece_.data();
    parser_.get().body().size = piece_.size();
    http::async_read_some(socket_, buffer_, parser_, [self = Self()](ErrorCode error, size_t) {
      if (error == http::error::need_buffer) error = {};
      const size_t got = self->piece_.size() - self->parser_.get().body().size;
      if (self->Arrived(got)) {
        if (!error) return self->ReadOn();
      } else if (!error) {
        return;
      }
      self->EndWith(StatusCode::kUnavailable, "the stream broke off: " + error.message());
    });
  }

  // Hands the bytes to the reader. False: it has enough for now, and says when to go on.
  bool Arrived(size_t bytes) {
    MutexLock lock(stream_mu_);
    waiting_.append(piece_, 0, bytes);
    paused_ = waiting_.size() >= core_.options.stream_buffer_bytes_max;
    if (bytes != 0) arrived_.NotifyAll();
    return !paused_;
  }

  void EndWith(StatusCode code, std::string_view reason) {
    MutexLock lock(stream_mu_);
    if (end_ == StatusCode::kOk) {
      end_ = code;
      end_reason_ = fmt::format("{}: {}", EndpointText(endpoint_), reason);
    }
    arrived_.NotifyAll();
  }

  http::response_parser<http::buffer_body> parser_;
  HttpResponse answer_head_;
  std::string piece_;
  Mutex stream_mu_;
  CondVar arrived_;
  std::string waiting_ ABSL_GUARDED_BY(stream_mu_);
  bool paused_ ABSL_GUARDED_BY(stream_mu_) = false;
  StatusCode end_ ABSL_GUARDED_BY(stream_mu_) = StatusCode::kOk;  // there is more to come
  std::string end_reason_ ABSL_GUARDED_BY(stream_mu_);
};

class BeastStream final : public HttpStream {
 public:
  BeastStream(std::shared_ptr<StreamExchange> exchange, Clock& clock)
      : exchange_(std::move(exchange)), clock_(clock) {}
  ~BeastStream() override { exchange_->Close(); }
  StatusOr<std::string> Read(absl::Duration timeout) override {
    return exchange_->ReadSome(timeout, clock_);
  }
  void Close() override { exchange_->Close(); }

 private:
  const std::shared_ptr<StreamExchange> exchange_;  // last owner: the loop's last operation
  Clock& clock_;                                    // Borrowed; lives for ever.
};

class BeastTransport final : public HttpTransport {
 public:
  explicit BeastTransport(const HttpClientOptions& options)
      : core_{.options = options}, work_(core_.loop.get_executor()) {
    thread_ = std::thread([this] { core_.loop.run(); });
  }
  ~BeastTransport() override {
    work_.reset();
    core_.loop.stop();
    thread_.join();
  }

  StatusOr<HttpResponse> Send(const HttpEndpoint& endpoint, const HttpRequest& request,
                              absl::Duration timeout) override {
    const auto exchange = std::make_shared<WholeExchange>(core_, endpoint, request);
    RETURN_IF_ERROR(Run(*exchange, endpoint, request, timeout));
    return std::move(exchange->response());
  }

  StatusOr<HttpStreamStart> Open(const HttpEndpoint& endpoint, const HttpRequest& request,
                                 absl::Duration timeout) override {
    const auto exchange = std::make_shared<StreamExchange>(core_, endpoint, request);
    RETURN_IF_ERROR(Run(*exchange, endpoint, request, timeout));
    return HttpStreamStart{.head = std::move(exchange->head()),
                           .stream = std::make_unique<BeastStream>(exchange, RealClock())};
  }

 private:
  Status Run(Exchange& exchange, const HttpEndpoint& endpoint, const HttpRequest& request,
             absl::Duration timeout) {
    CHECK(std::this_thread::get_id() != thread_.get_id());
    if (!CanBeWritten(request)) {
      return Invalid("{}: the request cannot be written as HTTP", EndpointText(endpoint));
    }
    if (timeout <= absl::ZeroDuration()) return NotSent(endpoint, "no time left");
    asio::post(core_.loop, [self = exchange.shared_from_this(), timeout] { self->Start(timeout); });
    return exchange.Wait();
  }

  Core core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<HttpTransport>> NewHttpTransport(const HttpClientOptions& options) {
  if (options.head_bytes_max > kHeadBytesLimit) {
    return Invalid("HTTP client: head_bytes_max {} is over {}", options.head_bytes_max,
                   kHeadBytesLimit);
  }
  return std::make_unique<BeastTransport>(options);
}

}  // namespace holdfast
