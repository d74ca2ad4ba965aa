// MvccState: keys with all versions of a window of revisions, leases, and the history that watches
// read. PURE: no lock, no clock, no disk; the same changes at the same times lead to the same
// state.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "meta/mvcc_types.h"

namespace holdfast {

// How far back old versions and changes are kept: what is over any of the bounds is compacted.
struct MvccHistoryLimits {
  size_t revisions_max = 10'000;
  absl::Duration age_max = absl::Minutes(5);
  size_t bytes_max = size_t{64} << 20;  // of the keys and values that it holds
};

// State changes in Apply and nowhere else (but for what time does: KeepAlive, Compact and Age
// change nothing that a restart brings back). Times are monotonic. Threads: one at a time.
class MvccState {
 public:
  explicit MvccState(const MvccHistoryLimits& limits) : limits_(limits) {}

  // Changes that land at one revision are applied one after the other, nothing in between.
  void Apply(const MvccChange& change, absl::Duration now);
  // What was applied until now came from a journal. Every lease has its full ttl again, and the
  // history begins behind it. The next revision is more than `skip` above the newest.
  void BeginServing(uint64_t skip, absl::Duration now);
  // Forgets everything.
  void Reset();

  uint64_t revision() const { return revision_; }
  // The oldest revision that can be read.
  uint64_t compacted_revision() const { return compacted_; }
  // The oldest revision that a watch can start from.
  uint64_t history_begin() const { return history_begin_; }
  size_t key_count() const { return live_count_; }

  // Null if it is not there now.
  MvccEntryPtr Find(std::string_view key) const;
  // Errors: kCompacted, kFutureRevision
  StatusOr<MvccReadResult> Read(const MvccRead& read) const;
  // Calls `visit` for every live entry of the range in order of keys, until it returns false.
  void Visit(const KeyRange& range, const std::function<bool(const MvccEntryPtr&)>& visit) const;

  // The changes of `range` at revisions `from` up to `through`, of at most about `events_max`
  // events, but always whole revisions.
  struct Changes {
    std::vector<MvccEvent> events;
    uint64_t next = 0;  // what comes behind them begins here
  };
  // Errors: kCompacted  `from` is below history_begin()
  StatusOr<Changes> ChangesOf(const KeyRange& range, uint64_t from, uint64_t through,
                              size_t events_max) const;
  // Forgets what is only needed to read below `revision`, or to watch from below it.
  // Errors: kCompacted, kFutureRevision
  Status Compact(uint64_t revision);
  // Compacts what has become too old.
  void Age(absl::Duration now);

  bool HasLease(uint64_t id) const { return leases_.contains(id); }
  std::optional<MvccLeaseInfo> LeaseInfo(uint64_t id, absl::Duration now) const;
  std::vector<uint64_t> Leases() const;  // by id
  const std::set<std::string>& KeysOf(uint64_t lease) const;
  // Returns its ttl. Errors: kLeaseNotFound
  StatusOr<absl::Duration> KeepAlive(uint64_t id, absl::Duration now);
  // A lease that has ended by `now` and is still there; 0: none.
  uint64_t EndedLease(absl::Duration now) const;
  // When the next one ends; infinite: there is none.
  absl::Duration NextLeaseEnd() const;

 private:
  struct Lease {
    absl::Duration ttl, deadline;
  };
  struct Revised {
    uint64_t revision = 0;
    absl::Duration at;
    size_t bytes = 0;
    std::vector<MvccEvent> events;
  };
  // Versions of one key, oldest first; never empty. Only the last may be the live one.
  using Versions = std::vector<MvccEntryPtr>;
  using Keys = std::map<std::string, Versions, std::less<>>;

  void ApplyPut(const MvccPut& put, absl::Duration now);
  void ApplyDelete(const MvccDelete& erased, absl::Duration now);
  void SetDeadline(uint64_t id, Lease& lease, absl::Duration deadline);
  void Attach(const MvccEntry& entry);
  void Detach(const MvccEntry& entry);
  void AddToHistory(MvccEvent event, absl::Duration now);
  // The history is within its bounds again.
  void Bound();
  void CompactTo(uint64_t revision);
  void Trim(const std::string& key, uint64_t revision);

  const MvccHistoryLimits limits_;
  uint64_t revision_ = 1;  // of an empty store, as etcd counts
  uint64_t compacted_ = 0;
  uint64_t history_begin_ = 1;
  bool serving_ = false;
  Keys keys_;
  size_t live_count_ = 0;
  std::deque<Revised> history_;  // by revision
  size_t history_bytes_ = 0;
  absl::flat_hash_map<uint64_t, Lease> leases_;
  std::set<std::pair<absl::Duration, uint64_t>> lease_ends_;  // deadline, id
  // Of live entries, by their lease, whether it is known (yet) or not.
  absl::flat_hash_map<uint64_t, std::set<std::string>> keys_of_lease_;
  const std::set<std::string> no_keys_;
};

}  // namespace holdfast
