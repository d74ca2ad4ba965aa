// NacosWatches: all watches of a process, by one thread that looks at what they watch: at
// everything each interval, and in v1 besides at what a long poll names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "meta/mvcc_watch.h"
#include "meta/nacos_client.h"
#include "meta/nacos_reader.h"
#include "meta/nacos_revisions.h"
#include "meta/nacos_snapshots.h"

namespace holdfast {

// Threads: any, except that Watch handles end before it. It has one thread from the first watch on.
class NacosWatches {
 public:
  // Borrows all of them; they outlive it.
  NacosWatches(NacosClient& client, NacosReader& reader, NacosRevisions& revisions)
      : client_(client), reader_(reader), revisions_(revisions) {}
  // In v1 it may wait for the end of a long poll, look_interval at most.
  ~NacosWatches();

  // Shows what is other than in `base`. Null: nobody knows what that was, so it says kResync.
  std::unique_ptr<MetaWatch> Watch(std::string_view prefix, NacosSnapshots::Ptr base,
                                   std::function<void(const MetaNotice&)> callback);

 private:
  // What a watch was shown; without the values.
  struct Watched {
    std::shared_ptr<MvccWatcher> watcher;
    NacosSnapshot shown;
    bool known = false;  // false: says kResync when it is looked at
  };
  using WatchedPtr = std::shared_ptr<Watched>;  // last owner: the look that still names it

  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Those that there are, when it is time to look. Empty: it is stopping.
  std::vector<WatchedPtr> AwaitLook() ABSL_LOCKS_EXCLUDED(mu_);
  // At everything. True: there is more to show than was complete when it began.
  bool Look(Watched& watched);
  // Until it is time to look, at what is named as changed.
  void Listen(const std::vector<WatchedPtr>& all) ABSL_LOCKS_EXCLUDED(mu_);
  static std::vector<NacosListened> ListenedTo(const std::vector<WatchedPtr>& all);
  // True: one of them is newer than what was shown.
  bool LookAt(Watched& watched, const std::vector<std::string>& names);
  // True: as Look.
  bool Show(Watched& watched, const NacosSnapshot& now);

  NacosClient& client_;
  NacosReader& reader_;
  NacosRevisions& revisions_;
  Mutex mu_;  // Never held across a callback or a request.
  CondVar changed_;
  std::map<uint64_t, WatchedPtr> watched_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  absl::Duration look_at_ ABSL_GUARDED_BY(mu_);  // on the clock
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
