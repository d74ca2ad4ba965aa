#include "meta/http/beast_exchange.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "journal/base/bytes.h"
#include "meta/http/parse_from.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr size_t kReadBytes = size_t{16} << 10;

std::string HeadText(const HttpEndpoint& endpoint, const HttpRequest& request) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.target,
                                 EndpointText(endpoint));
  for (const HttpHeader& header : request.headers) {
    fmt::format_to(std::back_inserter(text), "{}: {}\r\n", header.name, header.value);
  }
  fmt::format_to(std::back_inserter(text), "Content-Length: {}\r\n\r\n", request.body.size());
  return text;
}

Status NotAnswered(const HttpEndpoint& endpoint, std::string_view why) {
  return Unavailable(Detail::kUnknownOutcome, "{}: sent, but not answered: {}",
                     EndpointUrl(endpoint), why);
}

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

template <typename Message>
HttpResponse HeadOf(const Message& message) {
  HttpResponse head{.status = Narrow<int>(message.result_int()), .headers = {}, .body = {}};
  for (const auto& field : message) {
    head.headers.push_back(
        {std::string(View(field.name_string())), std::string(View(field.value()))});
  }
  return head;
}

}  // namespace

Status NotSent(const HttpEndpoint& endpoint, std::string_view why) {
  return Unavailable(Detail::kNone, "{}: not sent: {}", EndpointUrl(endpoint), why);
}

// ---- the connections that wait

std::unique_ptr<Wire> ClientCore::TakeIdle(const HttpEndpoint& endpoint) {
  std::erase_if(idle, [](Idle& one) { return !one.wire->Quiet(); });
  for (auto one = idle.rbegin(); one != idle.rend(); ++one) {
    if (one->endpoint != endpoint) continue;
    std::unique_ptr<Wire> wire = std::move(one->wire);
    idle.erase(std::next(one).base());
    return wire;
  }
  return nullptr;
}

void ClientCore::Keep(const HttpEndpoint& endpoint, std::unique_ptr<Wire> wire) {
  if (options.idle_connections_max == 0) return;
  if (idle.size() >= options.idle_connections_max) idle.pop_front();
  idle.push_back({endpoint, std::move(wire)});
}

// ---- any exchange

Exchange::Exchange(ClientCore& core, const HttpEndpoint& endpoint, const HttpRequest& request)
    : core_(core),
      endpoint_(endpoint),
      buffer_(kAnswerHeadBytesLimit + (size_t{64} << 10)),
      head_(HeadText(endpoint, request)),
      body_(request.body),
      resolver_(core.loop),
      timer_(core.loop) {}

void Exchange::Start(absl::Duration timeout) {
  timer_.expires_after(absl::ToChronoNanoseconds(timeout));
  timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    // It may be on its way already when the answer ends the exchange.
    if (!error && !self->done_) self->Fail("no answer in time");
  });
  wire_ = core_.TakeIdle(endpoint_);
  if (wire_ != nullptr) return Write();
  wire_ = std::make_unique<Wire>(core_.loop);
  ErrorCode error;
  const auto address = asio::ip::make_address(endpoint_.host, error);
  if (!error) return Connect({Tcp::endpoint(address, endpoint_.port)});
  resolver_.async_resolve(
      endpoint_.host, std::to_string(endpoint_.port), Tcp::resolver::numeric_service,
      [self = shared_from_this()](ErrorCode error, const Tcp::resolver::results_type& found) {
        if (self->done_) return;
        if (error) return self->Fail(error.message());
        self->Connect({found.begin(), found.end()});
      });
}

Status Exchange::Wait() {
  MutexLock lock(mu_);
  while (!outcome_.has_value()) finished_.Wait(mu_);
  return *std::move(outcome_);
}

void Exchange::Fail(std::string_view why) {
  // A server that refuses this client's certificate says so behind the handshake, when a request
  // may be on its way already, and reads none.
  const bool refused = wire_->tls() != nullptr && wire_->tls()->refused();
  Finish(sent_ && !refused ? NotAnswered(endpoint_, why) : NotSent(endpoint_, why));
}

void Exchange::Finish(Status outcome) {
  if (std::exchange(done_, true)) return;
  timer_.cancel();
  if (!outcome.ok()) wire_->Close();
  resolver_.cancel();
  MutexLock lock(mu_);
  outcome_ = std::move(outcome);
  finished_.NotifyAll();
}

void Exchange::Connect(std::vector<Tcp::endpoint> addresses) {
  addresses_ = std::move(addresses);
  asio::async_connect(wire_->socket(), addresses_,
                      [self = shared_from_this()](ErrorCode error, const Tcp::endpoint&) {
                        if (self->done_) return;
                        if (error) return self->Fail(error.message());
                        self->Connected();
                      });
}

void Exchange::Connected() {
  ErrorCode ignored;  // Without it requests are only later.
  wire_->socket().set_option(Tcp::no_delay(true), ignored);
  if (!endpoint_.tls) return Write();
  wire_->Secure(std::make_unique<TlsSession>(*core_.tls, endpoint_.host),
                [this, self = shared_from_this()](ErrorCode error) {
                  if (done_) return;
                  if (error) return Fail(error);
                  Write();
                });
}

