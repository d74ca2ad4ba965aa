// EventStream: what waits between the writers of a stream and the connection that sends it. The
// connection is told through a callback, so this knows no socket.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "journal/base/mutex.h"
#include "meta/http/server.h"

namespace holdfast {

class EventStream final : public HttpEventStream {
 public:
  // `wake` says that the connection should look: there is something to send, the end, or a callback
  // to run. Any thread that uses the stream calls it, never with the lock held.
  EventStream(size_t buffer_bytes_max, std::function<void()> wake)
      : buffer_bytes_max_(buffer_bytes_max), wake_(std::move(wake)) {}

  bool Write(std::string_view bytes) override;
  void End() override;
  void OnClosed(std::function<void()> closed) override;
  void OnDrained(std::function<void()> drained) override;

  // The connection's side, on the server's thread.

  // Everything that waits, which now counts as in flight; nullopt if the body has ended.
  std::optional<std::string> TakeForSending();
  // What was in flight has been handed on.
  void Sent();
  // More came than a slow reader may leave waiting: close the connection.
  bool overrun();
  // Nothing more goes out.
  void Close();
  // Runs what is due: closed, or drained.
  void RunCallbacks();

 private:
  const size_t buffer_bytes_max_;
  const std::function<void()> wake_;
  Mutex mu_;
  std::string waiting_ ABSL_GUARDED_BY(mu_);
  size_t in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;  // told to send, and nothing taken yet
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool overrun_ ABSL_GUARDED_BY(mu_) = false;
  bool drained_due_ ABSL_GUARDED_BY(mu_) = false;
  // Only moved while the lock is held; called and destroyed without it.
  std::function<void()> on_closed_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_drained_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
