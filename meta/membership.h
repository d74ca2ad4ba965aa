// Membership: one instance among those that share a Meta: that it lives, and which partitions are
// its own.
//
//   /em/instances/<instance>                               goes with the instance's lease
//   /em/assignments/<topic>/<incarnation>/<partition>      whose it is, and since which join
//
// A partition is taken by one transaction: the assignment stands where it was read, its owner's
// entry is gone or of a later join, and our own entry is there. The revision of that write is the
// fencing token: it only rises, whatever clocks and boots do.
//
// A lease is not a lock. Whoever owned a partition may wake up after another took it, so
//   - what it writes to the Meta goes under Fence(), and is refused once the assignment moved;
//   - what it does elsewhere asks Owns() just before. Its own deadline is counted from before its
//     last request was sent, so it ends before the lease does; what is left is the time from that
//     answer to the effect (a process that is stopped exactly there; see docs/architecture).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/clock.h"
#include "holdfast/cluster.h"
#include "holdfast/dispatcher.h"
#include "holdfast/log_sink.h"
#include "holdfast/meta_store.h"
#include "holdfast/offset_store.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "meta/meta_writer.h"

namespace holdfast {

struct MembershipOptions {
  std::string instance;  // not empty; of no other that lives
  std::string address;   // where others reach it; kept as given
  // How long after its last sign of life others may take what it owned. 1 s .. 1 h.
  absl::Duration lease_ttl = absl::Seconds(10);
  // It stops this long before its lease may end. 0 .. half of lease_ttl.
  absl::Duration margin = absl::Seconds(1);
  LogSink* log = nullptr;  // borrowed
  // False: no thread is started, and the host calls Beat() three times a lease_ttl.
  bool thread = true;
};

// Those that live, by id.
StatusOr<std::vector<Instance>> ReadInstances(MetaStore& meta);

struct Roster {
  std::vector<Instance> instances;      // those that live, by id
  std::vector<Assignment> assignments;  // of all partitions that were ever taken, by partition
};
// By one list of each.
StatusOr<Roster> ReadRoster(MetaStore& meta);

// A partition that this instance took and did not lose, surely its own or not.
struct Ownership {
  SourceKey partition;
  uint64_t token = 0;
  // Revision of the assignment that it took the place of: an owner before this one, or a release.
  // 0: there was none, or it is not known.
  uint64_t replaced = 0;
};

// Threads: any. The destructor needs every other call to have returned.
class Membership final : public OwnershipGuard {
 public:
  // `meta` and `clock` are borrowed and outlive it. `nonce`: as MetaWriter's.
  // Errors: kInvalidArgument  an option is out of range
  //         kAlreadyExists    an instance of this id lives, or did within its lease
  //         kUnavailable      the Meta
  static StatusOr<std::unique_ptr<Membership>> Join(MetaStore& meta, uint64_t nonce, Clock& clock,
                                                    const MembershipOptions& options);
  ~Membership() override { (void)Leave(); }  // what does not arrive ends with the lease
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // What it owned is free at once, and nothing is its own any more. Again it does nothing.
  // Errors: kUnavailable  the Meta: it is free when the lease ends
  Status Leave() ABSL_LOCKS_EXCLUDED(mu_);

  // Takes a partition that is nobody's, or whose owner is gone; its token. The token that is held
  // already, if it is its own.
  // Errors: kAborted            kConflict: another that lives owns it
  //         kFailedPrecondition kNotReady: its own lease was lost; it joins again by itself
  //         kUnavailable        the Meta
  StatusOr<uint64_t> Acquire(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing happens if it is not its own. Errors: kUnavailable
  Status Release(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether the partition is surely its own now. Costs no request.
  bool Owns(const SourceKey& partition) override ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Ownership> Owned() ABSL_LOCKS_EXCLUDED(mu_);
  // How long its lease is surely held from now on; zero: it may have ended.
  absl::Duration LeaseLeft() ABSL_LOCKS_EXCLUDED(mu_);
  // Under which a transaction of the owner goes to the Meta.
  // Errors: kPermissionDenied  kStaleOwner: it is not its own
  StatusOr<MetaCondition> Fence(const SourceKey& partition) ABSL_LOCKS_EXCLUDED(mu_);

  StatusOr<std::vector<Instance>> Instances() { return ReadInstances(meta_); }
  StatusOr<Roster> ReadRoster() { return holdfast::ReadRoster(meta_); }

  // Keeps the lease, or joins again when it was lost.
  void Beat() ABSL_LOCKS_EXCLUDED(mu_, beat_mu_);

 private:
  struct Joined {
    uint64_t lease = 0;
    uint64_t revision = 0;  // of the entry under /em/instances/
  };
  Membership(MetaStore& meta, uint64_t nonce, Clock& clock, const MembershipOptions& options)
      : meta_(meta), writer_(meta, nonce), clock_(clock), options_(options) {}

  // A new lease and entry.
  Status Enter() ABSL_LOCKS_EXCLUDED(mu_);
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);
  void Lose() ABSL_LOCKS_EXCLUDED(mu_);
  bool OwnsLocked(const SourceKey& partition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  MetaStore& meta_;
  MetaWriter writer_;
  Clock& clock_;
  const MembershipOptions options_;

  Mutex beat_mu_;  // Taken first: one beat at a time. Held across calls of the Meta.
  Mutex mu_;       // Never held across one.
  CondVar wake_;
  std::optional<Joined> joined_ ABSL_GUARDED_BY(mu_);  // none: the lease was lost
  absl::Duration deadline_ ABSL_GUARDED_BY(mu_);       // until when the lease is surely held
  std::map<SourceKey, Ownership> owned_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace holdfast
