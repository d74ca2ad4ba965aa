// EtcdClient: calls to whichever of several gateways answers, with a token and a deadline. It never
// sends a write a second time once it may have arrived.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/json.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "meta/backends/etcd.h"
#include "meta/http/transport.h"

namespace holdfast {

struct EtcdOptions {
  std::vector<HttpEndpoint> endpoints;  // members of one cluster; at least one
  std::string prefix = "/v3";           // of the version
  std::string user, password;           // empty: no user
  // Watches: after so long without a word the stream is opened anew, at another endpoint.
  absl::Duration watch_idle_max = absl::Seconds(10);
  // Watches: the pause before a stream that failed is tried again doubles between these.
  absl::Duration watch_retry_min = absl::Milliseconds(50);
  absl::Duration watch_retry_max = absl::Seconds(5);
};

// Threads: any.
class EtcdClient {
 public:
  enum class Kind {
    kRead,   // repeated elsewhere until it is answered
    kWrite,  // repeated only where it certainly never happened
  };

  // Borrows all of them; they outlive it. Needs: at least one endpoint
  EtcdClient(HttpTransport& transport, Clock& clock, const EtcdOptions& options);

  // The answer's object. `deadline` is on the clock.
  // Errors: as EtcdAnswer; a read is never an unknown outcome
  //         kFailedPrecondition  kForeign: a read was answered by another cluster, or as of before
  //                              what was seen already; of a write that is an unknown outcome
  StatusOr<Json> Call(const EtcdCall& call, Kind kind, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(mu_);

  // A watch, at an endpoint of its own choice. Errors: as HttpTransport, EtcdAnswer
  StatusOr<HttpStreamStart> Open(const std::string& body, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The server refused the token that went with a watch.
  void ForgetToken() ABSL_LOCKS_EXCLUDED(mu_);
  // The endpoint that Open chose serves no more.
  void AvoidEndpoint() ABSL_LOCKS_EXCLUDED(mu_);

  Clock& clock() { return clock_; }

 private:
  struct Attempt {
    HttpEndpoint endpoint;
    size_t index = 0;
    std::string token;
  };
  // Where to go next, with a token if one is needed.
  StatusOr<Attempt> NextAttempt(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<std::string> Authenticate(const HttpEndpoint& endpoint, absl::Duration timeout);
  void Avoid(size_t index) ABSL_LOCKS_EXCLUDED(mu_);
  HttpRequest RequestOf(std::string_view path, std::string body, const std::string& token) const;
  // Whether the answer belongs to what was seen before it was asked for.
  Status Check(const EtcdCall& call, const Json& answer, uint64_t revision_before)
      ABSL_LOCKS_EXCLUDED(mu_);

  HttpTransport& transport_;
  Clock& clock_;
  const EtcdOptions options_;
  Mutex mu_;  // Never held across a call of the transport.
  size_t preferred_ ABSL_GUARDED_BY(mu_) = 0;
  std::string token_ ABSL_GUARDED_BY(mu_);
  bool auth_is_off_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t cluster_id_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t revision_ ABSL_GUARDED_BY(mu_) = 0;  // newest that a read or write was answered at
};

}  // namespace holdfast
