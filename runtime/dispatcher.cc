#include "runtime/dispatcher.h"

#include <algorithm>
#include <functional>
#include <list>
#include <set>
#include <utility>

#include "journal/base/check.h"
#include "runtime/retry_policy.h"

namespace holdfast {
namespace {

// Ids that a ledger is asked for at once.
constexpr size_t kAskedTogether = 10'000;

SourceKey SourceOf(const Delivery& delivery) {
  return {delivery.topic, delivery.incarnation, delivery.partition};
}

}  // namespace

DispatcherCore::DispatcherCore(Engine& engine, Rng& rng, const DispatcherOptions& options,
                               const DispatcherHost& host)
    : engine_(engine),
      options_(options),
      host_(host),
      clock_(options.clock != nullptr ? *options.clock : RealClock()),
      rng_(rng),
      wheel_(engine.EngineNow()) {}

DispatcherCore::~DispatcherCore() {
  (void)engine_.Flush();  // what waits for it is told either way
  MutexLock lock(mu_);
  while (outstanding_ > 0) all_back_.Wait(mu_);
}

void DispatcherCore::Run(Effects& effects) {
  const bool guarded = host_.guard != nullptr;
  for (const Push& push : effects.pushes) {
    guarded ? PushIfOwned(push) : push.to->Push(push.delivery);
  }
  for (const Told& told : effects.told) {
    guarded ? TellIfOwned(told) : host_.source_ack->Finished(*told.source, told.offset, told.token);
  }
  for (const Answer& answer : effects.answers) answer.done(answer.status);
  for (const std::function<void()>& other : effects.others) other();
}

void DispatcherCore::After(const Commit& commit, Done then, Effects& effects) {
  ++outstanding_;
  effects.others.push_back([this, commit, then = std::move(then)] {
    commit.Then([this, then](const Status& outcome) {
      then(outcome);
      Release();
    });
  });
}

void DispatcherCore::Release() {
  MutexLock lock(mu_);
  if (--outstanding_ == 0) all_back_.NotifyAll();
}

Status DispatcherCore::NotReady() {
  return WrongState(Detail::kNotReady, "the dispatcher has not recovered yet; try again");
}

// --- Recovery ---

Status DispatcherCore::Recover() {
  Effects effects;
  {
    MutexLock lock(mu_);
    if (ready_) return absl::OkStatus();
    RETURN_IF_ERROR(ReadRewound());
    ASSIGN_OR_RETURN(const std::vector<Found> pending, ReadPending());
    ASSIGN_OR_RETURN(const std::vector<Begun> begun, ReadBegun(engine_.offsets().ReadAll()));
    for (const Begun& each : begun) Begin(each);
    std::vector<Slot> ledgered;
    for (const Found& found : pending) {
      const Slot slot = TakeOver(found.delivery);
      if (found.ledgered) ledgered.push_back(slot);
    }
    for (uint32_t index = 0; index < book_.sources(); ++index) ReadProgress(book_.source(index));
    // Only now it is known what else is pending, and so how far their clients have come.
    for (const Slot slot : ledgered) Retire(slot, effects);
    ready_ = true;
  }
  Run(effects);
  return absl::OkStatus();
}

// Where a client's start is not known, because somebody else wrote its offset, that is taken: what
// was finished below it may never have been meant for the client.
StatusOr<std::vector<DispatcherCore::Begun>> DispatcherCore::ReadBegun(
    const std::vector<StoredOffset>& offsets) {
  std::vector<Begun> begun;
  for (const StoredOffset& stored : offsets) {
    const auto& [topic, client, partition] = stored.key;
    const StatusOr<OffsetPosition> start = engine_.offsets().ReadStart(stored.key);
    if (!start.ok() && start.status().code() != StatusCode::kNotFound) return start.status();
    const bool known = start.ok() && start->incarnation == stored.position.incarnation;
    begun.push_back({.source = {topic, stored.position.incarnation, partition},
                     .client = client,
                     .start = known ? start->next : stored.position.next,
                     .next = stored.position.next});
  }
  return begun;
}

void DispatcherCore::Begin(const Begun& begun) {
  const uint32_t source = book_.SourceOf(begun.source), client = book_.ClientOf(begun.client);
  uint32_t found = book_.FindTrack(source, client);
  if (found == kNone) found = book_.AddTrack(source, client, begun.start);
  Track& track = book_.track(found);
  if (!track.start.has_value()) track.start = begun.start;
  track.finished_below = std::max(track.finished_below, begun.next);
}

StatusOr<std::vector<DispatcherCore::Found>> DispatcherCore::ReadPending() {
  std::vector<Found> pending;
  const Status read = engine_.deliveries().Iterate([&](const StoredDelivery& stored) {
    pending.push_back({.delivery = stored.delivery});
    pending.back().delivery.event.clear();
    return true;
  });
  stats_.unreadable = engine_.deliveries().Count() - pending.size();
  for (size_t begin = 0; begin < pending.size(); begin += kAskedTogether) {
    const size_t end = std::min(begin + kAskedTogether, pending.size());
    std::vector<std::string> ids;
    for (size_t i = begin; i < end; ++i) ids.push_back(pending[i].delivery.id);
    ASSIGN_OR_RETURN(const std::vector<bool> ledgered, AreLedgered(ids));
    if (ledgered.size() != ids.size()) {
      return Unavailable(Detail::kIo, "the ledger was asked for {} deliveries, and answered for {}",
                         ids.size(), ledgered.size());
    }
    for (size_t i = begin; i < end; ++i) pending[i].ledgered = ledgered[i - begin];
  }
  if (!read.ok() && options_.log != nullptr) {
    options_.log->Log(LogLevel::kError,
                      fmt::format("{} deliveries cannot be read and are left out; the first: {}",
                                  stats_.unreadable, Message(read)));
  }
  return pending;
}

StatusOr<std::vector<bool>> DispatcherCore::AreLedgered(const std::vector<std::string>& ids) {
  if (host_.ledger != nullptr) return host_.ledger->HasAll(ids);
  std::vector<bool> ledgered;
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(const auto presence, engine_.dead_letters().IsDeadLettered(id));
    ledgered.push_back(presence.recorded);
  }
  return ledgered;
}

