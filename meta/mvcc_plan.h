// What a transaction, or the end of a lease, comes down to: its answer and the changes to apply.
// PURE: it reads the state and changes nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "meta/mvcc_state.h"
#include "meta/mvcc_types.h"

namespace holdfast {

struct MvccEraseLimits {
  size_t keys_max = 10'000;
  size_t bytes_max = size_t{1} << 20;  // each key counts kErasedKeyBytes more
};
inline constexpr size_t kErasedKeyBytes = 32;

struct MvccPlanLimits {
  size_t key_bytes_max = 64 * 1024;
  size_t ops_max = 128;                    // compares, or operations of a branch
  size_t request_bytes_max = 1536 * 1024;  // keys and values together
};

struct MvccPlan {
  MvccTxnResult result;
  std::vector<MvccChange> changes;  // all at result.revision; empty: nothing is written
};

// Errors: kEmptyKey, kDuplicateKey, kTooManyOps, kTooLarge, kKeyNotFound, kLeaseNotFound,
//         kValueGiven, kLeaseGiven, kCompacted, kFutureRevision
StatusOr<MvccPlan> PlanTxn(const MvccState& state, const MvccTxn& txn,
                           const MvccPlanLimits& limits);

// Errors: kLeaseExists, kLeaseTtlTooLarge
StatusOr<MvccChange> PlanGrant(const MvccState& state, uint64_t id, absl::Duration ttl);

// Deletes the keys of the lease at one revision, at least one and up to `limits` of them; the lease
// itself ends with the last. Errors: kLeaseNotFound
StatusOr<MvccPlan> PlanLeaseEnd(const MvccState& state, uint64_t id, const MvccEraseLimits& limits);

}  // namespace holdfast