void Exchange::Write() {
  sent_ = true;
  wire_->Write(head_, body_, [self = shared_from_this()](ErrorCode error, size_t) {
    // A server that refuses may answer before it has read everything, and then close: what it said
    // counts, so a failed write is not the end yet.
    if (self->done_) return;
    if (error && error != asio::error::broken_pipe && error != asio::error::connection_reset) {
      return self->Fail(error);
    }
    self->ReadAnswer();
  });
}

// ---- one with a whole answer

WholeExchange::WholeExchange(ClientCore& core, const HttpEndpoint& endpoint,
                             const HttpRequest& request)
    : Exchange(core, endpoint, request) {
  parser_.header_limit(Narrow<uint32_t>(core.options.head_bytes_max));
  parser_.body_limit(core.options.body_bytes_max);
  parser_.skip(request.method == "HEAD");
  parser_.eager(true);
}

void WholeExchange::ReadAnswer() {
  ParseFrom<false>(
      {*wire_, buffer_, parser_}, [this] { return parser_.is_done(); },
      [this, self = shared_from_this()](ErrorCode error) {
        if (done_) return;
        if (error) return Fail(error);
        Read();
      });
}

void WholeExchange::Read() {
  response_ = HeadOf(parser_.get());
  // Nobody asked for one, and what follows it would pass for the next answer.
  if (response_.status < 200) return Fail("an interim answer");
  response_.body = std::move(parser_.get().body());
  // What comes behind the answer belongs to no request.
  if (parser_.keep_alive() && buffer_.size() == 0 && wire_->Quiet()) {
    core_.Keep(endpoint_, std::move(wire_));
  } else {
    wire_->Close();
  }
  Finish(absl::OkStatus());
}

// ---- one whose answer goes on

StreamExchange::StreamExchange(ClientCore& core, const HttpEndpoint& endpoint,
                               const HttpRequest& request)
    : Exchange(core, endpoint, request) {
  parser_.header_limit(Narrow<uint32_t>(core.options.head_bytes_max));
  parser_.body_limit(boost::none);
}

StatusOr<std::string> StreamExchange::ReadSome(absl::Duration timeout, Clock& clock) {
  const absl::Duration deadline = clock.Now() + timeout;
  MutexLock lock(stream_mu_);
  while (waiting_.empty() && end_ == StatusCode::kOk) {
    const absl::Duration left = clock.Until(deadline);
    if (left <= absl::ZeroDuration()) {
      return MakeStatus(StatusCode::kDeadlineExceeded, Detail::kNone,
                        fmt::format("{}: nothing came", EndpointUrl(endpoint_)));
    }
    arrived_.WaitFor(stream_mu_, left);
  }
  if (waiting_.empty()) return MakeStatus(end_, Detail::kNone, end_reason_);
  if (std::exchange(paused_, false)) {
    asio::post(core_.loop, [self = Self()] { self->ReadOn(); });
  }
  return std::exchange(waiting_, std::string());
}

void StreamExchange::Close() {
  EndWith(StatusCode::kUnavailable, "the stream was closed");
  asio::post(core_.loop, [self = Self()] { self->wire_->Close(); });
}

void StreamExchange::ReadAnswer() {
  ParseFrom<false>(
      {*wire_, buffer_, parser_}, [this] { return parser_.is_header_done(); },
      [self = Self()](ErrorCode error) {
        if (self->done_) return;
        if (error) return self->Fail(error);
        self->answer_head_ = HeadOf(self->parser_.get());
        self->Finish(absl::OkStatus());
        self->ReadOn();
      });
}

void StreamExchange::ReadOn() {
  if (parser_.is_done()) {
    return EndWith(StatusCode::kOutOfRange, "the stream has ended");
  }
  piece_.resize(kReadBytes);
  parser_.get().body().data = piece_.data();
  parser_.get().body().size = piece_.size();
  ParseFrom<false>(
      {*wire_, buffer_, parser_}, [] { return true; },
      [self = Self()](ErrorCode error) {
        if (error == http::error::need_buffer) error = {};
        const size_t got = self->piece_.size() - self->parser_.get().body().size;
        if (self->Arrived(got)) {
          if (!error) return self->ReadOn();
        } else if (!error) {
          return;
        }
        self->EndWith(StatusCode::kUnavailable, "the stream broke off: " + self->wire_->Why(error));
      });
}

bool StreamExchange::Arrived(size_t bytes) {
  MutexLock lock(stream_mu_);
  waiting_.append(piece_, 0, bytes);
  paused_ = waiting_.size() >= core_.options.stream_buffer_bytes_max;
  if (bytes != 0) arrived_.NotifyAll();
  return !paused_;
}

void StreamExchange::EndWith(StatusCode code, std::string_view reason) {
  MutexLock lock(stream_mu_);
  if (end_ == StatusCode::kOk) {
    end_ = code;
    end_reason_ = fmt::format("{}: {}", EndpointUrl(endpoint_), reason);
  }
  arrived_.NotifyAll();
}

}  // namespace holdfast