// With the time that was left to it; at once if it was never pushed.
Slot DispatcherCore::TakeOver(const Delivery& delivery) {
  const uint32_t source = book_.SourceOf(SourceOf(delivery));
  const uint32_t client = book_.ClientOf(delivery.client);
  uint32_t track = book_.FindTrack(source, client);
  if (track == kNone) track = book_.AddTrack(source, client, /*start=*/std::nullopt);
  const Slot slot = book_.Add(delivery.id, track, delivery.offset);
  Flight& flight = book_.flight(slot);
  book_.SetAttempt(flight, delivery.attempt);
  book_.SetEpoch(flight, delivery.epoch);
  ++stats_.recovered;
  const absl::Duration now = engine_.EngineNow();
  book_.SetBorn(flight, now - std::max(clock_.WallNow() - delivery.created, absl::ZeroDuration()));
  absl::Duration left = std::min(delivery.due - now, LongestWait(options_));
  if (delivery.attempt == 0) left = absl::ZeroDuration();
  if (left <= absl::ZeroDuration()) left = AnyPartOf(options_.recover_spread, rng_);
  Arm(slot, now + left);
  return slot;
}

void DispatcherCore::ReadProgress(Source& source) {
  const StatusOr<SourceProgress> progress = engine_.offsets().ReadSource(source.key);
  if (!progress.ok()) return;  // of an older incarnation, or never numbered
  const auto rewound = rewound_.find(source.key);
  // Beyond where it was then: all of that was handed in again since.
  if (progress->has_seen && (rewound == rewound_.end() || progress->seen > rewound->second)) {
    source.seen = progress->seen;
  }
  if (progress->has_cursor) source.cursor = progress->cursor;
  source.cursor_dirty = true;
}

// It is a dead letter already. Should its end be refused, it comes back to the dead letters, not to
// its client.
void DispatcherCore::Retire(Slot slot, Effects& effects) {
  Flight& flight = book_.flight(slot);
  book_.SetAttempt(flight, options_.attempts_max);
  flight.phase = Phase::kDeadLettering;
  EndIt(slot, {.reason = Reason::kDeadLettered}, nullptr, effects);
}

// --- Deliver ---

Status DispatcherCore::CheckTargets(const std::vector<Target>& targets) const {
  std::set<std::string_view> clients;
  for (const Target& target : targets) {
    if (targets.size() > 1 && !clients.insert(target.client).second) {
      return Invalid("a client is named twice as a target of one event");
    }
    if (target.epoch == 0) return Invalid("a target has epoch 0: epochs begin with 1");
  }
  return absl::OkStatus();
}

