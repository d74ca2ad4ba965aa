#include "runtime/dispatch_loop.h"

#include <utility>

#include "journal/base/check.h"

namespace holdfast {

Status CheckOptions(const DispatcherOptions& options) {
  const auto positive = [](const char* name, absl::Duration value) {
    return value > absl::ZeroDuration() && value <= absl::Hours(24 * 365)
               ? absl::OkStatus()
               : Invalid("{} is {}: it must be over 0 and at most a year", name,
                         absl::FormatDuration(value));
  };
  RETURN_IF_ERROR(positive("ack_timeout", options.ack_timeout));
  RETURN_IF_ERROR(positive("backoff_min", options.backoff_min));
  RETURN_IF_ERROR(positive("backoff_max", options.backoff_max));
  RETURN_IF_ERROR(positive("tick_interval", options.tick_interval));
  if (options.backoff_max < options.backoff_min) {
    return Invalid("backoff_max is below backoff_min");
  }
  if (options.attempts_max == 0) return Invalid("attempts_max is 0: it must be at least 1");
  if (!(options.backoff_jitter >= 0 && options.backoff_jitter <= 1)) {
    return Invalid("backoff_jitter is {}: it must be from 0 to 1", options.backoff_jitter);
  }
  if (options.recover_spread < absl::ZeroDuration() ||
      options.recover_spread > absl::Hours(24 * 365)) {
    return Invalid("recover_spread is {}: it must be from 0 to a year",
                   absl::FormatDuration(options.recover_spread));
  }
  if (options.in_flight_per_client == 0 || options.in_flight_total == 0) {
    return Invalid("in_flight_per_client and in_flight_total must be at least 1");
  }
  if (options.audit_one_in == 0) return Invalid("audit_one_in is 0: it must be at least 1");
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Dispatcher>> Dispatcher::Make(Engine& engine, Rng& rng,
                                                       const DispatcherOptions& options,
                                                       const DispatcherHost& host) {
  RETURN_IF_ERROR(CheckOptions(options));
  return std::make_unique<DispatchLoop>(engine, rng, options, host);
}

DispatchLoop::DispatchLoop(Engine& engine, Rng& rng, const DispatcherOptions& options,
                           const DispatcherHost& host)
    : tick_interval_(options.tick_interval),
      clock_(options.clock != nullptr ? *options.clock : RealClock()),
      core_(engine, rng, options, host) {}

DispatchLoop::~DispatchLoop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void DispatchLoop::Start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Loop(); });
}

void DispatchLoop::Loop() {
  for (;;) {
    core_.Tick();
    MutexLock lock(mu_);
    if (stopping_) return;
    wake_.WaitFor(mu_, clock_.Until(clock_.Now() + tick_interval_));
    if (stopping_) return;
  }
}

}  // namespace holdfast
