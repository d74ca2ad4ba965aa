// The end of a delivery: acknowledged, withdrawn or dead-lettered.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "journal/base/check.h"
#include "runtime/dispatcher.h"
#include "runtime/retry_policy.h"

namespace holdfast {
namespace {

// Ends that are finished in one go, before others have the lock.
constexpr size_t kEndsAtOnce = 256;

std::string_view KeyOf(const Acknowledgement& ack) {
  return ack.idempotency_key.empty() ? ack.id : ack.idempotency_key;
}

DeadLetter DeadLetterOf(const Delivery& delivery, const DeadLetterPlace& place,
                        std::string_view reason, absl::Time now) {
  return {.delivery_id = delivery.id,
          .dlq_topic = place.topic,
          .dlq_offset = place.offset,
          .reason = std::string(reason),
          .attempts = delivery.attempt,
          .epoch = delivery.epoch,
          .topic = delivery.topic,
          .incarnation = delivery.incarnation,
          .partition = delivery.partition,
          .offset = delivery.offset,
          .client = delivery.client,
          .died = now,
          .event = delivery.event};
}

}  // namespace

Status DispatcherCore::CheckEndable(Slot slot) {
  if (slot == kNone) return NotFound("no delivery of this id is in flight here");
  if (book_.flight(slot).phase == Phase::kDeadLettering) {
    return WrongState(Detail::kTerminal, "the delivery is being dead-lettered");
  }
  return absl::OkStatus();
}

Status DispatcherCore::CheckOwner(const Acknowledgement& ack, Slot slot) {
  if (slot == kNone) return CheckEndable(slot);
  const Flight& flight = book_.flight(slot);
  if (book_.ClientOfFlight(flight).name != ack.client) {
    return MakeStatus(StatusCode::kPermissionDenied, Detail::kWrongClient,
                      "the delivery is of another client");
  }
  if (const uint64_t epoch = book_.EpochOf(flight); epoch != ack.epoch) {
    return MakeStatus(StatusCode::kPermissionDenied, Detail::kStaleOwner,
                      fmt::format("epoch {}: the delivery is of epoch {}", ack.epoch, epoch));
  }
  return CheckEndable(slot);
}

void DispatcherCore::Ack(const Acknowledgement& ack, std::function<void(Status)> done) {
  Effects effects;
  Status answer = CheckOwned(ack.id, &OwnershipGuard::MayAcknowledge);
  {
    MutexLock lock(mu_);
    const Slot slot = ready_ ? book_.Find(ack.id) : kNone;
    if (answer.ok()) answer = ready_ ? CheckOwner(ack, slot) : NotReady();
    if (ready_ && slot == kNone) {
      AckAgain(ack, std::move(done), effects);
    } else if (!answer.ok()) {
      ++stats_.refused_acks;
      AuditRefusal("refuse-ack", ack, answer);
      effects.answers.push_back({std::move(done), answer});
    } else {
      EndIt(slot, {.reason = Reason::kAcked, .key = KeyOf(ack)}, std::move(done), effects);
    }
  }
  Run(effects);
}

// Nothing of this id is in flight: it ended before, by this acknowledgement or otherwise, or never
// was. Either answer is told when what it rests on is durable.
void DispatcherCore::AckAgain(const Acknowledgement& ack, Done done, Effects& effects) {
  const Commit answered = engine_.deliveries().Answered({.id = ack.id,
                                                         .reason = Reason::kAcked,
                                                         .epoch = ack.epoch,
                                                         .client = ack.client,
                                                         .idempotency_key = KeyOf(ack)});
  if (!answered.refused().ok()) {
    ++stats_.refused_acks;
    AuditRefusal("refuse-ack", ack, answered.refused());
  }
  After(answered, std::move(done), effects);
}

void DispatcherCore::Withdraw(std::string_view id, std::function<void(Status)> done) {
  Effects effects;
  Status answer = CheckOwned(id, &OwnershipGuard::Owns);
  {
    MutexLock lock(mu_);
    const Slot slot = ready_ ? book_.Find(id) : kNone;
    if (answer.ok()) answer = ready_ ? CheckEndable(slot) : NotReady();
    if (answer.ok()) {
      EndIt(slot, {.reason = Reason::kWithdrawn}, std::move(done), effects);
    } else {
      effects.answers.push_back({std::move(done), answer});
    }
  }
  Run(effects);
}

Status DispatcherCore::Nack(const Acknowledgement& nack) {
  Status answer = CheckOwned(nack.id, &OwnershipGuard::Owns);
  MutexLock lock(mu_);
  if (!ready_) return NotReady();
  const Slot slot = book_.Find(nack.id);
  if (answer.ok()) answer = CheckOwner(nack, slot);
  if (!answer.ok()) {
    AuditRefusal("refuse-nack", nack, answer);
    return answer;
  }
  Flight& flight = book_.flight(slot);
  // A push that is on its way, or the end: the nack comes too late to bring anything forward.
  if (flight.phase != Phase::kArmed) return absl::OkStatus();
  const uint32_t attempt = book_.AttemptOf(flight);
  const absl::Duration due = engine_.EngineNow() + Backoff(attempt);
  const Commit commit = engine_.deliveries().Update(
      {.id = nack.id, .epoch = nack.epoch, .attempt = attempt, .due = due});
  RETURN_IF_ERROR(commit.refused());
  book_.Detach(slot);
  Arm(slot, due);
  ++stats_.nacked;
  Audit("nack", flight);
  return absl::OkStatus();
}

void DispatcherCore::EndIt(Slot slot, const End& end, Done done, Effects& effects) {
  Flight& flight = book_.flight(slot);
  if (flight.phase == Phase::kEnding) {
    if (done) joined_[slot].push_back(std::move(done));
    return;
  }
  const Track& track = book_.track(flight.track);
  const SourceKey& source = book_.source(track.source).key;
  book_.BeginEnd(slot);
  const std::optional<uint64_t> next =
      flight.numbered && !end.moved ? book_.NextOf(flight.track) : std::nullopt;
  const std::string& client = book_.client(track.client).name;
  const FlightId id = book_.IdOf(flight);
  const uint64_t epoch = book_.EpochOf(flight);
  const auto fill = [&](Transaction& change) {
    if (end.dead_letter != nullptr) change.RecordDeadLetter(*end.dead_letter);
    change.RemoveDelivery({.id = id.view(),
                           .reason = end.reason,
                           .epoch = epoch,
                           .client = client,
                           .idempotency_key = end.key});
    if (next.has_value()) {
      change.WriteOffset({source.topic, client, source.partition}, {*next, source.incarnation});
    }
  };
  const Commit commit = engine_.Transact(std::cref(fill));
  if (!commit.refused().ok()) {
    book_.AbandonEnd(slot);
    if (flight.phase == Phase::kArmed || flight.phase == Phase::kDeadLettering) {
      wheel_.Set(slot, engine_.EngineNow() + Backoff(book_.AttemptOf(flight)));
    }
    if (done) effects.answers.push_back({std::move(done), commit.refused()});
    return;
  }
  wheel_.Clear(slot);
  book_.Detach(slot);
  if (flight.phase == Phase::kWaiting) --stats_.waiting;
  flight.phase = Phase::kEnding;
  if (end.moved) ++book_.source(track.source).leaving;
  endings_.push_back({.slot = slot,
                      .reason = end.reason,
                      .commit = commit,
                      .done = std::move(done),
                      .moved = end.moved});
  if (std::exchange(ends_awaited_, true)) return;
  ++outstanding_;
  effects.others.push_back(
      [this, commit] { commit.Then([this](const Status& durable) { FinishEnds(durable); }); });
}

// The journal confirms in the order in which the ends stand in it.
void DispatcherCore::FinishEnds(const Status& oldest) {
  for (;;) {
    Effects effects;
    bool more = true;
    Commit next;
    {
      MutexLock lock(mu_);
      const absl::Duration now = engine_.EngineNow();
      for (size_t ended = 0; more && ended < kEndsAtOnce; ++ended) {
        const bool confirmed = endings_.front().commit.confirmed();
        if (!confirmed && oldest.ok()) break;
        Ending ending = std::move(endings_.front());
        endings_.pop_front();
        FinishEnd(std::move(ending), confirmed ? absl::OkStatus() : oldest, now, effects);
        more = !endings_.empty();
      }
      ends_awaited_ = more;
      if (more) next = endings_.front().commit;
    }
    Run(effects);
    if (!more) return Release();
    if (oldest.ok() && !next.confirmed()) {
      return next.Then([this](const Status& durable) { FinishEnds(durable); });
    }
  }
}

void DispatcherCore::FinishEnd(Ending ending, const Status& durable, absl::Duration now,
                               Effects& effects) {
  Flight& flight = book_.flight(ending.slot);
  CHECK(flight.live() && flight.phase == Phase::kEnding);
  if (durable.ok()) {
    Client& client = book_.ClientOfFlight(flight);
    switch (ending.reason) {
      case Reason::kAcked:
        ++stats_.acked;
        ++client.acked;
        client.last_ack = now;
        Audit("ack", flight);
        break;
      case Reason::kDeadLettered:
        ++stats_.dead_lettered;
        Audit("dead-letter", flight);
        break;
      case Reason::kWithdrawn:
        ++(ending.moved ? stats_.moved_away : stats_.withdrawn);
        Audit(ending.moved ? "move-away" : "withdraw", flight);
        break;
    }
    book_.Remove(ending.slot);
    if (!ending.moved) FinishTarget(flight.track, flight.numbered, flight.offset, effects);
  }
  if (ending.moved && --book_.source(book_.track(flight.track).source).leaving == 0) {
    all_back_.NotifyAll();
  }
  // Otherwise the journal has failed: nobody knows, until the store is opened again.
  if (ending.done) effects.answers.push_back({std::move(ending.done), durable});
  const auto joined = joined_.find(ending.slot);
  if (joined == joined_.end()) return;
  for (Done& done : joined->second) effects.answers.push_back({std::move(done), durable});
  joined_.erase(joined);
}

// The event has one target less; its source is told after the last.
void DispatcherCore::FinishTarget(uint32_t track, bool numbered, uint64_t offset,
                                  Effects& effects) {
  if (!numbered) {
    if (const auto event = book_.FinishUnnumbered(offset)) {
      TellSource(event->source, std::nullopt, event->token, effects);
    }
    return;
  }
  const uint32_t source = book_.track(track).source;
  if (!book_.Unfinished(source, offset)) TellSource(source, offset, 0, effects);
}

void DispatcherCore::TellWhenDurable(uint32_t source, const SourceEvent& event,
                                     const Commit& commit, Effects& effects) {
  After(
      commit,
      [this, source, offset = event.offset, token = event.token](const Status& durable) {
        if (!durable.ok()) return;
        Effects after;
        {
          MutexLock lock(mu_);
          TellSource(source, offset, token, after);
        }
        Run(after);
      },
      effects);
}

void DispatcherCore::TellSource(uint32_t source, std::optional<uint64_t> offset, uint64_t token,
                                Effects& effects) {
  // With a guard it counts once it is let through.
  if (host_.guard == nullptr || host_.source_ack == nullptr) ++stats_.source_acks;
  if (host_.source_ack == nullptr) return;
  effects.told.push_back({&book_.source(source).key, offset, token});
}

// --- Dead letters ---

void DispatcherCore::BeginDeadLetter(Slot slot, Effects& effects) {
  Flight& flight = book_.flight(slot);
  StatusOr<Delivery> delivery = Read(flight);
  if (!delivery.ok()) return RetryDeadLetter(slot, delivery.status());
  if (host_.still_wanted && !host_.still_wanted(*delivery)) {
    return EndIt(slot, {.reason = Reason::kWithdrawn}, nullptr, effects);
  }
  delivery->attempt = book_.AttemptOf(flight);
  flight.phase = Phase::kDeadLettering;
  const auto shared = std::make_shared<Delivery>(*std::move(delivery));
  ++outstanding_;
  effects.others.push_back([this, slot, id = flight.id, shared] {
    if (!Owns({shared->topic, shared->incarnation, shared->partition})) {
      return WithholdDeadLetter(slot, id);
    }
    if (host_.sink == nullptr) {
      return AfterSink(slot, id, shared, DeadLetterPlace{options_.dlq_topic, 0});
    }
    host_.sink->Write(*shared, "attempts exhausted",
                      [this, slot, id, shared](const StatusOr<DeadLetterPlace>& place) {
                        AfterSink(slot, id, shared, place);
                      });
  });
}

void DispatcherCore::AfterSink(Slot slot, FlightKey id, std::shared_ptr<Delivery> delivery,
                               const StatusOr<DeadLetterPlace>& place) {
  if (!place.ok()) return AfterLedger(slot, id, *delivery, {}, place.status());
  if (host_.ledger == nullptr) {
    return AfterLedger(slot, id, *delivery, *place, absl::OkStatus());
  }
  host_.ledger->Record(*delivery, *place,
                       [this, slot, id, delivery, place = *place](const Status& recorded) {
                         AfterLedger(slot, id, *delivery, place, recorded);
                       });
}

void DispatcherCore::AfterLedger(Slot slot, FlightKey id, const Delivery& delivery,
                                 const DeadLetterPlace& place, const Status& recorded) {
  Effects effects;
  {
    MutexLock lock(mu_);
    CHECK(book_.Is(slot, id));
    if (recorded.ok()) {
      const DeadLetter dead_letter =
          DeadLetterOf(delivery, place, "attempts exhausted", clock_.WallNow());
      EndIt(slot, {.reason = Reason::kDeadLettered, .dead_letter = &dead_letter}, nullptr, effects);
    } else {
      RetryDeadLetter(slot, recorded);
    }
  }
  Run(effects);
  Release();
}

// Backs off for as long as sink or ledger are down, so that they are not asked in a hot loop.
void DispatcherCore::RetryDeadLetter(Slot slot, const Status& why) {
  Flight& flight = book_.flight(slot);
  const uint32_t failed = ++book_.DeadAttemptsOf(flight);
  if (failed == 1 && options_.log != nullptr) {
    options_.log->Log(LogLevel::kWarning, fmt::format("delivery {} could not be dead-lettered: {}",
                                                      book_.IdOf(flight).view(), Message(why)));
  }
  wheel_.Set(slot, engine_.EngineNow() + Backoff(failed));
}

}  // namespace holdfast
