#include "meta/etcd_client.h"

#include <algorithm>
#include <utility>

#include "journal/base/check.h"
#include "meta/http/outcome.h"

namespace holdfast {

EtcdClient::EtcdClient(HttpTransport& transport, Clock& clock, const EtcdOptions& options)
    : transport_(transport), clock_(clock), options_(options) {
  CHECK(!options_.endpoints.empty());
}

StatusOr<Json> EtcdClient::Call(const EtcdCall& call, Kind kind, absl::Duration deadline) {
  Status last = Unavailable(Detail::kNone, "etcd: no time left");
  bool renewed = false;  // the token, which is done once
  for (size_t tries_left = options_.endpoints.size(); tries_left > 0; --tries_left) {
    // Each endpoint that may still be needed has its share of the time.
    const absl::Duration share = (deadline - clock_.Now()) / static_cast<int64_t>(tries_left);
    if (share <= absl::ZeroDuration()) break;
    const StatusOr<Attempt> attempt = NextAttempt(clock_.Now() + share);
    if (!attempt.ok()) {
      last = attempt.status();
      if (!absl::IsUnavailable(last)) break;
      continue;
    }
    uint64_t revision_before;
    {
      MutexLock lock(mu_);
      revision_before = revision_;
    }
    const StatusOr<HttpResponse> response =
        transport_.Send(attempt->endpoint, RequestOf(call.path, call.body, attempt->token), share);
    StatusOr<Json> answer = response.ok() ? EtcdAnswer(*response) : response.status();
    if (answer.ok()) {
      const Status same = Check(call, *answer, revision_before);
      if (same.ok()) return answer;
      if (kind == Kind::kRead) return AsRead(same);
      // Something was written, somewhere.
      return Unavailable(Detail::kUnknownOutcome, "{}", Message(same));
    }
    last = answer.status();
    if (absl::IsUnauthenticated(last) && !options_.user.empty() && !std::exchange(renewed, true)) {
      ForgetToken();
      ++tries_left;  // It was refused, so it never happened.
      continue;
    }
    if (NeverSent(last) || OutcomeUnknown(last)) Avoid(attempt->index);
    if (OutcomeUnknown(last) && kind == Kind::kWrite) return last;
    if (!absl::IsUnavailable(last)) return last;
  }
  return AsRead(last);
}

StatusOr<HttpStreamStart> EtcdClient::Open(const std::string& body, absl::Duration deadline) {
  ASSIGN_OR_RETURN(const Attempt attempt, NextAttempt(deadline));
  StatusOr<HttpStreamStart> start = transport_.Open(
      attempt.endpoint, RequestOf("/watch", body, attempt.token), deadline - clock_.Now());
  if (!start.ok()) {
    Avoid(attempt.index);
    return AsRead(start.status());
  }
  if (start->head.status != 200) {
    Avoid(attempt.index);
    if (start->head.status == 401) ForgetToken();
    return AsRead(EtcdAnswer(start->head).status());
  }
  return start;
}

void EtcdClient::ForgetToken() {
  MutexLock lock(mu_);
  token_.clear();
  auth_is_off_ = false;
}

void EtcdClient::AvoidEndpoint() {
  MutexLock lock(mu_);
  preferred_ = (preferred_ + 1) % options_.endpoints.size();
}

void EtcdClient::Avoid(size_t index) {
  MutexLock lock(mu_);
  if (preferred_ == index) preferred_ = (index + 1) % options_.endpoints.size();
}

HttpRequest EtcdClient::RequestOf(std::string_view path, std::string body,
                                  const std::string& token) const {
  HttpRequest request{.method = "POST",
                      .target = options_.prefix + std::string(path),
                      .headers = {{"Content-Type", "application/json"}},
                      .body = std::move(body)};
  // The token goes bare: etcd takes no scheme before it.
  if (!token.empty()) request.headers.push_back({"Authorization", token});
  return request;
}

StatusOr<EtcdClient::Attempt> EtcdClient::NextAttempt(absl::Duration deadline) {
  Attempt attempt;
  {
    MutexLock lock(mu_);
    attempt.index = preferred_;
    attempt.endpoint = options_.endpoints[preferred_];
    attempt.token = token_;
    if (options_.user.empty() || auth_is_off_ || !token_.empty()) return attempt;
  }
  StatusOr<std::string> token = Authenticate(attempt.endpoint, deadline - clock_.Now());
  if (!token.ok() && !SaysAuthIsOff(token.status())) {
    if (absl::IsUnavailable(token.status())) Avoid(attempt.index);
    return AsRead(token.status());
  }
  MutexLock lock(mu_);
  auth_is_off_ = !token.ok();
  if (token.ok()) token_ = attempt.token = *std::move(token);
  return attempt;
}

StatusOr<std::string> EtcdClient::Authenticate(const HttpEndpoint& endpoint,
                                               absl::Duration timeout) {
  const EtcdCall call = EtcdAuthenticate(options_.user, options_.password);
  ASSIGN_OR_RETURN(const HttpResponse response,
                   transport_.Send(endpoint, RequestOf(call.path, call.body, ""), timeout));
  ASSIGN_OR_RETURN(const Json answer, EtcdAnswer(response));
  return ReadEtcdToken(answer);
}

Status EtcdClient::Check(const EtcdCall& call, const Json& answer, uint64_t revision_before) {
  // A keep-alive is a stream of one object. Leases are served without agreement, so their revision
  // may lag behind.
  const bool lease = call.path.starts_with("/lease/");
  const Json* const result = answer.Find("result");
  ASSIGN_OR_RETURN(const EtcdHeader header, ReadEtcdHeader(result != nullptr ? *result : answer));
  MutexLock lock(mu_);
  if (cluster_id_ == 0) cluster_id_ = header.cluster_id;
  if (header.cluster_id != cluster_id_) {
    return WrongState(Detail::kForeign, "etcd: the answer is cluster {:x}'s, not that of {:x}",
                      header.cluster_id, cluster_id_);
  }
  if (lease) return absl::OkStatus();
  if (header.revision < revision_before) {
    return WrongState(Detail::kForeign,
                      "etcd: revision {} after {} was seen: it has lost its state, or is another",
                      header.revision, revision_before);
  }
  revision_ = std::max(revision_, header.revision);
  return absl::OkStatus();
}

}  // namespace holdfast
