#include "meta/membership.h"

#include <set>
#include <utility>

#include "meta/meta_key.h"
#include "meta/meta_text.h"

namespace holdfast {
namespace {

constexpr std::string_view kInstances = "instances", kAssignments = "assignments";
constexpr int kBeatsOfATtl = 3;

Status CheckOptions(const MembershipOptions& options) {
  if (options.instance.empty()) return Invalid("instance: empty; every instance needs an id");
  if (options.lease_ttl < absl::Seconds(1) || options.lease_ttl > absl::Hours(1)) {
    return Invalid("lease_ttl: {} is out of range, 1 s .. 1 h",
                   absl::FormatDuration(options.lease_ttl));
  }
  if (options.margin < absl::ZeroDuration() || options.margin > options.lease_ttl / 2) {
    return Invalid("margin: {} is out of range, 0 .. half of lease_ttl",
                   absl::FormatDuration(options.margin));
  }
  return absl::OkStatus();
}

std::string AssignmentKey(const SourceKey& partition) {
  return MetaSourceKey(kAssignments, partition);
}

// Whose a partition is: "<joined> <instance>".
struct Owner {
  std::string instance;
  uint64_t joined = 0;
};

std::string EncodeOwner(const Owner& owner) {
  return EncodeMetaText({owner.joined}, owner.instance);
}

StatusOr<Owner> OwnerIn(const MetaEntry& entry) {
  ASSIGN_OR_RETURN(MetaText text, DecodeMetaText(entry, 1));
  return Owner{std::move(text.text), text.numbers[0]};
}

Status LostLease() {
  return WrongState(Detail::kNotReady, "this instance has lost its lease and joins again");
}

}  // namespace

StatusOr<std::unique_ptr<Membership>> Membership::Join(MetaStore& meta, uint64_t nonce,
                                                       Clock& clock,
                                                       const MembershipOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Membership> membership(new Membership(meta, nonce, clock, options));
  RETURN_IF_ERROR(membership->Enter());
  if (options.thread) {
    membership->thread_ = std::thread([self = membership.get()] { self->Loop(); });
  }
  return membership;
}

Status Membership::Leave() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  std::optional<Joined> joined;
  {
    MutexLock lock(mu_);
    joined = std::exchange(joined_, std::nullopt);
    owned_.clear();
  }
  // Takes the entry along.
  return joined.has_value() ? meta_.RevokeLease(joined->lease, {}) : absl::OkStatus();
}

Status Membership::Enter() {
  const absl::Duration sent = clock_.Now();
  ASSIGN_OR_RETURN(const MetaLease lease, meta_.GrantLease(options_.lease_ttl, {}));
  const std::string key = MetaKey(kInstances, {options_.instance});
  const StatusOr<uint64_t> entered =
      writer_.Transact({.conditions = {{.key = key, .must = MetaCondition::Must::kBeAbsent}},
                        .changes = {{.kind = MetaChange::Kind::kPut,
                                     .key = key,
                                     .value = EncodeMetaText({}, options_.address),
                                     .lease = lease.id}}});
  if (!entered.ok()) {
    (void)meta_.RevokeLease(lease.id, {});  // it would end by itself, too
    if (MetaResultOf(entered.status()) != MetaResult::kConflict) return entered.status();
    return AlreadyExists(
        "instance {}: one of this id lives, or did within its lease: wait for that, or use another",
        options_.instance);
  }
  MutexLock lock(mu_);
  joined_ = Joined{lease.id, *entered};
  deadline_ = sent + std::min(lease.ttl, options_.lease_ttl);
  return absl::OkStatus();
}

void Membership::Loop() {
  const absl::Duration every = options_.lease_ttl / kBeatsOfATtl;
  absl::Duration next = clock_.Now() + every;
  for (;;) {
    {
      MutexLock lock(mu_);
      while (!stopping_ && clock_.Now() < next) wake_.WaitFor(mu_, clock_.Until(next));
      if (stopping_) return;
    }
    Beat();
    next = clock_.Now() + every;
  }
}

void Membership::Beat() {
  MutexLock beat(beat_mu_);
  std::optional<Joined> joined;
  {
    MutexLock lock(mu_);
    joined = joined_;
  }
  if (!joined.has_value()) {
    const Status entered = Enter();
    if (!entered.ok() && options_.log != nullptr) {
      options_.log->Log(LogLevel::kWarning, fmt::format("instance {} cannot join again yet: {}",
                                                        options_.instance, Message(entered)));
    }
    return;
  }
  const absl::Duration sent = clock_.Now();
  const StatusOr<MetaLease> kept =
      meta_.KeepAlive(joined->lease, {.timeout = options_.lease_ttl / kBeatsOfATtl});
  if (MetaResultOf(kept.status()) == MetaResult::kNotFound) return Lose();
  // Not reached: the lease goes on until the deadline, and longer if a later beat finds it there,
  // because then nobody can have taken anything.
  if (!kept.ok()) return;
  MutexLock lock(mu_);
  deadline_ = std::max(deadline_, sent + std::min(kept->ttl, options_.lease_ttl));
}

void Membership::Lose() {
  size_t lost = 0;
  {
    MutexLock lock(mu_);
    joined_.reset();
    lost = owned_.size();
    owned_.clear();
  }
  if (options_.log != nullptr) {
    options_.log->Log(LogLevel::kWarning,
                      fmt::format("instance {} lost its lease, and {} partitions with it",
                                  options_.instance, lost));
  }
}

