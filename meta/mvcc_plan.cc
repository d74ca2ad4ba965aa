#include "meta/mvcc_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace holdfast {
namespace {

constexpr absl::Duration kLeaseTtlMax = absl::Seconds(9'000'000'000);

Status CheckTxn(const MvccTxn& txn, const MvccPlanLimits& limits, size_t& bytes);

bool EmptyKey(const KeyRange& range) { return range.begin.empty() && !range.end.empty(); }

Status CheckOp(const MvccOp& op, const MvccPlanLimits& limits, size_t& bytes) {
  switch (op.kind) {
    case MvccOp::Kind::kRead:
      return EmptyKey(op.read.range) ? Refuse(MvccRefusal::kEmptyKey) : absl::OkStatus();
    case MvccOp::Kind::kDelete:
      return EmptyKey(op.erased) ? Refuse(MvccRefusal::kEmptyKey) : absl::OkStatus();
    case MvccOp::Kind::kTxn:
      return CheckTxn(op.branches.front(), limits, bytes);
    case MvccOp::Kind::kPut:
      break;
  }
  if (op.key.empty()) return Refuse(MvccRefusal::kEmptyKey);
  if (op.key.size() > limits.key_bytes_max) return Refuse(MvccRefusal::kTooLarge);
  if (op.keep_value && !op.value.empty()) return Refuse(MvccRefusal::kValueGiven);
  if (op.keep_lease && op.lease != 0) return Refuse(MvccRefusal::kLeaseGiven);
  bytes += op.key.size() + op.value.size();
  return absl::OkStatus();
}

// What the operations of one branch, those of nested transactions included, may change.
struct Changed {
  std::vector<std::string> puts;
  std::vector<KeyRange> erased;
};

// Either branch of a nested transaction may run, so both count; they do not count against each
// other.
Status CollectChanged(const std::vector<MvccOp>& ops, Changed& changed) {
  for (const MvccOp& op : ops) {
    if (op.kind == MvccOp::Kind::kPut) {
      changed.puts.push_back(op.key);
    } else if (op.kind == MvccOp::Kind::kDelete) {
      changed.erased.push_back(op.erased);
    }
  }
  std::sort(changed.puts.begin(), changed.puts.end());
  for (const MvccOp& op : ops) {
    if (op.kind != MvccOp::Kind::kTxn) continue;
    Changed success, failure;
    RETURN_IF_ERROR(CollectChanged(op.branches.front().success, success));
    RETURN_IF_ERROR(CollectChanged(op.branches.front().failure, failure));
    std::vector<std::string> either;
    std::set_union(success.puts.begin(), success.puts.end(), failure.puts.begin(),
                   failure.puts.end(), std::back_inserter(either));
    changed.puts.insert(changed.puts.end(), either.begin(), either.end());
    std::sort(changed.puts.begin(), changed.puts.end());
    for (const Changed* branch : {&success, &failure}) {
      changed.erased.insert(changed.erased.end(), branch->erased.begin(), branch->erased.end());
    }
  }
  if (std::adjacent_find(changed.puts.begin(), changed.puts.end()) != changed.puts.end()) {
    return Refuse(MvccRefusal::kDuplicateKey);
  }
  return absl::OkStatus();
}

Status CheckBranch(const std::vector<MvccOp>& ops, const MvccPlanLimits& limits, size_t& bytes) {
  if (ops.size() > limits.ops_max) return Refuse(MvccRefusal::kTooManyOps);
  for (const MvccOp& op : ops) RETURN_IF_ERROR(CheckOp(op, limits, bytes));
  Changed changed;
  RETURN_IF_ERROR(CollectChanged(ops, changed));
  for (const KeyRange& erased : changed.erased) {
    const auto first = std::lower_bound(changed.puts.begin(), changed.puts.end(), erased.begin);
    if (first != changed.puts.end() && erased.Holds(*first)) {
      return Refuse(MvccRefusal::kDuplicateKey);
    }
  }
  return absl::OkStatus();
}

Status CheckTxn(const MvccTxn& txn, const MvccPlanLimits& limits, size_t& bytes) {
  if (txn.compares.size() > limits.ops_max) return Refuse(MvccRefusal::kTooManyOps);
  for (const MvccCompare& compare : txn.compares) {
    if (EmptyKey(compare.range)) return Refuse(MvccRefusal::kEmptyKey);
    bytes += compare.range.begin.size() + compare.value.size();
  }
  RETURN_IF_ERROR(CheckBranch(txn.success, limits, bytes));
  RETURN_IF_ERROR(CheckBranch(txn.failure, limits, bytes));
  return bytes > limits.request_bytes_max ? Refuse(MvccRefusal::kTooLarge) : absl::OkStatus();
}

template <typename Value>
bool Holds(MvccCompare::Op op, const Value& left, const Value& right) {
  switch (op) {
    case MvccCompare::Op::kEqual:
      return left == right;
    case MvccCompare::Op::kGreater:
      return left > right;
    case MvccCompare::Op::kLess:
      return left < right;
    case MvccCompare::Op::kNotEqual:
      return left != right;
  }
  return false;
}

bool Holds(const MvccCompare& compare, const MvccEntry& entry) {
  const auto number = [&](uint64_t value) {
    return Holds(compare.op, static_cast<int64_t>(value), compare.number);
  };
  switch (compare.target) {
    case MvccCompare::Target::kVersion:
      return number(entry.version);
    case MvccCompare::Target::kCreate:
      return number(entry.create_revision);
    case MvccCompare::Target::kMod:
      return number(entry.mod_revision);
    case MvccCompare::Target::kLease:
      return number(entry.lease);
    case MvccCompare::Target::kValue:
      return Holds(compare.op, entry.value, compare.value);
  }
  return false;
}

bool Holds(const MvccCompare& compare, const MvccState& state) {
  bool any = false, all = true;
  state.Visit(compare.range, [&](const MvccEntryPtr& entry) {
    any = true;
    all = Holds(compare, *entry);
    return all;
  });
  if (any) return all;
  return compare.target != MvccCompare::Target::kValue && Holds(compare, MvccEntry());
}

// Carries operations out beside the state.
class Planner {
 public:
  explicit Planner(const MvccState& state) : state_(state), revision_(state.revision() + 1) {}

  StatusOr<MvccPlan> Plan(const MvccTxn& txn) {
    MvccPlan plan;
    ASSIGN_OR_RETURN(MvccOpResult result, Run(txn));
    plan.result.succeeded = result.succeeded;
    plan.result.results = std::move(result.results);
    plan.result.revision = changes_.empty() ? state_.revision() : revision_;
    plan.changes = std::move(changes_);
    return plan;
  }

 private:
  // All compares look at the state before the transaction, those of nested ones too.
  StatusOr<MvccOpResult> Run(const MvccTxn& txn) {
    MvccOpResult result{.kind = MvccOp::Kind::kTxn};
    result.succeeded =
        std::all_of(txn.compares.begin(), txn.compares.end(),
                    [&](const MvccCompare& compare) { return Holds(compare, state_); });
    for (const MvccOp& op : result.succeeded ? txn.success : txn.failure) {
      ASSIGN_OR_RETURN(MvccOpResult one, Run(op));
      result.results.push_back(std::move(one));
    }
    return result;
  }

  StatusOr<MvccOpResult> Run(const MvccOp& op) {
    switch (op.kind) {
      case MvccOp::Kind::kRead:
        return Read(op.read);
      case MvccOp::Kind::kPut:
        return Put(op);
      case MvccOp::Kind::kDelete:
        return Delete(op);
      case MvccOp::Kind::kTxn:
        return Run(op.branches.front());
    }
    return Refuse(MvccRefusal::kTooManyOps);
  }

  StatusOr<MvccOpResult> Put(const MvccOp& op) {
    MvccOpResult result{.kind = op.kind};
    const MvccEntryPtr before = state_.Find(op.key);
    if ((op.keep_value || op.keep_lease) && before == nullptr) {
      return Refuse(MvccRefusal::kKeyNotFound);
    }
    const uint64_t lease = op.keep_lease ? before->lease : op.lease;
    if (op.lease != 0 && !state_.HasLease(op.lease)) return Refuse(MvccRefusal::kLeaseNotFound);
    if (op.previous && before != nullptr) result.previous.push_back(before);
    auto entry = std::make_shared<const MvccEntry>(
        MvccEntry{.key = op.key,
                  .value = op.keep_value ? before->value : op.value,
                  .create_revision = before == nullptr ? revision_ : before->create_revision,
                  .mod_revision = revision_,
                  .version = before == nullptr ? 1 : before->version + 1,
                  .lease = lease});
    pending_[op.key] = entry;
    changes_.push_back(MvccPut{.entry = std::move(entry)});
    return result;
  }

  StatusOr<MvccOpResult> Delete(const MvccOp& op) {
    MvccOpResult result{.kind = op.kind};
    state_.Visit(op.erased, [&](const MvccEntryPtr& entry) {
      // Two operations may delete over each other.
      const auto [place, inserted] = pending_.try_emplace(entry->key, nullptr);
      if (!inserted) return true;
      ++result.deleted;
      if (op.previous) result.previous.push_back(entry);
      changes_.push_back(MvccDelete{.key = entry->key, .revision = revision_});
      return true;
    });
    return result;
  }

  // Sees what the operations before it changed, unless it asks for an older revision.
  StatusOr<MvccOpResult> Read(const MvccRead& read) {
    MvccOpResult result{.kind = MvccOp::Kind::kRead};
    if (pending_.empty() || read.revision != 0) {
      ASSIGN_OR_RETURN(result.read, state_.Read(read));
      return result;
    }
    std::map<std::string_view, MvccEntryPtr> found;
    state_.Visit(read.range, [&](const MvccEntryPtr& entry) {
      found.emplace(entry->key, entry);
      return true;
    });
    for (auto key = pending_.lower_bound(read.range.begin);
         key != pending_.end() && read.range.Holds(key->first); ++key) {
      if (key->second == nullptr) {
        found.erase(key->first);
      } else {
        found.insert_or_assign(key->first, key->second);
      }
    }
    result.read.count = found.size();
    for (const auto& [key, entry] : found) {
      if (read.count_only) break;
      if (read.limit != 0 && result.read.entries.size() == read.limit) {
        result.read.more = true;
        break;
      }
      result.read.entries.push_back(entry);
    }
    return result;
  }

  const MvccState& state_;
  const uint64_t revision_;
  std::vector<MvccChange> changes_;
  std::map<std::string, MvccEntryPtr, std::less<>> pending_;  // null: deleted
};

}  // namespace

StatusOr<MvccPlan> PlanTxn(const MvccState& state, const MvccTxn& txn,
                           const MvccPlanLimits& limits) {
  size_t bytes = 0;
  RETURN_IF_ERROR(CheckTxn(txn, limits, bytes));
  return Planner(state).Plan(txn);
}

StatusOr<MvccChange> PlanGrant(const MvccState& state, uint64_t id, absl::Duration ttl) {
  if (ttl > kLeaseTtlMax || ttl <= absl::ZeroDuration()) {
    return Refuse(MvccRefusal::kLeaseTtlTooLarge);
  }
  if (state.HasLease(id)) return Refuse(MvccRefusal::kLeaseExists);
  return MvccLeaseGrant{.id = id, .ttl = ttl};
}

StatusOr<MvccPlan> PlanLeaseEnd(const MvccState& state, uint64_t id,
                                const MvccEraseLimits& limits) {
  if (!state.HasLease(id)) return Refuse(MvccRefusal::kLeaseNotFound);
  MvccPlan plan;
  const uint64_t revision = state.revision() + 1;
  const std::set<std::string>& keys = state.KeysOf(id);
  size_t bytes = 0;
  for (const std::string& key : keys) {
    bytes += key.size() + kErasedKeyBytes;
    if (!plan.changes.empty() &&
        (plan.changes.size() == limits.keys_max || bytes > limits.bytes_max)) {
      break;
    }
    plan.changes.push_back(MvccDelete{.key = key, .revision = revision});
  }
  plan.result.revision = keys.empty() ? state.revision() : revision;
  if (plan.changes.size() == keys.size()) plan.changes.push_back(MvccLeaseEnd{.id = id});
  return plan;
}

}  // namespace holdfast
