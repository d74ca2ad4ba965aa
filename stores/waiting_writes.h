// WaitingWrites: batches whose threads wait for the sequencer, laid out for the thread that holds
// it to write beside its own.
//
// This is flat combining (Hendler, Incze, Shavit and Tzafrir, SPAA 2010): a sequencer that goes
// from thread to thread takes the state of all stores from one processor's cache to another's each
// time, which costs more than a batch; a batch alone moves for less.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

#include "holdfast/commit.h"
#include "stores/store_batch.h"

namespace holdfast {

// One batch on its way. Lives on the stack of the thread that waits.
class WaitingWrite {
 public:
  explicit WaitingWrite(StoreBatch& batch) : batch_(batch) {}
  WaitingWrite(const WaitingWrite&) = delete;
  WaitingWrite& operator=(const WaitingWrite&) = delete;

  StoreBatch& batch() { return batch_; }
  bool written() const { return written_.load(std::memory_order_acquire); }
  // Needs: written()
  Commit TakeCommit() { return std::move(commit_); }
  // The last thing that anybody but its thread does with it.
  void SetWritten(Commit commit) {
    commit_ = std::move(commit);
    written_.store(true, std::memory_order_release);
  }

 private:
  StoreBatch& batch_;
  Commit commit_;
  std::atomic<bool> written_ = false;
};

// Threads: any for Offer; the others with the sequencer held.
class WaitingWrites {
 public:
  // Lays `write` out, if there is a place: it stays until it is written or taken back.
  void Offer(WaitingWrite& write) {
    for (std::atomic<WaitingWrite*>& place : places_) {
      WaitingWrite* expected = nullptr;
      if (place.load(std::memory_order_relaxed) == nullptr &&
          place.compare_exchange_strong(expected, &write, std::memory_order_acq_rel)) {
        return;
      }
    }
  }
  // Its own thread writes it. Needs: !write.written()
  void TakeBack(const WaitingWrite& write) {
    for (std::atomic<WaitingWrite*>& place : places_) {
      if (place.load(std::memory_order_relaxed) == &write) {
        place.store(nullptr, std::memory_order_release);
        return;
      }
    }
  }
  // Takes each that is laid out and that `fits`, once, and hands it to `write`.
  template <typename Fits, typename Write>  // bool(WaitingWrite&), void(WaitingWrite&)
  void TakeEach(const Fits& fits, const Write& write) {
    for (std::atomic<WaitingWrite*>& place : places_) {
      WaitingWrite* const waiting = place.load(std::memory_order_acquire);
      if (waiting == nullptr || !fits(*waiting)) continue;
      place.store(nullptr, std::memory_order_relaxed);
      write(*waiting);
    }
  }
  size_t count() const {
    size_t count = 0;
    for (const auto& place : places_) count += place.load(std::memory_order_relaxed) != nullptr;
    return count;
  }

 private:
  // One cache line: a look costs the holder little where nobody waits.
  static constexpr size_t kPlaces = 8;
  alignas(64) std::array<std::atomic<WaitingWrite*>, kPlaces> places_{};
};

}  // namespace holdfast
