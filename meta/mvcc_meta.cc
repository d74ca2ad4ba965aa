#include "meta/mvcc_meta.h"

#include <algorithm>
#include <utility>

#include "journal/base/check.h"
#include "meta/meta_terms.h"

namespace holdfast {

MvccMeta::MvccMeta(Mutex& mutex, Clock& clock, uint64_t id_seed, const MvccMetaOptions& options)
    : mu_(mutex), clock_(clock), options_(options), state_(options.history), ids_(id_seed) {}

void MvccMeta::Serve(const ServeOptions& options) {
  threads_ = options.threads;
  published_ = state_.revision();
  state_.BeginServing(options.skip, clock_.Now());
  skip_is_kept_ = options.skip == 0;
  if (state_.NextLeaseEnd() != absl::InfiniteDuration()) StartService();
}

// --- In etcd's terms ---

// The state may change while room is made, so what was planned is planned again.
StatusOr<MvccPlan> MvccMeta::Decide(const std::function<StatusOr<MvccPlan>()>& plan) {
  while (true) {
    StatusOr<MvccPlan> planned = plan();
    if (!planned.ok() || planned->changes.empty()) return planned;
    const uint64_t count = appended_count_;
    RETURN_IF_ERROR(Reserve(planned->changes));
    if (count != appended_count_) continue;
    ++appended_count_;
    newest_position_ = Append(planned->changes);
    return planned;
  }
}

StatusOr<MvccMeta::ReadAnswer> MvccMeta::Read(const MvccRead& read, const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  ReadAnswer answer;
  StatusOr<MvccReadResult> read_result = MvccReadResult();
  uint64_t position;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    read_result = state_.Read(read);
    answer.revision = state_.revision();
    position = newest_position_;
  }
  RETURN_IF_ERROR(Confirm(position, deadline, false));
  ASSIGN_OR_RETURN(answer.read, std::move(read_result));
  return answer;
}

StatusOr<MvccTxnResult> MvccMeta::Execute(const MvccTxn& txn, const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  StatusOr<MvccPlan> plan = MvccPlan();
  uint64_t position;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    plan = Decide([&]() -> StatusOr<MvccPlan> {
      mu_.AssertHeld();
      StatusOr<MvccPlan> planned = PlanTxn(state_, txn, options_.plan);
      if (planned.ok() && planned->changes.size() > options_.erase.keys_max) {
        return Exhausted(Detail::kLimit, "the transaction changes {} keys, at most {} are allowed",
                         planned->changes.size(), options_.erase.keys_max);
      }
      return planned;
    });
    position = newest_position_;
  }
  RETURN_IF_ERROR(Confirm(position, deadline, plan.ok() && !plan->changes.empty()));
  RETURN_IF_ERROR(plan.status());
  return std::move(plan->result);
}

StatusOr<uint64_t> MvccMeta::GrantLeaseAs(uint64_t id, absl::Duration ttl, const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  StatusOr<MvccPlan> plan = MvccPlan();
  uint64_t position;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    plan = Decide([&]() -> StatusOr<MvccPlan> {
      mu_.AssertHeld();
      while (id == 0 || (id >> 63) != 0) id = ids_.Next() >> 1;
      ASSIGN_OR_RETURN(MvccChange grant, PlanGrant(state_, id, ttl));
      MvccPlan planned;
      planned.changes.push_back(std::move(grant));
      return planned;
    });
    position = newest_position_;
  }
  StartService();
  WakeService();
  RETURN_IF_ERROR(Confirm(position, deadline, plan.ok()));
  RETURN_IF_ERROR(plan.status());
  return id;
}

StatusOr<MvccLeaseInfo> MvccMeta::LeaseInfo(uint64_t id, const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  std::optional<MvccLeaseInfo> info;
  uint64_t position;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    info = state_.LeaseInfo(id, clock_.Now());
    position = newest_position_;
  }
  RETURN_IF_ERROR(Confirm(position, deadline, false));
  if (!info.has_value()) return Refuse(MvccRefusal::kLeaseNotFound);
  return *std::move(info);
}

StatusOr<std::vector<uint64_t>> MvccMeta::Leases(const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  std::vector<uint64_t> ids;
  uint64_t position;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    ids = state_.Leases();
    position = newest_position_;
  }
  RETURN_IF_ERROR(Confirm(position, deadline, false));
  return ids;
}

