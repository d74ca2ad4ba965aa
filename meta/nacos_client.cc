#include "meta/nacos_client.h"

#include <utility>

#include "journal/base/check.h"
#include "meta/http/outcome.h"

namespace holdfast {
namespace {

bool WantsAnotherToken(const HttpResponse& response) {
  return response.status == 401 || response.status == 403;
}

}  // namespace

NacosClient::NacosClient(HttpTransport& transport, Clock& clock, const NacosOptions& options)
    : transport_(transport), clock_(clock), options_(options) {
  CHECK(!options_.endpoints.empty());
}

StatusOr<HttpResponse> NacosClient::Call(const HttpRequest& request, Kind kind,
                                         absl::Duration deadline) {
  Status last = Unavailable(Detail::kNone, "nacos: no time left");
  bool renewed = false;  // the token, which is done once
  for (size_t tries_left = options_.endpoints.size(); tries_left > 0; --tries_left) {
    // Each server that may still be needed has its share of the time.
    const absl::Duration share = (deadline - clock_.Now()) / static_cast<int64_t>(tries_left);
    if (share <= absl::ZeroDuration()) break;
    const StatusOr<Attempt> attempt = NextAttempt(clock_.Now() + share);
    if (!attempt.ok()) {
      last = attempt.status();
      if (!absl::IsUnavailable(last)) break;
      continue;
    }
    StatusOr<HttpResponse> response = Send(*attempt, request, share);
    if (response.ok() && WantsAnotherToken(*response) && !attempt->token.empty() &&
        !std::exchange(renewed, true)) {
      Forget(attempt->token);
      ++tries_left;  // It was refused, so it never happened.
      continue;
    }
    if (response.ok() && (kind == Kind::kWrite || response->status < 500)) return response;
    last = response.ok() ? Unavailable(Detail::kNone, "nacos: HTTP status {}", response->status)
                         : response.status();
    if (response.ok() || NeverSent(last) || OutcomeUnknown(last)) Avoid(attempt->index);
    if (OutcomeUnknown(last) && kind == Kind::kWrite) return last;
    if (!absl::IsUnavailable(last)) return last;
  }
  return AsRead(last);
}

StatusOr<HttpResponse> NacosClient::Wait(const HttpRequest& request, absl::Duration deadline) {
  ASSIGN_OR_RETURN(const Attempt attempt, NextAttempt(deadline));
  StatusOr<HttpResponse> response = Send(attempt, request, deadline - clock_.Now());
  if (response.ok() && WantsAnotherToken(*response)) Forget(attempt.token);
  if (!response.ok()) return AsRead(response.status());
  return response;
}

StatusOr<NacosClient::Attempt> NacosClient::NextAttempt(absl::Duration deadline) {
  Attempt attempt;
  {
    MutexLock lock(mu_);
    attempt.index = preferred_;
    attempt.endpoint = options_.endpoints[preferred_];
    attempt.token = token_;
    if (options_.user.empty() || !token_.empty()) return attempt;
  }
  const StatusOr<HttpResponse> response = transport_.Send(
      attempt.endpoint,
      NacosLogin(options_.place, {.name = options_.user, .password = options_.password}),
      deadline - clock_.Now());
  StatusOr<std::string> token = response.ok() ? ReadNacosToken(*response) : response.status();
  if (!token.ok()) {
    if (absl::IsUnavailable(token.status())) Avoid(attempt.index);
    return AsRead(token.status());
  }
  attempt.token = *std::move(token);
  MutexLock lock(mu_);
  token_ = attempt.token;
  return attempt;
}

StatusOr<HttpResponse> NacosClient::Send(const Attempt& attempt, HttpRequest request,
                                         absl::Duration timeout) {
  if (!attempt.token.empty()) AddNacosToken(options_.place.api, attempt.token, request);
  return transport_.Send(attempt.endpoint, request, timeout);
}

void NacosClient::Avoid(size_t index) {
  MutexLock lock(mu_);
  if (preferred_ == index) preferred_ = (index + 1) % options_.endpoints.size();
}

void NacosClient::Forget(const std::string& token) {
  MutexLock lock(mu_);
  if (token_ == token) token_.clear();
}

}  // namespace holdfast
