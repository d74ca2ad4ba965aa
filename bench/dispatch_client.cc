#include "bench/dispatch_client.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "bench/stopwatch.h"
#include "bench/workload.h"
#include "journal/base/seeded_rng.h"

namespace holdfast::bench {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);
// So long without any news means that something is lost: longer than any timeout of a plan.
constexpr int64_t kLostNanos = 30'000'000'000;

}  // namespace

DispatchClient::DispatchClient(const ClientPlan& plan)
    : in_flight_(std::max<uint64_t>(plan.in_flight, 1)),
      retries_(plan.retries),
      dlq_(plan.dlq),
      places_(std::bit_ceil(2 * in_flight_)),
      targets_{{.client = "billing-" + std::to_string(plan.number), .epoch = 1}} {
  event_.source = {.topic = "orders.created", .incarnation = 1, .partition = plan.number};
  event_.event.assign(kEventBytes, 'e');
}

DispatchClient::Fate DispatchClient::FateOf(uint64_t offset) const {
  if (retries_ == 0 && dlq_ == 0) return Fate::kAcked;
  const double at = static_cast<double>(SeededRng(offset).Next() >> 11) * 0x1.0p-53;
  if (at < dlq_) return Fate::kNeverAcked;
  return at < dlq_ + retries_ ? Fate::kNackedOnce : Fate::kAcked;
}

void DispatchClient::RunClosed(Dispatcher& dispatcher, const std::atomic<bool>& stop,
                               std::latch& filled) {
  thread_ = std::this_thread::get_id();
  bool was_full = false;
  while (!stop.load(std::memory_order_relaxed)) {
    const uint64_t back = back_.load(std::memory_order_acquire);
    if (delivered_ - back < in_flight_) {
      if (!DeliverOne(dispatcher, NowNanos())) break;
      continue;
    }
    if (!std::exchange(was_full, true)) filled.count_down();
    if (AnswerOne(dispatcher)) continue;
    WaitForNews(back);
    if (failed()) break;
  }
  if (!was_full) filled.count_down();
  Drain(dispatcher);
}

void DispatchClient::RunOpen(Dispatcher& dispatcher, const Schedule& schedule) {
  thread_ = std::this_thread::get_id();
  for (uint64_t event = 0; event < schedule.count; ++event) {
    const int64_t start = schedule.begin + static_cast<int64_t>(static_cast<double>(event) * 1e9 /
                                                                schedule.per_second);
    // A sleep would be late by more than the distance of two events.
    while (NowNanos() < start) {
      if (!AnswerOne(dispatcher)) std::this_thread::yield();
    }
    uint64_t back = back_.load(std::memory_order_acquire);
    while (delivered_ - back >= in_flight_ && !failed()) {
      if (!AnswerOne(dispatcher)) WaitForNews(back);
      back = back_.load(std::memory_order_acquire);
    }
    if (failed() || !DeliverOne(dispatcher, start)) break;
    while (AnswerOne(dispatcher)) continue;
  }
  Drain(dispatcher);
}

// A place that is taken belongs to an event that stays longer than its neighbours: its number is
// left out, which a source may do. There are free ones: half of them at least.
bool DispatchClient::DeliverOne(Dispatcher& dispatcher, int64_t start) {
  while (PlaceOf(next_).state.load(std::memory_order_acquire) != kFree) ++next_;
  Place& place = PlaceOf(next_);
  place.offset = next_;
  place.start = start;
  place.state.store(kOut, std::memory_order_release);
  event_.offset = next_;
  std::memcpy(event_.event.data(), &next_, sizeof next_);
  ++delivered_;
  const StatusOr<DeliverResult> result = dispatcher.Deliver(event_, targets_);
  if (!result.ok()) {
    --delivered_;
    Note(result.status());
    return false;
  }
  ++next_;
  return true;
}

void DispatchClient::Push(const Delivery& delivery) {
  const Pushed pushed{.offset = delivery.offset.value_or(0), .attempt = delivery.attempt};
  if (std::this_thread::get_id() == thread_) {
    PlaceOf(pushed.offset).id = delivery.id;
    inbox_.push_back(pushed);
    return;
  }
  MutexLock lock(mu_);
  elsewhere_.push_back(pushed);
  pushed_elsewhere_.store(true, std::memory_order_release);
  if (waiting_) news_.NotifyOne();
}

