#include "meta/http/event_stream.h"

#include <utility>

namespace holdfast {

bool EventStream::Write(std::string_view bytes) {
  if (bytes.empty()) return true;
  bool overrun = false;
  {
    MutexLock lock(mu_);
    if (closed_ || ended_) return false;
    const size_t before = waiting_.size() + in_flight_;
    // One piece alone may be larger than the cap: it would not get through otherwise.
    overrun = before != 0 && before + bytes.size() > buffer_bytes_max_;
    if (overrun) {
      overrun_ = closed_ = true;
      waiting_ = std::string();
    } else {
      waiting_.append(bytes);
      if (std::exchange(woken_, true)) return true;
    }
  }
  wake_();
  return !overrun;
}

void EventStream::End() {
  {
    MutexLock lock(mu_);
    if (closed_ || std::exchange(ended_, true)) return;
    if (std::exchange(woken_, true)) return;
  }
  wake_();
}

void EventStream::OnClosed(std::function<void()> closed) {
  {
    MutexLock lock(mu_);
    on_closed_.swap(closed);
    if (!closed_) return;
  }
  wake_();
}

void EventStream::OnDrained(std::function<void()> drained) {
  MutexLock lock(mu_);
  if (!closed_) on_drained_.swap(drained);
}

std::optional<std::string> EventStream::TakeForSending() {
  MutexLock lock(mu_);
  woken_ = false;
  if (closed_) return std::string();
  if (waiting_.empty() && ended_) return std::nullopt;
  in_flight_ = waiting_.size();
  return std::exchange(waiting_, std::string());
}

void EventStream::Sent() {
  MutexLock lock(mu_);
  in_flight_ = 0;
  drained_due_ = waiting_.empty() && !ended_ && !closed_;
}

bool EventStream::overrun() {
  MutexLock lock(mu_);
  return overrun_;
}

void EventStream::Close() {
  MutexLock lock(mu_);
  closed_ = true;
  waiting_ = std::string();
}

void EventStream::RunCallbacks() {
  std::function<void()> closed, drained;
  bool is_closed = false;
  {
    MutexLock lock(mu_);
    is_closed = closed_;
    if (closed_) {
      closed.swap(on_closed_);
      drained.swap(on_drained_);  // It may hold the last reference to its caller.
    } else if (std::exchange(drained_due_, false)) {
      drained = std::exchange(on_drained_, nullptr);
    }
  }
  if (is_closed) {
    if (closed) closed();
  } else if (drained) {
    drained();
    MutexLock lock(mu_);
    if (!closed_ && !on_drained_) on_drained_.swap(drained);
  }
}

}  // namespace holdfast
