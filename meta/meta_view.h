// MetaView: what is known of the entries under one prefix, kept up by a list and a watch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"

namespace holdfast {

// Who is told of changes: one call at a time, and for one key only ever newer ones.
// Calls come with a lock of the view's held: they must not call it back.
class MetaViewer {
 public:
  virtual ~MetaViewer() = default;
  virtual void Changed(const MetaEntry& entry) = 0;
  virtual void Gone(std::string_view key) = 0;
};

struct MetaViewOptions {
  // Between attempts to list again, doubled up to the maximum.
  absl::Duration retry_min = absl::Milliseconds(100);
  absl::Duration retry_max = absl::Seconds(5);
  // How often everything is listed and compared besides, because a watch is a hint: > 0.
  absl::Duration reconcile_every = absl::Minutes(1);
};

// A watch that missed changes, or was lost, is made again behind a new list, by a thread of the
// view's own, for as long as it takes; what is shown meanwhile grows stale and never older. The
// same thread lists now and then to find what a watch left out. What a list leaves out is gone only
// if another one, retry_min later, leaves it out too: a Meta that has just started may not have
// everything yet.
// Threads: any. The destructor needs every other call to have returned.
class MetaView {
 public:
  // Lists, and watches from there on. `meta`, `viewer` and `clock` are borrowed and outlive it.
  // Errors: as MetaStore::List and Watch
  static StatusOr<std::unique_ptr<MetaView>> Open(MetaStore& meta, std::string prefix,
                                                  MetaViewer& viewer, Clock& clock,
                                                  const MetaViewOptions& options = {});
  ~MetaView();
  MetaView(const MetaView&) = delete;
  MetaView& operator=(const MetaView&) = delete;

  // A write of this process that was answered: shown from now on, before the watch brings it.
  void NotePut(const MetaEntry& entry) ABSL_LOCKS_EXCLUDED(mu_);
  // The key was deleted by a write of this process, whose revision it was.
  void NoteDelete(std::string_view key, uint64_t revision) ABSL_LOCKS_EXCLUDED(mu_);

  // Every change up to here is shown.
  uint64_t revision() ABSL_LOCKS_EXCLUDED(mu_);
  // How long ago it was last known that no change was missing.
  absl::Duration Staleness() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  MetaView(MetaStore& meta, std::string prefix, MetaViewer& viewer, Clock& clock,
           const MetaViewOptions& options);

  Status ListAndWatch() ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<MetaList> ListAll();
  // Another list, beside the watch.
  void Reconcile() ABSL_LOCKS_EXCLUDED(mu_);
  void ShowList(const MetaList& list) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnNotice(const MetaNotice& notice) ABSL_LOCKS_EXCLUDED(mu_);
  void Show(const MetaEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ShowGone(std::string_view key, uint64_t revision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Reached(uint64_t revision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);

  MetaStore& meta_;
  const std::string prefix_;
  MetaViewer& viewer_;
  Clock& clock_;
  const MetaViewOptions options_;

  Mutex mu_;  // Held while the viewer is told; never across a call of the Meta.
  CondVar wake_;
  struct Known {
    uint64_t revision = 0;  // of the newest change of the key
    bool there = true;      // false: gone, and remembered until the watch is as far
  };
  std::map<std::string, Known, std::less<>> known_ ABSL_GUARDED_BY(mu_);
  std::multimap<uint64_t, std::string> gone_ ABSL_GUARDED_BY(mu_);  // by revision, may be back
  // What the newest list left out, and is still shown. While there is any, the revision stands.
  std::set<std::string> doubted_ ABSL_GUARDED_BY(mu_);
  uint64_t revision_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<MetaWatch> watch_ ABSL_GUARDED_BY(mu_);
  bool lost_ ABSL_GUARDED_BY(mu_) = false;        // the watch brings nothing any more
  absl::Duration fresh_at_ ABSL_GUARDED_BY(mu_);  // then: when it was last known to
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace holdfast
