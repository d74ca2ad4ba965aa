// DispatchClient: one client of the dispatcher's benchmark, with a source of its own. One thread
// delivers the events of that source, takes what is pushed and acknowledges it, and of every event
// it is known whether it came to exactly one end.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "bench/latency_histogram.h"
#include "bench/line_fit.h"
#include "holdfast/dispatcher.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"

namespace holdfast::bench {

struct ClientPlan {
  uint64_t number = 0;     // among the clients; also the partition of its source
  uint64_t in_flight = 1;  // events that are out at a time, at most
  double retries = 0;      // share of events that is nacked once
  double dlq = 0;          // share of events that is never acknowledged
};

// Events at even distances from `begin` (of NowNanos) on.
struct Schedule {
  int64_t begin = 0;
  double per_second = 0;
  uint64_t count = 0;
};

// What has become of the events, once the thread has ended.
struct ClientEnd {
  uint64_t delivered = 0;
  uint64_t acked = 0;          // answered OK and told to the source
  uint64_t dead_lettered = 0;  // told to the source without that
  uint64_t next = 0;           // the offset behind the last event
  uint64_t twice = 0;          // events that came to an end they had come to already
  Status status;               // the first that a call met
};

class DispatchClient final : public Channel {
 public:
  explicit DispatchClient(const ClientPlan& plan);

  // --- The thread of this client ---
  // As many in flight as the plan says, until `stop`; then waits for the last. `filled` is counted
  // down when so many are in flight for the first time. `dispatcher` is borrowed until it returns.
  void RunClosed(Dispatcher& dispatcher, const std::atomic<bool>& stop, std::latch& filled);
  // Each event when the schedule says, or as soon after it as the calls before have returned.
  void RunOpen(Dispatcher& dispatcher, const Schedule& schedule);

  // --- Any thread ---
  void Push(const Delivery& delivery) override;
  // The source of this client is told of the end of its event.
  void Finished(uint64_t offset);
  // From now on, or no longer, what is acknowledged counts for latency() and pace().
  void Measure(bool on) { measuring_.store(on, std::memory_order_relaxed); }
  uint64_t asked() const { return asked_.load(std::memory_order_relaxed); }

  // --- Once the thread has ended ---
  ClientEnd End();
  const std::string& name() const { return targets_[0].client; }
  // From the start of an event (where it was to start by the schedule) to its acknowledgement.
  const LatencyHistogram& latency() const { return latency_; }
  // When events were acknowledged, by when they started; in seconds.
  const LineFit& pace() const { return pace_; }

 private:
  enum class Fate { kAcked, kNackedOnce, kNeverAcked };
  // Where one event stands. It is over when its source was told and, if it was acknowledged, that
  // was answered; whoever brings the last of these frees the place.
  enum State : uint8_t { kFree = 0, kOut = 1, kAsked = 2, kAnswered = 4, kTold = 8, kRefused = 16 };
  struct Place {
    std::atomic<uint8_t> state{kFree};
    uint64_t offset = 0;
    int64_t start = 0;
    std::string id;
  };
  struct Pushed {
    uint64_t offset;
    uint32_t attempt;
  };

  Fate FateOf(uint64_t offset) const;
  Place& PlaceOf(uint64_t offset) { return places_[offset & (places_.size() - 1)]; }
  bool DeliverOne(Dispatcher& dispatcher, int64_t start);
  bool AnswerOne(Dispatcher& dispatcher);
  void Acknowledge(Dispatcher& dispatcher, Place& place);
  void Answered(uint64_t offset, const Status& status);
  void Free(Place& place, uint8_t state);
  void WaitForNews(uint64_t back) ABSL_LOCKS_EXCLUDED(mu_);
  void Drain(Dispatcher& dispatcher);
  void Note(const Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  bool failed() ABSL_LOCKS_EXCLUDED(mu_);

  const uint64_t in_flight_;
  const double retries_, dlq_;
  std::atomic<bool> measuring_{false};
  std::vector<Place> places_;  // a ring, by offset; twice what can be in flight

  // Of the thread alone.
  std::thread::id thread_;
  SourceEvent event_;
  const std::vector<Target> targets_;
  std::deque<Pushed> inbox_;
  uint64_t next_ = 0, delivered_ = 0;

  std::atomic<uint64_t> asked_{0};  // acknowledgements
  std::atomic<uint64_t> back_{0};   // events that are over
  std::atomic<uint64_t> twice_{0};
  std::atomic<bool> pushed_elsewhere_{false};

  Mutex mu_;
  CondVar news_;
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Pushed> elsewhere_ ABSL_GUARDED_BY(mu_);  // pushed by another thread
  uint64_t acked_ ABSL_GUARDED_BY(mu_) = 0, dead_lettered_ ABSL_GUARDED_BY(mu_) = 0;
  Status status_ ABSL_GUARDED_BY(mu_);
  LatencyHistogram latency_;  // Under mu_ until the thread has ended.
  LineFit pace_;              // As latency_.
};

}  // namespace holdfast::bench