// False if there is nothing to answer.
bool DispatchClient::AnswerOne(Dispatcher& dispatcher) {
  if (pushed_elsewhere_.load(std::memory_order_acquire)) {
    MutexLock lock(mu_);
    inbox_.insert(inbox_.end(), elsewhere_.begin(), elsewhere_.end());
    elsewhere_.clear();
    pushed_elsewhere_.store(false, std::memory_order_relaxed);
  }
  if (inbox_.empty()) return false;
  const Pushed pushed = inbox_.front();
  inbox_.pop_front();
  Place& place = PlaceOf(pushed.offset);
  const Fate fate = FateOf(pushed.offset);
  // Pushed again although it is over, or one that nobody answers.
  if (place.offset != pushed.offset || fate == Fate::kNeverAcked) return true;
  if (fate == Fate::kNackedOnce && pushed.attempt == 1) {
    const Status nacked = dispatcher.Nack({.id = place.id, .client = name(), .epoch = 1});
    // It may have been given up meanwhile.
    if (nacked.code() != StatusCode::kNotFound &&
        nacked.code() != StatusCode::kFailedPrecondition) {
      Note(nacked);
    }
    return true;
  }
  Acknowledge(dispatcher, place);
  return true;
}

void DispatchClient::Acknowledge(Dispatcher& dispatcher, Place& place) {
  uint8_t state = kOut;
  if (!place.state.compare_exchange_strong(state, kOut | kAsked)) return;  // or given up
  asked_.store(asked_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  dispatcher.Ack({.id = place.id, .client = name(), .epoch = 1},
                 [this, offset = place.offset](const Status& status) { Answered(offset, status); });
}

void DispatchClient::Answered(uint64_t offset, const Status& status) {
  const bool given_up =
      status.code() == StatusCode::kNotFound || status.code() == StatusCode::kFailedPrecondition;
  if (!status.ok() && !given_up) return Note(status);
  Place& place = PlaceOf(offset);
  const uint8_t news = status.ok() ? kAnswered : kAnswered | kRefused;
  const uint8_t state = place.state.fetch_or(news);
  if ((state & kAnswered) != 0) ++twice_;
  if ((state & kTold) != 0) Free(place, state | news);
}

void DispatchClient::Finished(uint64_t offset) {
  Place& place = PlaceOf(offset);
  const uint8_t state = place.state.fetch_or(kTold);
  if (place.offset != offset || state == kFree || (state & kTold) != 0) {
    ++twice_;
    return;
  }
  if ((state & kAsked) == 0 || (state & kAnswered) != 0) Free(place, state | kTold);
}

void DispatchClient::Free(Place& place, uint8_t state) {
  const int64_t start = place.start, now = NowNanos();
  place.state.store(kFree, std::memory_order_release);
  MutexLock lock(mu_);
  if ((state & kAsked) != 0 && (state & kRefused) == 0) {
    ++acked_;
    if (measuring_.load(std::memory_order_relaxed)) {
      latency_.Add(now - start);
      pace_.Add(static_cast<double>(start) * 1e-9, static_cast<double>(now) * 1e-9);
    }
  } else {
    ++dead_lettered_;
  }
  back_.store(back_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (waiting_) news_.NotifyOne();
}

// For more than `back` events that are over, or a push by another thread; not for ever.
void DispatchClient::WaitForNews(uint64_t back) {
  MutexLock lock(mu_);
  if (back_.load(std::memory_order_relaxed) != back || !elsewhere_.empty()) return;
  waiting_ = true;
  news_.WaitFor(mu_, kLook);
  waiting_ = false;
}

void DispatchClient::Drain(Dispatcher& dispatcher) {
  uint64_t back = back_.load(std::memory_order_acquire);
  int64_t changed = NowNanos();
  while (back < delivered_ && !failed()) {
    if (!AnswerOne(dispatcher)) WaitForNews(back);
    const uint64_t before = std::exchange(back, back_.load(std::memory_order_acquire));
    if (back != before) changed = NowNanos();
    if (NowNanos() - changed > kLostNanos) return;  // End() tells how many are missing.
  }
}

void DispatchClient::Note(const Status& status) {
  MutexLock lock(mu_);
  if (status_.ok()) status_ = status;
}

bool DispatchClient::failed() {
  MutexLock lock(mu_);
  return !status_.ok();
}

ClientEnd DispatchClient::End() {
  MutexLock lock(mu_);
  return {.delivered = delivered_,
          .acked = acked_,
          .dead_lettered = dead_lettered_,
          .next = next_,
          .twice = twice_,
          .status = status_};
}

}  // namespace holdfast::bench
