// MvccMeta: the Meta of one process: MvccState behind a lock, with deadlines, leases that end and
// watches. Where the changes are made to last is up to the class below it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "journal/base/mutex.h"
#include "journal/base/seeded_rng.h"
#include "meta/mvcc_plan.h"
#include "meta/mvcc_state.h"
#include "meta/mvcc_types.h"
#include "meta/mvcc_watch.h"
#include "meta/txn_meta.h"

namespace holdfast {

struct MvccMetaOptions {
  MvccHistoryLimits history;
  MvccPlanLimits plan;
  // What one change of state deletes at most, in keys and in their bytes; a lease with more ends at
  // several revisions.
  MvccEraseLimits erase;
  // A watch is called back with about so many events at a time.
  size_t notice_events_max = 1'000;
};

// Two faces: MetaStore for those who share values, and one with etcd's terms for the server that
// offers them to others. What either answers, and what a watch shows, is durable before it leaves.
// Threads: any.
class MvccMeta : public TxnMeta {
 public:
  // --- MetaStore ---
  absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(std::string_view prefix, uint64_t from_revision,
                                                   std::function<void(const MetaNotice&)> callback,
                                                   const MetaCall& call) override;
  absl::StatusOr<MetaLease> GrantLease(absl::Duration ttl, const MetaCall& call) override;
  absl::StatusOr<MetaLease> KeepAlive(uint64_t lease, const MetaCall& call) override;
  absl::Status RevokeLease(uint64_t lease, const MetaCall& call) override;

  // --- In etcd's terms. Errors are Refuse()d, see RefusalOf, or those of MetaStore. ---
  StatusOr<ReadAnswer> Read(const MvccRead& read, const MetaCall& call) override;
  StatusOr<MvccTxnResult> Execute(const MvccTxn& txn, const MetaCall& call) override;
  // `id` 0: one is chosen. Returns the id.
  StatusOr<uint64_t> GrantLeaseAs(uint64_t id, absl::Duration ttl, const MetaCall& call);
  StatusOr<MvccLeaseInfo> LeaseInfo(uint64_t id, const MetaCall& call);
  StatusOr<std::vector<uint64_t>> Leases(const MetaCall& call);
  Status Compact(uint64_t revision, const MetaCall& call);

  // For streams that read when their reader can take more: what a watch of `range` has to show from
  // `from` on, as far as it is durable; `next` is where to go on. Needs no thread and no memory.
  // Errors: kCompacted  start again at history_begin(), or at the newest
  //         kUnavailable  nothing will become durable any more
  StatusOr<MvccState::Changes> ChangesOf(const KeyRange& range, uint64_t from, size_t events_max);
  uint64_t published_revision();
  uint64_t history_begin();
  // `changed` is called whenever there may be more to read, on any thread, without a lock; it must
  // not block. Returns its number.
  uint64_t AddListener(std::function<void()> changed);
  // Then it runs no more. Not inside of it.
  void RemoveListener(uint64_t number);

  Clock& clock() { return clock_; }

  // Ends leases and calls watches back. Only without threads.
  void Tick();

 protected:
  // `mutex` and `clock` are borrowed and outlive it.
  MvccMeta(Mutex& mutex, Clock& clock, uint64_t id_seed, const MvccMetaOptions& options);

  // Makes sure that `changes` can be appended next; may release the mutex meanwhile.
  virtual Status Reserve(const std::vector<MvccChange>& changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Applies each to the state, and keeps them together. Returns a number that rises.
  // Needs: Reserve just before
  virtual uint64_t Append(const std::vector<MvccChange>& changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Starts what Append left to do.
  virtual void Kick() ABSL_LOCKS_EXCLUDED(mu_) = 0;
  // Once, when everything up to `position` is durable, or never will be.
  virtual void WhenDurable(uint64_t position, std::function<void(Status)> callback)
      ABSL_LOCKS_EXCLUDED(mu_) = 0;
  // Errors: kUnavailable  it never will be; kDeadlineExceeded  not by `deadline`
  virtual Status WaitDurable(uint64_t position, absl::Duration deadline)
      ABSL_LOCKS_EXCLUDED(mu_) = 0;
  // Asked before each call, without the lock: why it cannot be made now.
  virtual Status Ready() const { return absl::OkStatus(); }
  // Whether it could be changed at all; else leases never end.
  virtual bool writable() const { return true; }

  // What is in the state is published, and time goes on from here. The next revision is more than
  // `skip` above the newest. Without threads Tick() ends leases and calls watches back.
  struct ServeOptions {
    uint64_t skip = 0;
    bool threads = true;
  };
  void Serve(const ServeOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the thread. To be called by the destructor of the class below, before anything of it goes.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // The same in a forked child, where the thread and whoever held a lock are not.
  void Abandon();

  Mutex& mu_;
  Clock& clock_;
  const MvccMetaOptions options_;
  MvccState state_ ABSL_GUARDED_BY(mu_);

 private:
  // Appends what `plan` makes of the state at the moment when there is room for it.
  StatusOr<MvccPlan> Decide(const std::function<StatusOr<MvccPlan>()>& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What time asked for meanwhile: leases that are over end, and revisions that are skipped are
  // kept as such before anybody is shown a higher one.
  Status CatchUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status EndLease(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Lets what was appended on its way, and waits until what the answer rests on is durable.
  Status Confirm(uint64_t position, absl::Duration deadline, bool wrote) ABSL_LOCKS_EXCLUDED(mu_);
  // Sees to it that what was appended is published once it is durable.
  void Settle() ABSL_LOCKS_EXCLUDED(mu_);
  void Publish(uint64_t revision, const Status& durable) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration DeadlineOf(absl::Duration timeout) { return clock_.Now() + timeout; }

  void StartService() ABSL_LOCKS_EXCLUDED(service_mu_);
  void Service() ABSL_LOCKS_EXCLUDED(mu_, service_mu_);
  void WakeService() ABSL_LOCKS_EXCLUDED(service_mu_);
  void CallWatchesBack() ABSL_LOCKS_EXCLUDED(mu_);
  bool CallBack(MvccWatcher& watcher) ABSL_LOCKS_EXCLUDED(mu_);

  SeededRng ids_ ABSL_GUARDED_BY(mu_);
  uint64_t newest_position_ ABSL_GUARDED_BY(mu_) = 0;   // appended
  uint64_t settled_position_ ABSL_GUARDED_BY(mu_) = 0;  // somebody waits to publish it
  uint64_t appended_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<uint64_t> published_ = 0;  // set with mu_ held
  bool skip_is_kept_ ABSL_GUARDED_BY(mu_) = true;
  Status broken_ ABSL_GUARDED_BY(mu_);  // why nothing is published any more

  MvccWatchers watchers_;
  Mutex listeners_mu_;  // Taken last; held while listeners run.
  std::map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mu_);
  uint64_t next_listener_ ABSL_GUARDED_BY(listeners_mu_) = 1;

  Mutex service_mu_;  // Never held across a call.
  CondVar service_wake_;
  bool service_wanted_ ABSL_GUARDED_BY(service_mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(service_mu_) = false;
  std::thread service_ ABSL_GUARDED_BY(service_mu_);
  bool threads_ = false;    // set before the first call
  bool abandoned_ = false;  // only ever set in a forked child, which has one thread
};

}  // namespace holdfast