Status MvccMeta::Compact(uint64_t revision, const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  uint64_t position;
  Status compacted;
  {
    MutexLock lock(mu_);
    compacted = state_.Compact(revision);
    position = newest_position_;
  }
  RETURN_IF_ERROR(Confirm(position, deadline, false));
  return compacted;
}

// --- What every call ends with ---

Status MvccMeta::Confirm(uint64_t position, absl::Duration deadline, bool wrote) {
  Settle();
  const Status durable = WaitDurable(position, deadline);
  if (durable.ok()) return durable;
  if (!wrote) return durable;
  return Unavailable(Detail::kUnknownOutcome, "it was not confirmed: {}", Message(durable));
}

void MvccMeta::Settle() {
  uint64_t position, revision;
  {
    MutexLock lock(mu_);
    if (settled_position_ == newest_position_) return;
    position = settled_position_ = newest_position_;
    revision = state_.revision();
  }
  Kick();
  WhenDurable(position, [this, revision](const Status& durable) { Publish(revision, durable); });
}

void MvccMeta::Publish(uint64_t revision, const Status& durable) {
  {
    MutexLock lock(mu_);
    if (!durable.ok()) {
      broken_ = durable;
    } else if (revision > published_) {
      const absl::Duration now = clock_.Now();
      for (const auto& watcher : watchers_.Live()) {
        if (watcher->next() > published_) watcher->CaughtUp(now);
      }
      published_ = revision;
    } else {
      return;
    }
  }
  WakeService();
  MutexLock lock(listeners_mu_);
  for (const auto& [number, changed] : listeners_) changed();
}

// --- What every call begins with ---

Status MvccMeta::CatchUp() {
  const absl::Duration now = clock_.Now();
  state_.Age(now);
  if (!writable()) return absl::OkStatus();
  if (!skip_is_kept_) {
    const StatusOr<MvccPlan> plan = Decide([&]() -> StatusOr<MvccPlan> {
      mu_.AssertHeld();
      MvccPlan planned;
      if (!skip_is_kept_) planned.changes.push_back(MvccRevision{.revision = state_.revision()});
      return planned;
    });
    RETURN_IF_ERROR(plan.status());
    skip_is_kept_ = true;
  }
  while (const uint64_t id = state_.EndedLease(now)) RETURN_IF_ERROR(EndLease(id));
  return absl::OkStatus();
}

// --- Leases ---

// One that is kept alive, or revoked, while room is made stays as it is.
Status MvccMeta::EndLease(uint64_t id) {
  const StatusOr<MvccPlan> plan = Decide([&]() -> StatusOr<MvccPlan> {
    mu_.AssertHeld();
    const std::optional<MvccLeaseInfo> info = state_.LeaseInfo(id, clock_.Now());
    if (!info.has_value() || info->left > absl::ZeroDuration()) return MvccPlan();
    return PlanLeaseEnd(state_, id, options_.erase);
  });
  return plan.status();
}

StatusOr<MetaLease> MvccMeta::GrantLease(absl::Duration ttl, const MetaCall& call) {
  ASSIGN_OR_RETURN(const uint64_t id, GrantLeaseAs(0, ttl, call));
  return MetaLease{.id = id, .ttl = ttl};
}

StatusOr<MetaLease> MvccMeta::KeepAlive(uint64_t lease, const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  StatusOr<absl::Duration> ttl = absl::ZeroDuration();
  uint64_t position;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    ttl = state_.KeepAlive(lease, clock_.Now());
    position = newest_position_;
  }
  RETURN_IF_ERROR(Confirm(position, deadline, false));
  RETURN_IF_ERROR(ttl.status());
  return MetaLease{.id = lease, .ttl = *ttl};
}

Status MvccMeta::RevokeLease(uint64_t lease, const MetaCall& call) {
  RETURN_IF_ERROR(Ready());
  const absl::Duration deadline = DeadlineOf(call.timeout);
  StatusOr<MvccPlan> plan = MvccPlan();
  uint64_t position;
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(CatchUp());
    do {
      plan = Decide([&]() -> StatusOr<MvccPlan> {
        mu_.AssertHeld();
        return PlanLeaseEnd(state_, lease, options_.erase);
      });
    } while (plan.ok() && state_.HasLease(lease));
    position = newest_position_;
  }
  RETURN_IF_ERROR(Confirm(position, deadline, plan.ok()));
  return plan.status();
}

// --- Watches ---

