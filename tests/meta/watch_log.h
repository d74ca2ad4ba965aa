// WatchLog: a watch whose notices a test can wait for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "tests/support/status_matchers.h"

namespace holdfast {

class WatchLog {
 public:
  WatchLog(MetaStore& store, std::string_view prefix, uint64_t from) {
    auto watch = store.Watch(prefix, from, [this](const MetaNotice& notice) { Take(notice); }, {});
    EXPECT_OK(watch);
    if (watch.ok()) watch_ = *std::move(watch);
  }

  MetaWatch& watch() { return *watch_; }
  void Close() { watch_.reset(); }

  // Waits until everything up to `revision` that concerns the prefix was called back, told by the
  // number of events that there must be; or the resync.
  std::vector<MetaEvent> AwaitEvents(size_t count) {
    MutexLock lock(mu_);
    while (events_.size() < count && !resync_) changed_.Wait(mu_);
    return events_;
  }
  MetaNotice AwaitResync() {
    MutexLock lock(mu_);
    while (!resync_) changed_.Wait(mu_);
    return resync_notice_;
  }
  bool resynced() {
    MutexLock lock(mu_);
    return resync_;
  }
  std::vector<MetaEvent> events() {
    MutexLock lock(mu_);
    return events_;
  }
  // Every notice's revision, in order of arrival.
  std::vector<uint64_t> revisions() {
    MutexLock lock(mu_);
    return revisions_;
  }

 private:
  void Take(const MetaNotice& notice) {
    MutexLock lock(mu_);
    EXPECT_FALSE(resync_) << "a notice after the last one";
    if (notice.kind == MetaNotice::Kind::kResync) {
      resync_ = true;
      resync_notice_ = notice;
      // Of its own: the count of those who share one is in a library that sanitizers do not see.
      resync_notice_.reason = Status(notice.reason.code(), notice.reason.message());
    } else {
      EXPECT_FALSE(notice.events.empty());
      for (const MetaEvent& event : notice.events) {
        EXPECT_LE(event.entry.revision, notice.revision);
        events_.push_back(event);
      }
      revisions_.push_back(notice.revision);
    }
    changed_.NotifyAll();
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<MetaEvent> events_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> revisions_ ABSL_GUARDED_BY(mu_);
  bool resync_ ABSL_GUARDED_BY(mu_) = false;
  MetaNotice resync_notice_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<MetaWatch> watch_;  // last: its end comes before that of what it calls
};

}  // namespace holdfast