StatusOr<DeliverResult> DispatcherCore::Deliver(const SourceEvent& event,
                                                const std::vector<Target>& targets) {
  RETURN_IF_ERROR(CheckTargets(targets));
  if (!Owns(event.source)) {
    MutexLock lock(mu_);
    ++stats_.refused_deliveries;
    return NotOwned();
  }
  Effects effects;
  StatusOr<DeliverResult> result;
  {
    MutexLock lock(mu_);
    if (!ready_) return NotReady();
    const uint32_t source = book_.SourceOf(event.source);
    // Let go of since the guard was asked.
    result = book_.source(source).let_go ? NotOwned() : Accept(source, event, targets, effects);
    if (!result.ok()) ++stats_.refused_deliveries;
  }
  Run(effects);
  return result;
}

// The source handed it in before, or another instance's source did and it was finished there.
bool DispatcherCore::IsKnown(uint32_t source, uint32_t track, const SourceEvent& event) {
  if (!event.offset.has_value()) return false;
  const std::optional<uint64_t> seen = book_.source(source).seen;
  if (seen.has_value() && *event.offset <= *seen) return true;
  return track != kNone && (*event.offset < book_.track(track).finished_below ||
                            book_.FindAt(track, *event.offset) != kNone);
}

DeliverResult::OfTarget DispatcherCore::Again(uint32_t source, uint64_t offset,
                                              const std::string& client) {
  const uint32_t known = book_.FindClient(client);
  const uint32_t track = known == kNone ? kNone : book_.FindTrack(source, known);
  if (track == kNone) return {.outcome = DeliverOutcome::kOutOfRange, .id = {}};
  if (const Slot slot = book_.FindAt(track, offset); slot != kNone) {
    return {.outcome = DeliverOutcome::kAlreadyInFlight,
            .id = std::string(book_.IdOf(book_.flight(slot)).view())};
  }
  const std::optional<uint64_t> start = book_.track(track).start;
  const bool meant = start.has_value() && offset >= *start;
  return {.outcome = meant ? DeliverOutcome::kAlreadyAcknowledged : DeliverOutcome::kOutOfRange,
          .id = {}};
}

