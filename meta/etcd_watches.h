// EtcdWatches: all watches of a process on one stream, which is opened again where they stand
// whenever it breaks, falls silent, or a watch comes or goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "meta/etcd_client.h"
#include "meta/mvcc_watch.h"

namespace holdfast {

// Threads: any, except that Watch handles end before it. It has one thread from the first watch on.
class EtcdWatches {
 public:
  // Borrows `client`, which outlives it.
  EtcdWatches(EtcdClient& client, const EtcdOptions& options)
      : client_(client), options_(options) {}
  ~EtcdWatches();

  std::unique_ptr<MetaWatch> Watch(std::string_view prefix, uint64_t from_revision,
                                   std::function<void(const MetaNotice&)> callback);

 private:
  using Watchers = std::map<uint64_t, std::shared_ptr<MvccWatcher>>;

  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  // A stream that is open is of the past.
  void Renew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Until the stream is over. True: it served, so the next one may come at once.
  bool Serve(const Watchers& watchers) ABSL_LOCKS_EXCLUDED(mu_);
  // One line of it. False: open another stream.
  bool Take(const Watchers& watchers, std::string_view line);
  void TakeEvents(MvccWatcher& watcher, const EtcdWatchFrame& frame);
  void TakeCancel(uint64_t id, MvccWatcher& watcher, const EtcdWatchFrame& frame);

  EtcdClient& client_;
  const EtcdOptions options_;
  Mutex mu_;  // Never held across a callback or a read of the stream.
  CondVar changed_;
  Watchers watchers_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  bool renew_ ABSL_GUARDED_BY(mu_) = false;  // since the watchers of the open stream were taken
  HttpStream* open_ ABSL_GUARDED_BY(mu_) = nullptr;  // Borrowed while it is being read.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
