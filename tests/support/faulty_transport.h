// FaultyTransport: a network that loses, delays and invents, on top of a real one or of none.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "journal/base/mutex.h"
#include "meta/http/transport.h"

namespace holdfast {

// Threads: any; the hooks are set before the calls that they are for.
class FaultyTransport final : public HttpTransport {
 public:
  using Result = StatusOr<HttpResponse>;
  // `real` is borrowed and outlives it; null: `before` answers everything.
  explicit FaultyTransport(HttpTransport* real) : real_(real) {}

  // Answers in place of the network; none: the request goes on.
  std::function<std::optional<Result>(const HttpEndpoint&, const HttpRequest&)> before;
  // What becomes of the real answer.
  std::function<Result(const HttpRequest&, Result)> after;
  // In place of opening a stream.
  std::function<std::optional<StatusOr<HttpStreamStart>>(const HttpEndpoint&, const HttpRequest&)>
      before_open;

  Result Send(const HttpEndpoint& endpoint, const HttpRequest& request,
              absl::Duration timeout) override {
    Note(endpoint, request);
    if (before) {
      if (auto result = before(endpoint, request); result.has_value()) return *std::move(result);
    }
    Result result = real_->Send(endpoint, request, timeout);
    return after ? after(request, std::move(result)) : result;
  }
  StatusOr<HttpStreamStart> Open(const HttpEndpoint& endpoint, const HttpRequest& request,
                                 absl::Duration timeout) override {
    Note(endpoint, request);
    if (before_open) {
      if (auto start = before_open(endpoint, request); start.has_value()) return *std::move(start);
    }
    return real_->Open(endpoint, request, timeout);
  }

  struct Sent {
    HttpEndpoint endpoint;
    HttpRequest request;
  };
  std::vector<Sent> sent() {
    MutexLock lock(mu_);
    return sent_;
  }
  size_t CountSent(std::string_view target) {
    MutexLock lock(mu_);
    size_t count = 0;
    for (const Sent& one : sent_) count += one.request.target == target ? 1 : 0;
    return count;
  }

  static Status Lost() { return Unavailable(Detail::kUnknownOutcome, "lost on the way back"); }
  static Status NotSent() { return Unavailable(Detail::kNone, "nobody listens"); }

 private:
  void Note(const HttpEndpoint& endpoint, const HttpRequest& request) {
    MutexLock lock(mu_);
    sent_.push_back({endpoint, request});
  }

  HttpTransport* const real_;
  Mutex mu_;
  std::vector<Sent> sent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
