#include "runtime/cluster_node.h"

#include <algorithm>
#include <utility>

#include "journal/base/check.h"
#include "journal/base/duration_range.h"
#include "journal/base/seeded_rng.h"
#include "meta/meta_key.h"
#include "meta/meta_text.h"

namespace holdfast {
namespace {

constexpr std::string_view kHeld = "held";
constexpr absl::Duration kJoinAgain = absl::Milliseconds(200);

std::string NameOf(const SourceKey& partition) {
  return fmt::format("{}/{}/{}", partition.topic, partition.incarnation, partition.partition);
}

Status CheckOptions(const ClusterOptions& options) {
  if (options.instance.empty()) {
    return Invalid("instance: empty; every instance of a cluster needs a name of its own");
  }
  std::set<SourceKey> partitions;
  for (const SourceKey& partition : options.partitions) {
    if (partitions.insert(partition).second) continue;
    return Invalid("partitions: {} is named twice", NameOf(partition));
  }
  RETURN_IF_ERROR(CheckRange("lease_ttl", options.lease_ttl, {absl::Seconds(1), absl::Hours(1)}));
  RETURN_IF_ERROR(CheckRange("lease_margin", options.lease_margin,
                             {absl::ZeroDuration(), options.lease_ttl / 2}));
  RETURN_IF_ERROR(CheckRange("mirror_interval", options.mirror_interval,
                             {absl::Milliseconds(10), absl::Hours(1)}));
  RETURN_IF_ERROR(CheckRange("balance_interval", options.balance_interval,
                             {absl::Milliseconds(10), absl::Hours(1)}));
  return CheckRange("join_wait", options.join_wait, {absl::ZeroDuration(), absl::Hours(2)});
}

}  // namespace

StatusOr<std::unique_ptr<Cluster>> Cluster::Open(Engine& engine, const ClusterOptions& options) {
  MetaStore* const meta = engine.remote_meta();
  if (meta != nullptr) return OpenOn(engine, *meta, options);
  return Invalid(
      "shared.backend: the Meta of this engine is private to it, or a Nacos; a cluster needs the "
      "remote Meta");
}

StatusOr<std::unique_ptr<Cluster>> Cluster::OpenOn(Engine& engine, MetaStore& meta,
                                                   const ClusterOptions& options) {
  return ClusterNode::Open(engine, meta, options, /*threads=*/true);
}

StatusOr<std::unique_ptr<ClusterNode>> ClusterNode::Open(Engine& engine, MetaStore& meta,
                                                         const ClusterOptions& options,
                                                         bool threads) {
  RETURN_IF_ERROR(CheckOptions(options));
  Clock& clock = options.clock != nullptr ? *options.clock : RealClock();
  std::unique_ptr<ClusterNode> node(new ClusterNode(engine, options, threads, clock));
  RETURN_IF_ERROR(node->Join(meta));
  Membership& membership = *node->membership_;
  ASSIGN_OR_RETURN(node->mirror_, OffsetMirror::Open(engine, meta, membership, clock,
                                                     {.interval = options.mirror_interval,
                                                      .log = options.log,
                                                      .thread = threads}));
  node->ledger_ = std::make_unique<MetaLedger>(meta, EntropySeed(), &membership);
  return node;
}

// A predecessor of this name that was killed has its lease for a while yet.
Status ClusterNode::Join(MetaStore& meta) {
  const absl::Duration until = clock_.Now() + options_.join_wait;
  for (;;) {
    auto joined = Membership::Join(meta, EntropySeed(), clock_,
                                   {.instance = options_.instance,
                                    .address = options_.address,
                                    .lease_ttl = options_.lease_ttl,
                                    .margin = options_.lease_margin,
                                    .log = options_.log,
                                    .thread = threads_});
    if (joined.ok()) {
      membership_ = *std::move(joined);
      return absl::OkStatus();
    }
    const absl::Duration again = clock_.Now() + kJoinAgain;
    if (joined.status().code() != StatusCode::kAlreadyExists || again > until) {
      return joined.status();
    }
    MutexLock lock(mu_);
    while (clock_.Now() < again) wake_.WaitFor(mu_, clock_.Until(again));
  }
}

ClusterNode::~ClusterNode() {
  if (membership_ != nullptr) (void)Leave();  // what does not arrive comes again, as after a kill
}

// --- The guard ---

bool ClusterNode::Serves(const SourceKey& source) {
  MutexLock lock(mu_);
  return served_.contains(source);
}

bool ClusterNode::Owns(const SourceKey& source) {
  return Serves(source) && membership_->Owns(source);
}

bool ClusterNode::MayAcknowledge(const SourceKey& source) {
  if (!Serves(source)) return false;
  return options_.ack_requires_mirror ? mirror_->MayAcknowledge(source) : membership_->Owns(source);
}

// --- The thread ---

void ClusterNode::Start(Dispatcher& dispatcher, ClusterHost& host) {
  CHECK(dispatcher_ == nullptr);
  dispatcher_ = &dispatcher;
  host_ = &host;
  if (threads_) thread_ = std::thread([this] { Loop(); });
}

void ClusterNode::Loop() {
  for (;;) {
    Turn();
    MutexLock lock(mu_);
    const absl::Duration next = clock_.Now() + options_.balance_interval;
    while (!stopping_ && clock_.Now() < next) wake_.WaitFor(mu_, clock_.Until(next));
    if (stopping_) return;
  }
}

void ClusterNode::Turn() {
  DropLost();
  const absl::Duration now = clock_.Now();
  const StatusOr<Picture> picture = Look();
  {
    MutexLock lock(mu_);
    if (!picture.ok()) ++stats_.failed_turns;
    if (!picture.ok() || stopping_) return;
    looked_at_ = now;
    stats_.instances = picture->instances.size();
  }
  Act(*picture);
}

StatusOr<ClusterNode::Picture> ClusterNode::Look() {
  Picture picture;
  ASSIGN_OR_RETURN(Roster roster, membership_->ReadRoster());
  for (Assignment& assignment : roster.assignments) {
    picture.assignments[assignment.partition] = std::move(assignment);
  }
  for (const Instance& instance : roster.instances) picture.instances.push_back(instance.id);
  return picture;
}

// What went with the lease. The guard has refused everything since the lease may have ended.
void ClusterNode::DropLost() {
  std::set<SourceKey> owned;
  for (const Ownership& each : membership_->Owned()) owned.insert(each.partition);
  for (const OwnedPartition& each : Owned()) {
    if (owned.contains(each.partition) || !StopServing(each.partition)) continue;
    MutexLock lock(mu_);
    ++stats_.lost;
  }
}

void ClusterNode::Act(const Picture& picture) {
  std::set<SourceKey> held;  // in the Meta too, or only here: a request whose answer was lost
  for (const Ownership& each : membership_->Owned()) held.insert(each.partition);
  Holdings now;
  for (const SourceKey& partition : options_.partitions) {
    const auto found = picture.assignments.find(partition);
    now[partition] = found == picture.assignments.end() ? "" : found->second.instance;
    if (found == picture.assignments.end() || !found->second.alive) continue;
    if (found->second.instance == options_.instance) held.insert(partition);
    if (found->second.instance == options_.instance || let_go_.contains(partition)) continue;
    StopServing(partition);
    Note("let go of", partition, LetGo(partition));
  }
  const Holdings plan = Balance(picture.instances, now);
  for (const auto& [partition, instance] : plan) {
    if (instance != options_.instance && held.contains(partition)) {
      Note("hand over", partition, HandOver(partition));
    }
  }
  for (const auto& [partition, instance] : plan) {
    if (instance != options_.instance || Serves(partition)) continue;
    const auto found = picture.assignments.find(partition);
    const bool free = found == picture.assignments.end() || !found->second.alive;
    if (free || held.contains(partition)) Note("take", partition, Take(partition));
  }
}

// --- One partition ---

Status ClusterNode::Take(const SourceKey& partition) {
  const StatusOr<uint64_t> token = membership_->Acquire(partition);
  // Another was faster: the next look shows it.
  if (DetailOf(token.status()) == Detail::kConflict) return absl::OkStatus();
  RETURN_IF_ERROR(token.status());
  Ownership ownership;
  for (const Ownership& each : membership_->Owned()) {
    if (each.partition == partition) ownership = each;
  }
  ASSIGN_OR_RETURN(const bool continues, Continues(ownership));
  if (!continues) RETURN_IF_ERROR(LetGo(partition));
  ASSIGN_OR_RETURN(const MirroredPartition restored, mirror_->Restore(partition));
  RETURN_IF_ERROR(engine_.meta()
                      .Put(MetaSourceKey(kHeld, partition), EncodeMetaText({*token}), MetaWrite())
                      .status());
  RETURN_IF_ERROR(dispatcher_->Adopt(partition, continues ? std::nullopt : restored.seen));
  let_go_.erase(partition);
  // As high as the mirror's, and durable.
  const StatusOr<SourceProgress> progress = engine_.offsets().ReadSource(partition);
  OwnedPartition owned{.partition = partition, .token = *token, .cursor = std::nullopt};
  if (progress.ok() && progress->has_cursor) owned.cursor = progress->cursor;
  {
    MutexLock lock(mu_);
    served_[partition] = owned;
    ++stats_.taken;
    if (continues) ++stats_.continued;
  }
  host_->Taken(owned);
  return absl::OkStatus();
}

StatusOr<bool> ClusterNode::Continues(const Ownership& ownership) {
  const StatusOr<MetaEntry> held =
      engine_.meta().Get(MetaSourceKey(kHeld, ownership.partition), MetaCall());
  if (MetaResultOf(held.status()) == MetaResult::kNotFound) return false;
  RETURN_IF_ERROR(held.status());
  ASSIGN_OR_RETURN(const MetaText text, DecodeMetaText(*held, 1));
  return text.numbers[0] == ownership.replaced || text.numbers[0] == ownership.token;
}

// First nothing begins any more, then what is in flight ends, then the last offsets are made known,
// and only then somebody else can have it.
Status ClusterNode::HandOver(const SourceKey& partition) {
  // Held already, unless an earlier release did not arrive.
  RETURN_IF_ERROR(membership_->Acquire(partition).status());
  const bool served = StopServing(partition);
  RETURN_IF_ERROR(LetGo(partition));
  RETURN_IF_ERROR(mirror_->Flush(partition));
  RETURN_IF_ERROR(membership_->Release(partition));
  MutexLock lock(mu_);
  if (served) ++stats_.handed_over;
  return absl::OkStatus();
}

Status ClusterNode::LetGo(const SourceKey& partition) {
  RETURN_IF_ERROR(dispatcher_->LetGo(partition));
  let_go_.insert(partition);
  return absl::OkStatus();
}

bool ClusterNode::StopServing(const SourceKey& partition) {
  {
    MutexLock lock(mu_);
    if (served_.erase(partition) == 0) return false;
  }
  host_->Left(partition);
  return true;
}

void ClusterNode::Note(std::string_view what, const SourceKey& partition, const Status& outcome) {
  if (outcome.ok()) return;
  {
    MutexLock lock(mu_);
    ++stats_.failed_turns;
  }
  if (options_.log == nullptr) return;
  options_.log->Log(LogLevel::kWarning,
                    fmt::format("instance {}: could not {} {} yet: {}", options_.instance, what,
                                NameOf(partition), Message(outcome)));
}

// --- The end, and what people see ---

StatusOr<std::vector<Assignment>> ClusterNode::Assignments() {
  ASSIGN_OR_RETURN(Roster roster, membership_->ReadRoster());
  return std::move(roster.assignments);
}

Status ClusterNode::Leave() {
  {
    MutexLock lock(mu_);
    if (left_.has_value()) return *left_;
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  for (const OwnedPartition& each : Owned()) StopServing(each.partition);
  Status known = engine_.Flush();  // acknowledgements that were taken before that
  if (known.ok() && mirror_ != nullptr) known = mirror_->Flush();
  const Status gone = membership_->Leave();
  if (known.ok()) known = gone;
  dispatcher_ = nullptr;
  host_ = nullptr;
  MutexLock lock(mu_);
  left_ = known;
  return known;
}

std::vector<OwnedPartition> ClusterNode::Owned() {
  MutexLock lock(mu_);
  std::vector<OwnedPartition> owned;
  for (const auto& [partition, each] : served_) owned.push_back(each);
  return owned;
}

ClusterStats ClusterNode::Stats() {
  const OffsetMirrorStats mirror = mirror_->Stats();
  const absl::Duration lease_left = LeaseLeft();
  MutexLock lock(mu_);
  ClusterStats stats = stats_;
  stats.partitions = options_.partitions.size();
  stats.owned = served_.size();
  stats.mirror_writes = mirror.writes;
  stats.mirror_failed = mirror.failed;
  stats.mirror_age = mirror.behind;
  stats.lease_left = lease_left;
  stats.since_look = clock_.Now() - looked_at_;
  return stats;
}

}  // namespace holdfast