StatusOr<DeliverResult> DispatcherCore::Accept(uint32_t source, const SourceEvent& event,
                                               const std::vector<Target>& targets,
                                               Effects& effects) {
  const bool repeated = event.offset.has_value() && event.offset <= book_.source(source).seen;
  if (!repeated && book_.in_flight() + targets.size() > options_.in_flight_total) {
    return Exhausted(Detail::kLimit, "{} deliveries are in flight, and no more than {} may be",
                     book_.in_flight(), options_.in_flight_total);
  }
  const absl::Duration now = engine_.EngineNow();
  struct Put {
    Delivery delivery;
    uint32_t client = kNone, track = kNone, channel = kNone;
    bool starts = false;  // with it the client's way through the source begins
  };
  absl::InlinedVector<Put, 1> puts;
  struct Raise {
    Slot slot = kNone;
    FlightId id;
    Reschedule to;
  };
  std::list<Raise> raises;  // of subscriptions that were taken over
  DeliverResult result;
  for (const Target& target : targets) {
    const uint32_t client = book_.ClientOf(target.client);
    const uint32_t track = book_.FindTrack(source, client);
    if (IsKnown(source, track, event)) {
      result.targets.push_back(Again(source, *event.offset, target.client));
      if (result.targets.back().outcome != DeliverOutcome::kAlreadyInFlight) continue;
      const Slot slot = book_.Find(result.targets.back().id);
      ASSIGN_OR_RETURN(const std::optional<Reschedule> raise, ToRaise(slot, target.epoch));
      if (raise.has_value()) raises.push_back({slot, book_.IdOf(book_.flight(slot)), *raise});
      continue;
    }
    result.targets.push_back({.outcome = DeliverOutcome::kAccepted, .id = engine_.NewDeliveryId()});
    if (book_.client(client).in_flight >= options_.in_flight_per_client) {
      return Exhausted(Detail::kLimit,
                       "{} deliveries are in flight to one client, and no more than {} may be",
                       book_.client(client).in_flight, options_.in_flight_per_client);
    }
    const uint32_t channel = book_.NextChannel(client);
    const bool pushed_now = channel != kNone;
    const bool begun = track != kNone && book_.track(track).start.has_value();
    const uint64_t epoch = std::max(target.epoch, FloorOf(client, event.source.topic));
    puts.push_back({.delivery = {.id = result.targets.back().id,
                                 .epoch = epoch,
                                 .topic = event.source.topic,
                                 .incarnation = event.source.incarnation,
                                 .partition = event.source.partition,
                                 .offset = event.offset,
                                 .client = target.client,
                                 .attempt = pushed_now ? 1u : 0u,
                                 .due = pushed_now ? now + options_.ack_timeout : now,
                                 .created = clock_.WallNow(),
                                 .redriven_from = {},
                                 .event = event.event},
                    .client = client,
                    .track = track,
                    .channel = channel,
                    .starts = event.offset.has_value() && !begun});
  }
  // Raising `seen` to what it is already changes nothing, and waits for the record that raised it:
  // the answer is as durable as what was decided then.
  const auto fill = [&](Transaction& change) {
    for (Raise& raise : raises) {
      raise.to.id = raise.id.view();
      change.UpdateDelivery(raise.to);
    }
    for (const auto& [delivery, client, track, channel, starts] : puts) {
      change.PutDelivery(delivery);
      if (!starts) continue;
      const OffsetKey key{delivery.topic, delivery.client, delivery.partition};
      change.WriteOffset(key, {*event.offset, delivery.incarnation});
      change.WriteStart(key, {*event.offset, delivery.incarnation});
    }
    if (event.offset.has_value()) change.SourceSeen(event.source, *event.offset);
  };
  const Commit commit = engine_.Transact(std::cref(fill));
  if (!commit.refused().ok()) return commit.refused();

  result.durable = commit;
  for (const Raise& raise : raises) Raised(raise.slot, raise.to.epoch, commit);
  if (event.offset.has_value() && !repeated) {
    Source& of = book_.source(source);
    of.seen = event.offset;
    of.cursor_dirty = true;
    if (event.offset <= of.handed_in_before) stats_.redispatched += puts.size();
  }
  const uint64_t unnumbered =
      event.offset.has_value() || puts.empty()
          ? 0
          : book_.AddUnnumbered(source, event.token, static_cast<uint32_t>(puts.size()));
  for (auto& [delivery, client, track, channel, starts] : puts) {
    if (track == kNone) track = book_.AddTrack(source, client, event.offset);
    if (starts) book_.track(track).start = event.offset;
    const Slot slot = book_.Add(delivery.id, track, event.offset, unnumbered);
    Flight& flight = book_.flight(slot);
    book_.SetEpoch(flight, delivery.epoch);
    book_.SetAttempt(flight, delivery.attempt);
    book_.SetBorn(flight, now);
    if (channel == kNone) {
      Wait(slot);
    } else {
      Hand(slot, channel, std::move(delivery), now, effects);
    }
  }
  // Nobody has to finish it, but the source may forget it only once that is durable.
  const bool unfinished =
      !puts.empty() || (event.offset.has_value() && book_.Unfinished(source, *event.offset));
  if (!unfinished) TellWhenDurable(source, event, commit, effects);
  return result;
}

absl::Duration DispatcherCore::Backoff(uint32_t attempts) {
  return BackoffAfter(options_, attempts, rng_);
}

uint64_t DispatcherCore::Pending(std::string_view name) {
  MutexLock lock(mu_);
  const uint32_t client = book_.FindClient(name);
  return client == kNone ? 0 : book_.client(client).in_flight;
}

DispatcherStats DispatcherCore::Stats() {
  MutexLock lock(mu_);
  DispatcherStats stats = stats_;
  stats.in_flight = book_.in_flight();
  const absl::Duration now = engine_.EngineNow();
  for (uint32_t index = 0; index < book_.clients(); ++index) {
    const Client& client = book_.client(index);
    const absl::Duration oldest = book_.OldestOf(index);
    stats.clients.push_back({.client = client.name,
                             .channels = client.open,
                             .in_flight = client.in_flight,
                             .pushed = client.pushed,
                             .redelivered = client.redelivered,
                             .acked = client.acked,
                             .oldest_age = oldest <= now ? now - oldest : absl::ZeroDuration(),
                             .since_last_ack = now - client.last_ack});
  }
  return stats;
}

}  // namespace holdfast
