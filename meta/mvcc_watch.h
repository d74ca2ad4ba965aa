// The watches of a MvccMeta: each is a place in the history, nothing is queued for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "meta/mvcc_types.h"

namespace holdfast {

// Shared by the registry and the handle that the host holds; whichever lets go last frees it.
class MvccWatcher {
 public:
  MvccWatcher(KeyRange range, uint64_t from, std::function<void(const MetaNotice&)> callback,
              absl::Duration now);

  const KeyRange& range() const { return range_; }
  // The revision that it has to be shown next.
  uint64_t next() const { return next_; }
  void Advance(uint64_t next) { next_ = next; }
  // It had everything that there was, until now.
  void CaughtUp(absl::Duration now) { caught_up_ns_ = absl::ToInt64Nanoseconds(now); }
  absl::Duration caught_up_at() const { return absl::Nanoseconds(caught_up_ns_.load()); }

  // Calls back, unless End() was called. After a kResync nothing comes any more.
  void Call(const MetaNotice& notice) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns when no callback runs and none will.
  void End() ABSL_LOCKS_EXCLUDED(mu_);
  bool ended() const { return ended_.load(); }

 private:
  const KeyRange range_;
  std::atomic<uint64_t> next_;
  std::atomic<int64_t> caught_up_ns_;
  std::atomic<bool> ended_ = false;
  Mutex mu_;  // Held while the callback runs.
  std::function<void(const MetaNotice&)> callback_ ABSL_GUARDED_BY(mu_);
};

// Threads: any.
class MvccWatchers {
 public:
  using List = std::vector<std::shared_ptr<MvccWatcher>>;

  void Add(std::shared_ptr<MvccWatcher> watcher) ABSL_LOCKS_EXCLUDED(mu_);
  // Those that have not ended; forgets the others.
  List Live() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Mutex mu_;
  List watchers_ ABSL_GUARDED_BY(mu_);
};

// What the host holds of a watch that follows another Meta.
class FollowerHandle final : public MetaWatch {
 public:
  // `forget` is called when it goes, once no callback runs. `clock` is borrowed and outlives it.
  FollowerHandle(std::shared_ptr<MvccWatcher> watcher, Clock& clock, std::function<void()> forget)
      : watcher_(std::move(watcher)), clock_(clock), forget_(std::move(forget)) {}
  ~FollowerHandle() override {
    watcher_->End();
    forget_();
  }

  absl::Duration Staleness() const override { return clock_.Now() - watcher_->caught_up_at(); }

 private:
  const std::shared_ptr<MvccWatcher> watcher_;  // last owner: whoever follows for it
  Clock& clock_;
  const std::function<void()> forget_;
};

// What the host holds of a watch on the Meta of this process.
class MvccWatchHandle final : public MetaWatch {
 public:
  // `published`, the newest revision that may be shown, and `clock` are borrowed and outlive it.
  MvccWatchHandle(std::shared_ptr<MvccWatcher> watcher, const std::atomic<uint64_t>& published,
                  Clock& clock)
      : watcher_(std::move(watcher)), published_(published), clock_(clock) {}
  ~MvccWatchHandle() override { watcher_->End(); }

  absl::Duration Staleness() const override {
    if (watcher_->next() > published_) return absl::ZeroDuration();
    return clock_.Now() - watcher_->caught_up_at();
  }

 private:
  const std::shared_ptr<MvccWatcher> watcher_;
  const std::atomic<uint64_t>& published_;
  Clock& clock_;
};

}  // namespace holdfast
