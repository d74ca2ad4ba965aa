// ClusterNode: the cluster as hosts see it, and its thread: look who is there, let go, hand over,
// take. What should be whose is decided by Balance(); what may be done, by the Meta.
//
// The engine's own Meta keeps which ownership this engine has taken over completely:
//
//   /em/held/<topic>/<incarnation>/<partition> = <token>
//
// An ownership that took the place of exactly that one continues it: nobody had the partition
// since, and what is in flight here goes on. In any other case it is let go first.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/cluster.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "meta/membership.h"
#include "runtime/balance.h"
#include "runtime/meta_ledger.h"
#include "stores/offset_mirror.h"

namespace holdfast {

class ClusterNode final : public Cluster, private OwnershipGuard {
 public:
  // `threads` false: nothing happens by itself; the test calls Beat(), Mirror() and Turn().
  static StatusOr<std::unique_ptr<ClusterNode>> Open(Engine& engine, MetaStore& meta,
                                                     const ClusterOptions& options, bool threads);
  ~ClusterNode() override;

  OwnershipGuard& guard() override { return *this; }
  DeadLetterLedger& ledger() override { return *ledger_; }
  void Start(Dispatcher& dispatcher, ClusterHost& host) override ABSL_LOCKS_EXCLUDED(mu_);
  Status Leave() override ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<OwnedPartition> Owned() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration LeaseLeft() override { return membership_->LeaseLeft(); }
  StatusOr<std::vector<Instance>> Instances() override { return membership_->Instances(); }
  StatusOr<std::vector<Assignment>> Assignments() override;
  ClusterStats Stats() override ABSL_LOCKS_EXCLUDED(mu_);

  void Beat() { membership_->Beat(); }
  Status Mirror() { return mirror_->Flush(); }
  // One look, and what follows from it. Threads: one at a time.
  void Turn() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // What a look found.
  struct Picture {
    std::vector<std::string> instances;
    std::map<SourceKey, Assignment> assignments;
  };

  ClusterNode(Engine& engine, const ClusterOptions& options, bool threads, Clock& clock)
      : engine_(engine), options_(options), threads_(threads), clock_(clock) {}
  Status Join(MetaStore& meta) ABSL_LOCKS_EXCLUDED(mu_);

  bool Owns(const SourceKey& source) override ABSL_LOCKS_EXCLUDED(mu_);
  bool MayAcknowledge(const SourceKey& source) override ABSL_LOCKS_EXCLUDED(mu_);
  bool Serves(const SourceKey& source) ABSL_LOCKS_EXCLUDED(mu_);

  void Loop() ABSL_LOCKS_EXCLUDED(mu_);
  StatusOr<Picture> Look();
  void DropLost() ABSL_LOCKS_EXCLUDED(mu_);
  void Act(const Picture& picture) ABSL_LOCKS_EXCLUDED(mu_);
  Status Take(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_);
  Status HandOver(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_);
  Status LetGo(const SourceKey& partition);
  StatusOr<bool> Continues(const Ownership& ownership);
  // False: it was not served.
  bool StopServing(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_);
  void Note(std::string_view what, const SourceKey& partition, const Status& outcome)
      ABSL_LOCKS_EXCLUDED(mu_);

  Engine& engine_;  // Borrowed.
  const ClusterOptions options_;
  const bool threads_;
  Clock& clock_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<OffsetMirror> mirror_;
  std::unique_ptr<MetaLedger> ledger_;

  // Of whoever turns; null before Start.
  Dispatcher* dispatcher_ = nullptr;
  ClusterHost* host_ = nullptr;
  std::set<SourceKey> let_go_;  // of others', by the dispatcher, in this process

  Mutex mu_;  // Never held across calls of the Meta, the dispatcher or the host.
  CondVar wake_;
  std::map<SourceKey, OwnedPartition> served_ ABSL_GUARDED_BY(mu_);
  ClusterStats stats_ ABSL_GUARDED_BY(mu_);
  absl::Duration looked_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Status> left_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace holdfast