absl::StatusOr<std::unique_ptr<MetaWatch>> MvccMeta::Watch(
    std::string_view prefix, uint64_t from_revision,
    std::function<void(const MetaNotice&)> callback, const MetaCall&) {
  RETURN_IF_ERROR(Ready());
  if (from_revision == 0) return Invalid("from_revision: 0, at least 1 is needed");
  auto watcher = std::make_shared<MvccWatcher>(KeyRange::Prefix(prefix), from_revision,
                                               std::move(callback), clock_.Now());
  auto handle = std::make_unique<MvccWatchHandle>(watcher, published_, clock_);
  watchers_.Add(std::move(watcher));
  StartService();
  WakeService();
  return handle;
}

StatusOr<MvccState::Changes> MvccMeta::ChangesOf(const KeyRange& range, uint64_t from,
                                                 size_t events_max) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(broken_);
  return state_.ChangesOf(range, from, published_, events_max);
}

uint64_t MvccMeta::published_revision() { return published_; }

uint64_t MvccMeta::history_begin() {
  MutexLock lock(mu_);
  return state_.history_begin();
}

uint64_t MvccMeta::AddListener(std::function<void()> changed) {
  MutexLock lock(listeners_mu_);
  listeners_.emplace(next_listener_, std::move(changed));
  return next_listener_++;
}

void MvccMeta::RemoveListener(uint64_t number) {
  MutexLock lock(listeners_mu_);
  listeners_.erase(number);
}

void MvccMeta::CallWatchesBack() {
  for (const std::shared_ptr<MvccWatcher>& watcher : watchers_.Live()) {
    while (!watcher->ended() && CallBack(*watcher)) {
    }
  }
}

// Returns whether there may be more for it.
bool MvccMeta::CallBack(MvccWatcher& watcher) {
  const StatusOr<MvccState::Changes> changes =
      ChangesOf(watcher.range(), watcher.next(), options_.notice_events_max);
  if (!changes.ok()) {
    const bool compacted = RefusalOf(changes.status()) == MvccRefusal::kCompacted;
    watcher.Call({.kind = MetaNotice::Kind::kResync,
                  .events = {},
                  .revision = compacted ? history_begin() : 0,
                  .reason = changes.status()});
    return false;
  }
  if (!changes->events.empty()) {
    MetaNotice notice{.revision = changes->next - 1};
    for (const MvccEvent& event : changes->events) notice.events.push_back(ToMetaEvent(event));
    watcher.Call(notice);
  }
  watcher.Advance(std::max(watcher.next(), changes->next));
  return watcher.next() <= published_;
}

// --- The thread ---

void MvccMeta::StartService() {
  if (!threads_) return;
  MutexLock lock(service_mu_);
  if (stopping_ || service_.joinable()) return;
  service_ = std::thread([this] { Service(); });
}

void MvccMeta::WakeService() {
  MutexLock lock(service_mu_);
  service_wanted_ = true;
  service_wake_.NotifyAll();
}

void MvccMeta::Service() {
  while (true) {
    absl::Duration next_end;
    {
      MutexLock lock(mu_);
      // What cannot be ended now is tried again, and whoever reads is told why.
      next_end = CatchUp().ok() ? state_.NextLeaseEnd() : clock_.Now() + absl::Seconds(1);
      if (!writable()) next_end = absl::InfiniteDuration();
    }
    Settle();
    CallWatchesBack();
    MutexLock lock(service_mu_);
    while (!service_wanted_ && !stopping_) {
      if (next_end == absl::InfiniteDuration()) {
        service_wake_.Wait(service_mu_);
        continue;
      }
      const absl::Duration left = clock_.Until(next_end);
      if (clock_.Now() >= next_end) break;
      service_wake_.WaitFor(service_mu_, left);
    }
    if (stopping_) return;
    service_wanted_ = false;
  }
}

void MvccMeta::Tick() {
  CHECK(!threads_);
  {
    MutexLock lock(mu_);
    (void)CatchUp();  // what cannot be ended now is tried again, and whoever reads is told why
  }
  Settle();
  CallWatchesBack();
}

void MvccMeta::Stop() {
  if (abandoned_) return;
  std::thread ending;
  {
    MutexLock lock(service_mu_);
    stopping_ = true;
    service_wake_.NotifyAll();
    ending = std::move(service_);
  }
  if (ending.joinable()) ending.join();
}

void MvccMeta::Abandon() {
  abandoned_ = true;
  service_mu_.AssertHeld();  // by nobody else: this process has one thread
  if (service_.joinable()) service_.detach();
}

}  // namespace holdfast
