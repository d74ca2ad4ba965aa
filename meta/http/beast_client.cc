#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "holdfast/clock.h"
#include "journal/base/check.h"
#include "meta/http/beast_exchange.h"
#include "meta/http/transport.h"

namespace holdfast {
namespace {

namespace asio = boost::asio;

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
  BeastTransport(const HttpClientOptions& options, std::unique_ptr<TlsContext> tls)
      : core_{.options = options, .tls = std::move(tls)}, work_(core_.loop.get_executor()) {
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
      return Invalid("{}: the request cannot be written as HTTP", EndpointUrl(endpoint));
    }
    if (endpoint.tls && core_.tls == nullptr) {
      return Invalid("{}: this client was made without TLS", EndpointUrl(endpoint));
    }
    if (timeout <= absl::ZeroDuration()) return NotSent(endpoint, "no time left");
    asio::post(core_.loop, [self = exchange.shared_from_this(), timeout] { self->Start(timeout); });
    return exchange.Wait();
  }

  ClientCore core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<HttpTransport>> NewHttpTransport(const HttpClientOptions& options) {
  if (options.head_bytes_max > kAnswerHeadBytesLimit) {
    return Invalid("HTTP client: head_bytes_max {} is over {}", options.head_bytes_max,
                   kAnswerHeadBytesLimit);
  }
  std::unique_ptr<TlsContext> tls;
  if (options.tls.has_value()) {
    ASSIGN_OR_RETURN(tls, TlsContext::ForClient(*options.tls));
  }
  return std::make_unique<BeastTransport>(options, std::move(tls));
}

}  // namespace holdfast