StatusOr<uint64_t> Membership::Acquire(const SourceKey& partition) {
  std::optional<Joined> self;
  {
    MutexLock lock(mu_);
    self = joined_;
    const auto owned = owned_.find(partition);
    if (owned != owned_.end()) return owned->second.token;
  }
  if (!self.has_value()) return LostLease();
  const std::string key = AssignmentKey(partition);
  MetaTransaction take{
      .conditions = {{.key = key, .must = MetaCondition::Must::kBeAbsent},
                     {.key = MetaKey(kInstances, {options_.instance}), .revision = self->revision}},
      .changes = {
          {.kind = MetaChange::Kind::kPut,
           .key = key,
           .value = EncodeOwner({.instance = options_.instance, .joined = self->revision})}}};
  uint64_t replaced = 0;
  const StatusOr<MetaEntry> found = meta_.Get(key, {});
  if (found.ok()) {
    take.conditions[0] = {.key = key, .revision = found->revision};
    ASSIGN_OR_RETURN(const Owner owner, OwnerIn(*found));
    // Its own of this join: taken by a request whose answer was lost, and from whom is not known.
    if (owner.joined != self->revision) replaced = found->revision;
    if (!owner.instance.empty() && owner.joined != self->revision) {
      const std::string owner_key = MetaKey(kInstances, {owner.instance});
      const StatusOr<MetaEntry> entry = meta_.Get(owner_key, {});
      if (entry.ok() && entry->revision == owner.joined) {
        return MakeStatus(StatusCode::kAborted, Detail::kConflict,
                          fmt::format("instance {} owns it", owner.instance));
      }
      // Of a later join: what it owned before is not its own any more.
      if (entry.ok()) {
        if (owner.instance != options_.instance) {
          take.conditions.push_back({.key = owner_key, .revision = entry->revision});
        }
      } else if (MetaResultOf(entry.status()) == MetaResult::kNotFound) {
        take.conditions.push_back({.key = owner_key, .must = MetaCondition::Must::kBeAbsent});
      } else {
        return entry.status();
      }
    }
  } else if (MetaResultOf(found.status()) != MetaResult::kNotFound) {
    return found.status();
  }
  const StatusOr<uint64_t> taken = writer_.Transact(take);
  if (MetaResultOf(taken.status()) == MetaResult::kConflict) {
    return MakeStatus(StatusCode::kAborted, Detail::kConflict,
                      "another instance was faster, or this one lost its lease");
  }
  RETURN_IF_ERROR(taken.status());
  MutexLock lock(mu_);
  if (!joined_.has_value() || joined_->revision != self->revision) return LostLease();
  owned_[partition] = {.partition = partition, .token = *taken, .replaced = replaced};
  return *taken;
}

Status Membership::Release(const SourceKey& partition) {
  uint64_t token = 0;
  {
    MutexLock lock(mu_);
    const auto owned = owned_.find(partition);
    if (owned == owned_.end()) return absl::OkStatus();
    token = owned->second.token;
    owned_.erase(owned);  // first: nothing may be done for it from here on
  }
  const Status released = writer_.Put(AssignmentKey(partition), token, EncodeOwner({})).status();
  // It was taken by another already.
  return MetaResultOf(released) == MetaResult::kConflict ? absl::OkStatus() : released;
}

bool Membership::OwnsLocked(const SourceKey& partition) {
  return joined_.has_value() && clock_.Now() + options_.margin < deadline_ &&
         owned_.contains(partition);
}

bool Membership::Owns(const SourceKey& partition) {
  MutexLock lock(mu_);
  return OwnsLocked(partition);
}

std::vector<Ownership> Membership::Owned() {
  MutexLock lock(mu_);
  std::vector<Ownership> owned;
  for (const auto& [partition, ownership] : owned_) owned.push_back(ownership);
  return owned;
}

absl::Duration Membership::LeaseLeft() {
  MutexLock lock(mu_);
  if (!joined_.has_value()) return absl::ZeroDuration();
  return std::max(deadline_ - clock_.Now(), absl::ZeroDuration());
}

StatusOr<MetaCondition> Membership::Fence(const SourceKey& partition) {
  MutexLock lock(mu_);
  if (!OwnsLocked(partition)) {
    return MakeStatus(StatusCode::kPermissionDenied, Detail::kStaleOwner,
                      "the partition is not, or not surely, this instance's");
  }
  return MetaCondition{.key = AssignmentKey(partition), .revision = owned_.at(partition).token};
}

StatusOr<std::vector<Instance>> ReadInstances(MetaStore& meta) {
  ASSIGN_OR_RETURN(const MetaList list, meta.List(MetaPrefix(kInstances, {}), {}));
  std::vector<Instance> instances;
  for (const MetaEntry& entry : list.entries) {
    const auto id = ParseMetaKey(kInstances, 1, entry.key);
    if (!id.ok()) continue;
    ASSIGN_OR_RETURN(MetaText text, DecodeMetaText(entry, 0));
    instances.push_back({id->front(), std::move(text.text), entry.revision});
  }
  return instances;
}

StatusOr<Roster> ReadRoster(MetaStore& meta) {
  ASSIGN_OR_RETURN(const MetaList list, meta.List(MetaPrefix(kAssignments, {}), {}));
  Roster roster;
  ASSIGN_OR_RETURN(roster.instances, ReadInstances(meta));
  std::set<std::pair<std::string, uint64_t>> alive;
  for (const Instance& instance : roster.instances) alive.emplace(instance.id, instance.joined);
  for (const MetaEntry& entry : list.entries) {
    const StatusOr<SourceKey> partition = ParseSourceKey(kAssignments, entry.key);
    if (!partition.ok()) continue;
    ASSIGN_OR_RETURN(const Owner owner, OwnerIn(entry));
    roster.assignments.push_back({.partition = *partition,
                                  .instance = owner.instance,
                                  .token = entry.revision,
                                  .alive = alive.contains({owner.instance, owner.joined})});
  }
  return roster;
}

}  // namespace holdfast
