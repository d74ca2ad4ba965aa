// CommitCallbacks: who wants to be called when an LSN is confirmed.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"

namespace holdfast {

// Callbacks run in LSN order, one at a time, in the thread of Run() or RunReady(), without any
// lock. Threads: any.
class CommitCallbacks {
 public:
  using Callback = std::function<void(absl::Status)>;
  // What is known of an LSN: confirmed, failed, or nothing yet. Needs: once known, it stays.
  using Outcome = std::function<std::optional<Status>(Lsn)>;

  explicit CommitCallbacks(Outcome outcome) : outcome_(std::move(outcome)) {}

  // Keeps the callback until the outcome of `lsn` is known, or calls it now if it is.
  // Returns whether it was kept.
  bool Add(Lsn lsn, Callback callback) ABSL_LOCKS_EXCLUDED(mu_);
  bool empty() const { return count_.load(std::memory_order_seq_cst) == 0; }

  // Some outcome became known.
  void Signal() ABSL_LOCKS_EXCLUDED(mu_);
  // Runs what can be run, in this thread. Does nothing inside a callback.
  void RunReady() ABSL_LOCKS_EXCLUDED(mu_);
  // Runs callbacks until Stop(); then those whose outcome is known.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the calling thread is just running one that was kept.
  bool InCallback() const { return runner_.load() == std::this_thread::get_id(); }

 private:
  struct Entry {
    Lsn lsn;
    Callback callback;
  };

  bool HasReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Outcome outcome_;
  Mutex mu_;  // Taken after the sequencer, where both are held.
  CondVar changed_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);  // by LSN
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<size_t> count_ = 0;  // of entries_
  std::atomic<std::thread::id> runner_{};
};

}  // namespace holdfast
