#include "meta/mvcc_watch.h"

#include <utility>

namespace holdfast {

MvccWatcher::MvccWatcher(KeyRange range, uint64_t from,
                         std::function<void(const MetaNotice&)> callback, absl::Duration now)
    : range_(std::move(range)),
      next_(from),
      caught_up_ns_(absl::ToInt64Nanoseconds(now)),
      callback_(std::move(callback)) {}

void MvccWatcher::Call(const MetaNotice& notice) {
  MutexLock lock(mu_);
  if (ended_) return;
  if (notice.kind == MetaNotice::Kind::kResync) ended_ = true;
  callback_(notice);
}

void MvccWatcher::End() {
  MutexLock lock(mu_);
  ended_ = true;
  callback_ = nullptr;
}

void MvccWatchers::Add(std::shared_ptr<MvccWatcher> watcher) {
  MutexLock lock(mu_);
  watchers_.push_back(std::move(watcher));
}

MvccWatchers::List MvccWatchers::Live() {
  MutexLock lock(mu_);
  std::erase_if(watchers_, [](const auto& watcher) { return watcher->ended(); });
  return watchers_;
}

}  // namespace holdfast
