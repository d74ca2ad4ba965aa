// TimerWheel: which of many timers are due. Setting and clearing one costs the same however many
// there are, and a turn costs what is due, not what is set. Pure: time is handed in.
//
// The hierarchical wheel of Varghese and Lauck (SOSP 1987): four rings of 256 slots, the first with
// slots of kGrain, each next one with slots as long as the whole ring before it. A timer sits in
// the finest ring that reaches its moment, and is moved one ring down when its slot's turn comes.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace holdfast {

// Threads: one at a time.
class TimerWheel {
 public:
  using Timer = uint32_t;  // small numbers that the owner gives out, densely

  static constexpr absl::Duration kGrain = absl::Milliseconds(16);

  // `now`: time begins here, in whole grains; a timer that is due earlier is due at once.
  explicit TimerWheel(absl::Duration now);

  // Sets the timer, or sets it anew. It fires at the first turn at or after `due`, which is
  // rounded up to a whole grain: never before, and up to a grain later.
  void Set(Timer timer, absl::Duration due);
  // Nothing happens if it is not set.
  void Clear(Timer timer);
  bool IsSet(Timer timer) const;
  // When it fires. Needs: it is set
  absl::Duration DueOf(Timer timer) const { return kGrain * static_cast<int64_t>(TickOf(timer)); }
  size_t size() const { return size_; }

  // What one turn does at most.
  struct Most {
    size_t due;
    size_t moved;  // from one ring to the next
  };
  // Moves time on to `now` and clears what is due, adding it to `due`, the earliest slots first.
  // True: the turn ended at a limit, and the next one goes on from there.
  bool Turn(absl::Duration now, const Most& most, std::vector<Timer>& due);

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr size_t kRings = 4;
  static constexpr size_t kSlotBits = 8;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  static constexpr uint32_t kReady = kRings * kSlots;  // the list of what is due

  static constexpr uint64_t kTickMax = (uint64_t{1} << 52) - 1;  // two million years
  // A timer is set at most so far ahead: a year. What is due later waits in far_ as well, and goes
  // on from there.
  static constexpr uint64_t kReach = (uint64_t{1} << 31) - 1;

  // A timer in a circle with the head of its list.
  struct Node {
    uint32_t tick = 0;  // when it is due: the low half, which is enough within kReach
    uint32_t previous = kNone, next = kNone;
  };
  static_assert(sizeof(Node) == 12);
  static constexpr uint32_t kHeads = ~uint32_t{0} - 4'096;  // numbers from here on are heads
  static_assert(kHeads + kReady < kNone);

  static uint64_t TickAt(absl::Duration due);
  uint64_t TickOf(Timer timer) const;
  Node& NodeAt(uint32_t at) { return at < kHeads ? nodes_[at] : heads_[at - kHeads]; }
  void Link(Timer timer, uint32_t list);
  void Unlink(Timer timer);
  void Place(Timer timer);
  void PlaceAt(Timer timer, uint64_t tick);
  uint64_t NextStop() const;
  bool Cascade(size_t& moves);

  uint64_t now_;           // in ticks; everything up to it was looked at
  size_t rings_left_ = 0;  // whose slot of now_ may still hold timers: the rings below this one
  size_t size_ = 0;
  std::deque<Node> nodes_;                    // grows without moving what is there
  absl::flat_hash_map<Timer, uint64_t> far_;  // ticks
  std::array<Node, kRings * kSlots + 1> heads_;
  std::array<std::bitset<kSlots>, kRings> taken_;  // slots that have timers
};

}  // namespace holdfast
