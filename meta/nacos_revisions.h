// NacosRevisions: the revisions that this process gives out and has seen. Nacos counts nothing over
// its configs, so each process counts by itself: a new revision is above every one that it has seen
// anywhere. Those of one key therefore only rise, whoever writes; those of one process are in order
// over all keys; those of two processes are where the one has seen what the other wrote.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "holdfast/clock.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"

namespace holdfast {

// Threads: any.
class NacosRevisions {
 public:
  // Borrows `clock`, which outlives it. Of the newest `keys_max` keys it knows what was seen.
  explicit NacosRevisions(Clock& clock, size_t keys_max = 100'000)
      : clock_(clock), keys_max_(keys_max) {}

  // A write that is under way until this goes.
  class Write {
   public:
    Write(NacosRevisions& revisions, uint64_t revision)
        : revisions_(revisions), revision_(revision) {}
    ~Write() { revisions_.End(revision_); }
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;
    uint64_t revision() const { return revision_; }

   private:
    NacosRevisions& revisions_;  // Borrowed; outlives every write.
    const uint64_t revision_;
  };
  Write Begin() ABSL_LOCKS_EXCLUDED(mu_);

  // A revision that is above all that were given out or seen. What was given out before is not
  // under way any more. Errors: kUnavailable  a write is still under way at the deadline
  StatusOr<uint64_t> Settle(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);

  // The same for what was settled at `settled`, after more was seen; that one again where a write
  // of this process has begun since.
  uint64_t Cover(uint64_t settled) ABSL_LOCKS_EXCLUDED(mu_);

  // The config of `key` stands at `revision`, or stood there.
  void Saw(std::string_view key, uint64_t revision) ABSL_LOCKS_EXCLUDED(mu_);
  // The newest revision that it was seen at; 0: none.
  uint64_t SeenOf(std::string_view key) ABSL_LOCKS_EXCLUDED(mu_);
  // The same of every key that starts with `prefix`.
  std::map<std::string, uint64_t> SeenUnder(std::string_view prefix) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void End(uint64_t revision) ABSL_LOCKS_EXCLUDED(mu_);

  Clock& clock_;
  const size_t keys_max_;
  Mutex mu_;
  CondVar ended_;
  uint64_t newest_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t begun_ ABSL_GUARDED_BY(mu_) = 0;  // the newest write
  std::set<uint64_t> under_way_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, uint64_t, std::less<>> seen_ ABSL_GUARDED_BY(mu_);
  // The same, by revision.
  // The same, by revision.
  std::map<uint64_t, std::set<std::string>> keys_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast
