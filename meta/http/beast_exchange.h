// Exchange: one request of the client and its answer, whole or as a stream, on the loop's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "meta/http/tls.h"
#include "meta/http/transport.h"
#include "meta/http/wire.h"

namespace holdfast {

inline constexpr size_t kAnswerHeadBytesLimit = size_t{32} << 10;  // Beast counts in 16 bits.

// What the exchanges share. Only the loop's thread touches the idle connections.
struct ClientCore {
  struct Idle {
    HttpEndpoint endpoint;
    std::unique_ptr<Wire> wire;
  };

  HttpClientOptions options;
  std::unique_ptr<TlsContext> tls;  // null: plain endpoints only
  boost::asio::io_context loop{1};
  std::deque<Idle> idle;  // oldest first

  // Null: there is none.
  std::unique_ptr<Wire> TakeIdle(const HttpEndpoint& endpoint);
  void Keep(const HttpEndpoint& endpoint, std::unique_ptr<Wire> wire);
};

// Nobody has read a byte of it, so it has not happened.
Status NotSent(const HttpEndpoint& endpoint, std::string_view why);

// Lives on the loop's thread; the caller waits at Wait().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  // Borrows `core`, which outlives every exchange.
  Exchange(ClientCore& core, const HttpEndpoint& endpoint, const HttpRequest& request);
  virtual ~Exchange() = default;

  void Start(absl::Duration timeout);
  // Once.
  Status Wait();

 protected:
  using ErrorCode = Wire::ErrorCode;

  // Reads the answer and ends with Finish or Fail.
  virtual void ReadAnswer() = 0;
  void Fail(std::string_view why);
  void Fail(ErrorCode error) { Fail(wire_->Why(error)); }
  void Finish(Status outcome);

  ClientCore& core_;
  const HttpEndpoint endpoint_;
  std::unique_ptr<Wire> wire_;
  boost::beast::flat_buffer buffer_;
  bool done_ = false;

 private:
  using Tcp = boost::asio::ip::tcp;

  void Connect(std::vector<Tcp::endpoint> addresses);
  void Connected();
  void Write();

  std::string head_, body_;  // being sent
  Tcp::resolver resolver_;
  boost::asio::steady_timer timer_;
  std::vector<Tcp::endpoint> addresses_;
  bool sent_ = false;  // a byte may have left
  Mutex mu_;
  CondVar finished_;
  std::optional<Status> outcome_ ABSL_GUARDED_BY(mu_);
};

class WholeExchange final : public Exchange {
 public:
  WholeExchange(ClientCore& core, const HttpEndpoint& endpoint, const HttpRequest& request);
  // After Wait() said OK.
  HttpResponse& response() { return response_; }

 private:
  void ReadAnswer() override;
  void Read();

  boost::beast::http::response_parser<boost::beast::http::string_body> parser_;
  HttpResponse response_;
};

// An exchange whose answer goes on. The reader waits in ReadSome(), the loop reads ahead of it.
class StreamExchange final : public Exchange {
 public:
  StreamExchange(ClientCore& core, const HttpEndpoint& endpoint, const HttpRequest& request);
  // After Wait() said OK.
  HttpResponse& head() { return answer_head_; }

  // As HttpStream. Any thread.
  StatusOr<std::string> ReadSome(absl::Duration timeout, Clock& clock);
  void Close();

 private:
  std::shared_ptr<StreamExchange> Self() {
    return std::static_pointer_cast<StreamExchange>(shared_from_this());
  }
  void ReadAnswer() override;
  void ReadOn();
  // Hands the bytes to the reader. False: it has enough for now, and says when to go on.
  bool Arrived(size_t bytes);
  void EndWith(StatusCode code, std::string_view reason);

  boost::beast::http::response_parser<boost::beast::http::buffer_body> parser_;
  HttpResponse answer_head_;
  std::string piece_;
  Mutex stream_mu_;
  CondVar arrived_;
  std::string waiting_ ABSL_GUARDED_BY(stream_mu_);
  bool paused_ ABSL_GUARDED_BY(stream_mu_) = false;
  StatusCode end_ ABSL_GUARDED_BY(stream_mu_) = StatusCode::kOk;  // there is more to come
  std::string end_reason_ ABSL_GUARDED_BY(stream_mu_);
};

}  // namespace holdfast
