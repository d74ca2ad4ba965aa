#include "journal/commit_callbacks.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast {

bool CommitCallbacks::Add(Lsn lsn, Callback callback) {
  std::optional<Status> known;
  {
    MutexLock lock(mu_);
    // Under the lock, so that a Signal after the outcome became known finds either nothing or this.
    known = outcome_(lsn);
    if (!known) {
      auto place = entries_.end();
      while (place != entries_.begin() && std::prev(place)->lsn > lsn) --place;
      entries_.insert(place, {lsn, std::move(callback)});
      count_.store(entries_.size(), std::memory_order_seq_cst);
    }
  }
  if (known) callback(*known);
  return !known.has_value();
}

void CommitCallbacks::Signal() {
  if (empty()) return;
  MutexLock lock(mu_);
  if (HasReady()) changed_.NotifyOne();
}

void CommitCallbacks::RunReady() {
  MutexLock lock(mu_);
  if (running_) return;
  while (HasReady()) RunBatch();
}

void CommitCallbacks::Run() {
  MutexLock lock(mu_);
  for (;;) {
    while (!HasReady() && !stopped_) changed_.Wait(mu_);
    if (!HasReady()) return;
    RunBatch();
  }
}

void CommitCallbacks::Stop() {
  MutexLock lock(mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

bool CommitCallbacks::HasReady() {
  return !entries_.empty() && outcome_(entries_.front().lsn).has_value();
}

void CommitCallbacks::RunBatch() {
  struct Ready {
    Callback callback;
    Status status;
  };
  std::vector<Ready> ready;
  while (!entries_.empty()) {
    std::optional<Status> known = outcome_(entries_.front().lsn);
    if (!known) break;
    ready.push_back({std::move(entries_.front().callback), *std::move(known)});
    entries_.pop_front();
  }
  count_.store(entries_.size(), std::memory_order_seq_cst);
  running_ = true;
  mu_.Unlock();
  runner_.store(std::this_thread::get_id());
  for (Ready& each : ready) each.callback(std::move(each.status));
  ready.clear();  // what the callbacks own dies without the lock too
  runner_.store(std::thread::id());
  mu_.Lock();
  running_ = false;
}

}  // namespace holdfast
