// NacosClient: requests to whichever of several servers answers, with a token and a deadline. It
// never sends a write a second time once it may have arrived.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "meta/backends/nacos.h"
#include "meta/http/transport.h"

namespace holdfast {

struct NacosOptions {
  std::vector<HttpEndpoint> endpoints;  // servers of one Nacos; at least one
  NacosPlace place;
  std::string user, password;  // empty: no user
  // Entries of one page of a search. In v1 the values come with it, 64 MiB at most.
  size_t page_entries = 100;
  // Watches: how often everything is listed, which is how a new key is found.
  absl::Duration look_interval = absl::Seconds(2);
};

// Threads: any.
class NacosClient {
 public:
  enum class Kind {
    kRead,   // repeated elsewhere until it is answered
    kWrite,  // repeated only where it certainly never happened
  };

  // Borrows `transport` and `clock`; they outlive it. Needs: at least one endpoint
  NacosClient(HttpTransport& transport, Clock& clock, const NacosOptions& options);

  // An answer of any status, but for one that says that the server itself failed to a read, and one
  // to a token that it does not know. `deadline` is on the clock.
  // Errors: as HttpTransport::Send; a read is never an unknown outcome
  //         kUnauthenticated, kPermissionDenied  it does not know the user
  StatusOr<HttpResponse> Call(const HttpRequest& request, Kind kind, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Once, at the server that is preferred: of a request that waits there.
  StatusOr<HttpResponse> Wait(const HttpRequest& request, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(mu_);

  Clock& clock() { return clock_; }
  const NacosOptions& options() const { return options_; }

 private:
  struct Attempt {
    HttpEndpoint endpoint;
    size_t index = 0;
    std::string token;
  };
  // Where to go next, with a token if one is needed.
  StatusOr<Attempt> NextAttempt(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<HttpResponse> Send(const Attempt& attempt, HttpRequest request, absl::Duration timeout);
  void Avoid(size_t index) ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(const std::string& token) ABSL_LOCKS_EXCLUDED(mu_);

  HttpTransport& transport_;
  Clock& clock_;
  const NacosOptions options_;
  Mutex mu_;  // Never held across a call of the transport.
  size_t preferred_ ABSL_GUARDED_BY(mu_) = 0;
  std::string token_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
