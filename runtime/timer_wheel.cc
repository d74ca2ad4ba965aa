#include "runtime/timer_wheel.h"

#include <algorithm>
#include <limits>

#include "journal/base/check.h"

namespace holdfast {

TimerWheel::TimerWheel(absl::Duration now)
    : now_(static_cast<uint64_t>(std::max(now, absl::ZeroDuration()) / kGrain)) {
  for (uint32_t list = 0; list < heads_.size(); ++list) {
    heads_[list].previous = heads_[list].next = kHeads + list;
  }
}

// Rounded up, so that no timer fires early. What lies beyond all rings waits in the last one.
uint64_t TimerWheel::TickAt(absl::Duration due) {
  if (due <= absl::ZeroDuration()) return 0;
  constexpr int64_t kGrainNanos = 16'000'000;
  static_assert(kGrain == absl::Nanoseconds(kGrainNanos));
  const int64_t nanos = absl::ToInt64Nanoseconds(due);  // at most 292 years: cheaper by far
  if (nanos < std::numeric_limits<int64_t>::max() - kGrainNanos) {
    return static_cast<uint64_t>((nanos + kGrainNanos - 1) / kGrainNanos);
  }
  due = std::min(due, kGrain * static_cast<int64_t>(kTickMax));
  const auto whole = static_cast<uint64_t>(due / kGrain);
  return due % kGrain > absl::ZeroDuration() ? whole + 1 : whole;
}

void TimerWheel::Set(Timer timer, absl::Duration due) {
  CHECK(timer < kHeads);
  if (timer >= nodes_.size()) nodes_.resize(timer + 1);
  Clear(timer);
  PlaceAt(timer, TickAt(due));
  ++size_;
}

void TimerWheel::Clear(Timer timer) {
  if (!IsSet(timer)) return;
  Unlink(timer);
  if (!far_.empty()) far_.erase(timer);
  --size_;
}

bool TimerWheel::IsSet(Timer timer) const {
  return timer < nodes_.size() && nodes_[timer].next != kNone;
}

// Time does not pass a timer that is set: it is due now or later.
uint64_t TimerWheel::TickOf(Timer timer) const {
  if (!far_.empty()) {
    const auto far = far_.find(timer);
    if (far != far_.end()) return far->second;
  }
  return now_ + (nodes_[timer].tick - static_cast<uint32_t>(now_));
}

bool TimerWheel::Turn(absl::Duration now, const Most& most, std::vector<Timer>& due) {
  const uint64_t end =
      std::max(now_, static_cast<uint64_t>(std::max(now, absl::ZeroDuration()) / kGrain));
  size_t taken = 0, moves = most.moved;
  for (;;) {
    // First: what lies in the rings is due at this tick, what is ready may be of an earlier one.
    if (!Cascade(moves)) return true;
    const Node& ready = heads_[kReady];
    for (; ready.next < kHeads && taken < most.due; ++taken) {
      const Timer timer = ready.next;
      Unlink(timer);
      --size_;
      due.push_back(timer);
    }
    if (ready.next < kHeads) return true;
    if (now_ == end) return false;
    now_ = std::min(NextStop(), end);
    rings_left_ = kRings;
  }
}

// The next tick at which a slot may have timers: rings that are empty are passed in one step.
uint64_t TimerWheel::NextStop() const {
  size_t ring = 0;
  while (ring < kRings && taken_[ring].none()) ++ring;
  if (ring == kRings) return ~uint64_t{0};
  return ((now_ >> (kSlotBits * ring)) + 1) << (kSlotBits * ring);
}

// The slots of now_, those of the longest rings first: their timers go to finer rings, or are due.
// False if `moves` did not suffice. Nothing new comes into these slots meanwhile: Place() finds
// what is due now ready, and everything later a slot further on.
bool TimerWheel::Cascade(size_t& moves) {
  for (; rings_left_ > 0; --rings_left_) {
    const size_t ring = rings_left_ - 1, bits = kSlotBits * ring;
    if (now_ % (uint64_t{1} << bits) != 0) continue;
    const Node& list = heads_[ring * kSlots + ((now_ >> bits) & (kSlots - 1))];
    for (; list.next < kHeads; --moves) {
      if (moves == 0) return false;
      const Timer timer = list.next;
      Unlink(timer);
      Place(timer);
    }
  }
  return true;
}

void TimerWheel::Place(Timer timer) {
  const uint64_t tick = TickOf(timer);
  if (!far_.empty()) far_.erase(timer);
  PlaceAt(timer, tick);
}

void TimerWheel::PlaceAt(Timer timer, uint64_t tick) {
  if (tick > now_ + kReach) {
    far_.emplace(timer, tick);
    tick = now_ + kReach;
  }
  tick = std::max(tick, now_);
  nodes_[timer].tick = static_cast<uint32_t>(tick);
  if (tick == now_) return Link(timer, kReady);
  size_t ring = 0;
  while ((tick >> (kSlotBits * ring)) - (now_ >> (kSlotBits * ring)) >= kSlots) ++ring;
  CHECK(ring < kRings);  // kReach is within the last one
  const uint64_t slot = tick >> (kSlotBits * ring);
  Link(timer, static_cast<uint32_t>(ring * kSlots + (slot & (kSlots - 1))));
}

void TimerWheel::Link(Timer timer, uint32_t list) {
  Node& head = heads_[list];
  Node& node = nodes_[timer];
  node.previous = head.previous;
  node.next = kHeads + list;
  NodeAt(head.previous).next = timer;
  head.previous = timer;
  if (list < kReady) taken_[list / kSlots].set(list % kSlots);
}

void TimerWheel::Unlink(Timer timer) {
  Node& node = nodes_[timer];
  CHECK(node.next != kNone);
  NodeAt(node.previous).next = node.next;
  NodeAt(node.next).previous = node.previous;
  if (node.previous == node.next) {  // the head: no other is left
    const uint32_t list = node.next - kHeads;
    if (list < kReady) taken_[list / kSlots].reset(list % kSlots);
  }
  node.next = kNone;
}

}  // namespace holdfast
