#include "runtime/timer_wheel.h"

#include <algorithm>
#include <limits>

#include "journal/base/check.h"

namespace holdfast {

TimerWheel::TimerWheel(absl::Duration now)
    : now_(static_cast<uint64_t>(std::max(now, absl::ZeroDuration()) / kGrain)) {}

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
  if (timer >= nodes_.size()) nodes_.resize(timer + 1);
  Clear(timer);
  nodes_[timer].tick = TickAt(due) & kTickMax;
  Place(timer);
  ++size_;
}

void TimerWheel::Clear(Timer timer) {
  if (!IsSet(timer)) return;
  Unlink(timer);
  --size_;
}

bool TimerWheel::IsSet(Timer timer) const {
  return timer < nodes_.size() && nodes_[timer].list != kNoList;
}

bool TimerWheel::Turn(absl::Duration now, const Most& most, std::vector<Timer>& due) {
  const uint64_t end =
      std::max(now_, static_cast<uint64_t>(std::max(now, absl::ZeroDuration()) / kGrain));
  size_t taken = 0, moves = most.moved;
  for (;;) {
    // First: what lies in the rings is due at this tick, what is ready may be of an earlier one.
    if (!Cascade(moves)) return true;
    List& ready = lists_[kReady];
    for (; ready.first != kNone && taken < most.due; ++taken) {
      const Timer timer = ready.first;
      Unlink(timer);
      --size_;
      due.push_back(timer);
    }
    if (ready.first != kNone) return true;
    if (now_ == end) return false;
    now_ = std::min(NextStop(), end);
    rings_left_ = kRings;
  }
}

// The next tick at which a slot may have timers: rings that are empty are passed in one step.
uint64_t TimerWheel::NextStop() const {
  size_t ring = 0;
  while (ring < kRings && in_ring_[ring] == 0) ++ring;
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
    const List& list = lists_[ring * kSlots + ((now_ >> bits) & (kSlots - 1))];
    for (; list.first != kNone; --moves) {
      if (moves == 0) return false;
      const Timer timer = list.first;
      Unlink(timer);
      Place(timer);
    }
  }
  return true;
}

void TimerWheel::Place(Timer timer) {
  const uint64_t tick = nodes_[timer].tick;
  if (tick <= now_) return Link(timer, kReady);
  uint64_t reached = tick;
  for (size_t ring = 0; ring < kRings; ++ring) {
    const uint64_t slot = reached >> (kSlotBits * ring), here = now_ >> (kSlotBits * ring);
    const bool last = ring + 1 == kRings;
    if (slot - here < kSlots || last) {
      // Beyond the last ring: the slot that comes last, and from there on once more.
      const uint64_t at = std::min(slot, here + kSlots - 1);
      return Link(timer, static_cast<uint32_t>(ring * kSlots + (at & (kSlots - 1))));
    }
  }
}

void TimerWheel::Link(Timer timer, uint32_t list) {
  Node& node = nodes_[timer];
  List& into = lists_[list];
  node.list = list & 0xfff;
  node.previous = into.last;
  node.next = kNone;
  (into.last == kNone ? into.first : nodes_[into.last].next) = timer;
  into.last = timer;
  ++in_ring_[list / kSlots];
}

void TimerWheel::Unlink(Timer timer) {
  Node& node = nodes_[timer];
  CHECK(node.list != kNoList);
  List& from = lists_[node.list];
  (node.previous == kNone ? from.first : nodes_[node.previous].next) = node.next;
  (node.next == kNone ? from.last : nodes_[node.next].previous) = node.previous;
  --in_ring_[node.list / kSlots];
  node.list = kNoList;
}

}  // namespace holdfast
