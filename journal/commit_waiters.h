// CommitWaiters: where threads sleep until their group is confirmed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "journal/base/futex.h"
#include "journal/commit_queue.h"

namespace holdfast {

// One place to sleep for each group (groups 64 apart share one), so that a completion wakes those
// whom it satisfies and nobody else. Who wakes up satisfied needs no lock. Threads: under the
// owner's lock, but for Sleep and Wake.
class CommitWaiters {
 public:
  struct Ticket {
    size_t place = 0;
    uint32_t word = 0;
    uint64_t round = 0;
  };

  // The caller is going to sleep until `group` is confirmed.
  Ticket Enter(GroupNumber group);
  // Returns when the place was woken since Enter.
  void Sleep(const Ticket& ticket) {
    std::atomic<uint32_t>& word = places_[ticket.place].word;
    while (word.load(std::memory_order_acquire) == ticket.word) FutexWait(word, ticket.word);
  }
  // It woke up and is not satisfied.
  void Leave(const Ticket& ticket);

  // Groups [from, to) are confirmed (or never will be): whoever waits for them is to wake. Returns
  // how many callers that are.
  size_t Release(GroupNumber from, GroupNumber to);
  // One caller, if any waits for a group in [from, to), is to wake and see what can be done.
  bool Offer(GroupNumber from, GroupNumber to);

  // What Release and Offer decided, to be carried out without the lock.
  struct Wakes {
    uint64_t all = 0;  // one bit for each place
    uint64_t one = 0;
    bool any() const { return (all | one) != 0; }
  };
  Wakes TakeWakes();
  void Wake(const Wakes& wakes);

  size_t waiting() const { return waiting_; }

 private:
  static constexpr size_t kPlaces = 64;
  struct alignas(64) Place {
    std::atomic<uint32_t> word = 0;  // changes when somebody is to wake
    size_t waiting = 0;
    uint64_t round = 0;  // counts how often `waiting` was cleared
  };

  void Clear(size_t index);

  std::array<Place, kPlaces> places_;
  size_t waiting_ = 0;
  Wakes wakes_;
};

}  // namespace holdfast
