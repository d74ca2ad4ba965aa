// OneAhead: the next block is made in a thread of its own while the one before it is used.
#pragma once

#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "journal/base/check.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"

namespace holdfast {

// Until Start() each block is made by who asks for it, and for good where no thread can be had.
// Memory: two blocks, which are made anew and anew.
// Threads: one at a time; what `make` uses must be safe against what the owner does meanwhile.
template <typename Block>
class OneAhead {
 public:
  // Makes the next block. False: there are no more.
  using Make = std::function<bool(Block&)>;
  explicit OneAhead(Make make) : make_(std::move(make)) {}
  // Waits for the block that is being made.
  ~OneAhead() { Stop(); }
  // The same, earlier: no block is made any more, and Next() must not be called.
  void Stop() {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(mu_);
      turn_ = Turn::kEnd;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  OneAhead(const OneAhead&) = delete;
  OneAhead& operator=(const OneAhead&) = delete;

  void Start() {
    if (thread_.joinable()) return;
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error&) {
      return;  // No more threads to be had.
    }
  }

  // The next block, until the next call; null behind the last.
  // Errors: kResourceExhausted  kLimit: there was no memory for it; final
  StatusOr<Block*> Next() {
    if (!thread_.joinable()) return make_(used_) ? &used_ : nullptr;
    MutexLock lock(mu_);
    while (turn_ == Turn::kMake) changed_.Wait(mu_);
    if (!failed_.ok()) return failed_;
    if (!more_) return nullptr;
    std::swap(used_, ahead_);
    turn_ = Turn::kMake;
    changed_.NotifyAll();
    return &used_;
  }

 private:
  enum class Turn { kMake, kTake, kEnd };

  void Loop() {
    mu_.Lock();
    for (;;) {
      while (turn_ == Turn::kTake) changed_.Wait(mu_);
      if (turn_ == Turn::kEnd) break;
      mu_.Unlock();
      bool more = false;
      Status failed;
      try {
        more = make_(ahead_);
      } catch (const std::bad_alloc&) {
        failed = Exhausted(Detail::kLimit, "not enough memory to read on");
      }
      mu_.Lock();
      if (turn_ == Turn::kEnd) break;
      more_ = more;
      failed_ = std::move(failed);
      turn_ = Turn::kTake;
      changed_.NotifyAll();
      if (!more_) break;
    }
    mu_.Unlock();
  }

  const Make make_;
  Block used_;   // of who asks
  Block ahead_;  // of the thread while it is its turn, then of who asks
  std::thread thread_;
  Mutex mu_;  // Never held while a block is made.
  CondVar changed_;
  Turn turn_ ABSL_GUARDED_BY(mu_) = Turn::kMake;
  bool more_ ABSL_GUARDED_BY(mu_) = true;
  Status failed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
