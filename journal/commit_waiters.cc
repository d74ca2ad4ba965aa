#include "journal/commit_waiters.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "journal/base/check.h"

namespace holdfast {

CommitWaiters::Ticket CommitWaiters::Enter(GroupNumber group) {
  const size_t index = group % kPlaces;
  Place& place = places_[index];
  ++place.waiting;
  ++waiting_;
  // Read under the lock: what changes it later does so because of something that happens later.
  return {.place = index, .word = place.word.load(std::memory_order_relaxed), .round = place.round};
}

void CommitWaiters::Leave(const Ticket& ticket) {
  Place& place = places_[ticket.place];
  if (place.round != ticket.round) return;  // was cleared with the others
  CHECK(place.waiting > 0);
  --place.waiting;
  --waiting_;
}

size_t CommitWaiters::Release(GroupNumber from, GroupNumber to) {
  const size_t before = waiting_;
  to = std::min(to, from + kPlaces);
  for (GroupNumber group = from; group < to; ++group) Clear(group % kPlaces);
  return before - waiting_;
}

void CommitWaiters::Clear(size_t index) {
  Place& place = places_[index];
  if (place.waiting == 0) return;
  waiting_ -= place.waiting;
  place.waiting = 0;
  ++place.round;
  place.word.fetch_add(1, std::memory_order_release);
  wakes_.all |= uint64_t{1} << index;
}

bool CommitWaiters::Offer(GroupNumber from, GroupNumber to) {
  to = std::min(to, from + kPlaces);
  for (GroupNumber group = from; group < to; ++group) {
    const size_t index = group % kPlaces;
    if (places_[index].waiting == 0) continue;
    places_[index].word.fetch_add(1, std::memory_order_release);
    wakes_.one |= uint64_t{1} << index;
    return true;
  }
  return false;
}

CommitWaiters::Wakes CommitWaiters::TakeWakes() { return std::exchange(wakes_, Wakes()); }

void CommitWaiters::Wake(const Wakes& wakes) {
  for (uint64_t left = wakes.all; left != 0; left &= left - 1) {
    FutexWakeAll(places_[std::countr_zero(left)].word);
  }
  for (uint64_t left = wakes.one & ~wakes.all; left != 0; left &= left - 1) {
    FutexWakeOne(places_[std::countr_zero(left)].word);
  }
}

}  // namespace holdfast
