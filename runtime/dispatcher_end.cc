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

std::string_view KeyOf(const Acknowledgement& ack) {
  return ack.idempotency_key.empty() ? ack.id : ack.idempotency_key;
}

// What a repeated acknowledgement must have in common with the first.
std::string SignatureOf(uint64_t epoch, std::string_view client, std::string_view key) {
  std::string signature = std::to_string(epoch) + ' ' + std::to_string(client.size()) + ' ';
  signature += client;
  signature += key;
  return signature;
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
  if (flight.epoch != ack.epoch) {
    return MakeStatus(
        StatusCode::kPermissionDenied, Detail::kStaleOwner,
        fmt::format("epoch {}: the delivery is of epoch {}", ack.epoch, flight.epoch));
  }
  return CheckEndable(slot);
}

void DispatcherCore::Ack(const Acknowledgement& ack, std::function<void(Status)> done) {
  Effects effects;
  {
    MutexLock lock(mu_);
    const Slot slot = ready_ ? book_.Find(ack.id) : kNone;
    Status answer = ready_ ? CheckOwner(ack, slot) : NotReady();
    if (slot == kNone && ready_ &&
        answers_.Knows(ack.id, SignatureOf(ack.epoch, ack.client, KeyOf(ack)))) {
      answer = absl::OkStatus();
    }
    if (!answer.ok()) ++stats_.refused_acks;
    if (!answer.ok() || slot == kNone) {
      effects.push_back([done = std::move(done), answer] { done(answer); });
    } else {
      EndIt(slot, {.reason = Reason::kAcked, .key = KeyOf(ack)}, std::move(done), effects);
    }
  }
  Run(effects);
}

void DispatcherCore::Withdraw(std::string_view id, std::function<void(Status)> done) {
  Effects effects;
  {
    MutexLock lock(mu_);
    const Slot slot = ready_ ? book_.Find(id) : kNone;
    const Status answer = ready_ ? CheckEndable(slot) : NotReady();
    if (answer.ok()) {
      EndIt(slot, {.reason = Reason::kWithdrawn}, std::move(done), effects);
    } else {
      effects.push_back([done = std::move(done), answer] { done(answer); });
    }
  }
  Run(effects);
}

Status DispatcherCore::Nack(const Acknowledgement& nack) {
  MutexLock lock(mu_);
  if (!ready_) return NotReady();
  const Slot slot = book_.Find(nack.id);
  RETURN_IF_ERROR(CheckOwner(nack, slot));
  Flight& flight = book_.flight(slot);
  // A push that is on its way, or the end: the nack comes too late to bring anything forward.
  if (flight.phase != Phase::kArmed) return absl::OkStatus();
  const absl::Duration due = engine_.EngineNow() + Backoff(flight.attempt);
  const Commit commit = engine_.deliveries().Update(
      {.id = flight.id, .epoch = flight.epoch, .attempt = flight.attempt, .due = due});
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
    if (done) endings_[slot].told.push_back(std::move(done));
    return;
  }
  const Track& track = book_.track(flight.track);
  const SourceKey& source = book_.source(track.source).key;
  book_.BeginEnd(slot);
  const std::optional<uint64_t> next = flight.numbered ? book_.NextOf(flight.track) : std::nullopt;
  const std::string& client = book_.client(track.client).name;
  const auto fill = [&](Transaction& change) {
    if (end.dead_letter != nullptr) change.RecordDeadLetter(*end.dead_letter);
    change.RemoveDelivery({.id = flight.id,
                           .reason = end.reason,
                           .epoch = flight.epoch,
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
      wheel_.Set(slot, engine_.EngineNow() + Backoff(flight.attempt));
    }
    if (done) {
      effects.push_back([done = std::move(done), refused = commit.refused()] { done(refused); });
    }
    return;
  }
  wheel_.Clear(slot);
  book_.Detach(slot);
  if (flight.phase == Phase::kWaiting) --stats_.waiting;
  flight.phase = Phase::kEnding;
  Ending& ending = endings_[slot];
  const std::string_view key = end.key.value_or(flight.id);
  if (key != flight.id) ending.key = key;
  if (done) ending.told.push_back(std::move(done));
  // As After() does, with a callback so small that it costs no memory of its own.
  ++outstanding_;
  effects.push_back([this, commit, slot, reason = end.reason] {
    commit.Then([this, slot, reason](const Status& durable) { FinishEnd(slot, reason, durable); });
  });
}

void DispatcherCore::FinishEnd(Slot slot, Reason reason, const Status& durable) {
  Effects effects;
  Ending ending;
  {
    MutexLock lock(mu_);
    Flight& flight = book_.flight(slot);
    CHECK(flight.live && flight.phase == Phase::kEnding);
    const auto found = endings_.find(slot);
    ending = std::move(found->second);
    endings_.erase(found);
    if (durable.ok()) {
      switch (reason) {
        case Reason::kAcked:
          ++stats_.acked;
          ++book_.ClientOfFlight(flight).acked;
          book_.ClientOfFlight(flight).last_ack = engine_.EngineNow();
          answers_.Remember(flight.id, SignatureOf(flight.epoch, book_.ClientOfFlight(flight).name,
                                                   ending.key.empty() ? flight.id : ending.key));
          Audit("ack", flight);
          break;
        case Reason::kDeadLettered:
          ++stats_.dead_lettered;
          Audit("dead-letter", flight);
          break;
        case Reason::kWithdrawn:
          ++stats_.withdrawn;
          Audit("withdraw", flight);
          break;
      }
      const Flight ended{
          .offset = flight.offset, .numbered = flight.numbered, .track = flight.track};
      book_.Remove(slot);
      FinishTarget(ended, effects);
    }
    // Otherwise the journal has failed: nobody knows, until the store is opened again.
  }
  Run(effects);
  for (const Done& done : ending.told) done(durable);
  Release();
}

// The event has one target less; its source is told after the last.
void DispatcherCore::FinishTarget(const Flight& flight, Effects& effects) {
  if (!flight.numbered) {
    if (const auto event = book_.FinishUnnumbered(flight.offset)) {
      TellSource(event->source, std::nullopt, event->token, effects);
    }
    return;
  }
  const uint32_t source = book_.track(flight.track).source;
  if (book_.Unfinished(source, flight.offset)) return;
  TellSource(book_.source(source).key, flight.offset, 0, effects);
}

void DispatcherCore::TellWhenDurable(const SourceEvent& event, const Commit& commit,
                                     Effects& effects) {
  After(
      commit,
      [this, source = event.source, offset = event.offset,
       token = event.token](const Status& durable) {
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

void DispatcherCore::TellSource(const SourceKey& source, std::optional<uint64_t> offset,
                                uint64_t token, Effects& effects) {
  ++stats_.source_acks;
  if (host_.source_ack == nullptr) return;
  effects.push_back(
      [this, source, offset, token] { host_.source_ack->Finished(source, offset, token); });
}

// --- Dead letters ---

void DispatcherCore::BeginDeadLetter(Slot slot, Effects& effects) {
  Flight& flight = book_.flight(slot);
  StatusOr<Delivery> delivery = Read(flight);
  if (!delivery.ok()) return RetryDeadLetter(slot, delivery.status());
  if (host_.still_wanted && !host_.still_wanted(*delivery)) {
    return EndIt(slot, {.reason = Reason::kWithdrawn}, nullptr, effects);
  }
  delivery->attempt = flight.attempt;
  flight.phase = Phase::kDeadLettering;
  const auto shared = std::make_shared<Delivery>(*std::move(delivery));
  ++outstanding_;
  effects.push_back([this, slot, generation = flight.generation, shared] {
    if (host_.sink == nullptr) {
      return AfterSink(slot, generation, shared, DeadLetterPlace{options_.dlq_topic, 0});
    }
    host_.sink->Write(*shared, "attempts exhausted",
                      [this, slot, generation, shared](const StatusOr<DeadLetterPlace>& place) {
                        AfterSink(slot, generation, shared, place);
                      });
  });
}

void DispatcherCore::AfterSink(Slot slot, uint32_t generation, std::shared_ptr<Delivery> delivery,
                               const StatusOr<DeadLetterPlace>& place) {
  if (!place.ok()) return AfterLedger(slot, generation, *delivery, {}, place.status());
  if (host_.ledger == nullptr) {
    return AfterLedger(slot, generation, *delivery, *place, absl::OkStatus());
  }
  host_.ledger->Record(delivery->id, *place,
                       [this, slot, generation, delivery, place = *place](const Status& recorded) {
                         AfterLedger(slot, generation, *delivery, place, recorded);
                       });
}

void DispatcherCore::AfterLedger(Slot slot, uint32_t generation, const Delivery& delivery,
                                 const DeadLetterPlace& place, const Status& recorded) {
  Effects effects;
  {
    MutexLock lock(mu_);
    CHECK(book_.Is(slot, generation));
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
  ++flight.dead_attempts;
  if (flight.dead_attempts == 1 && options_.log != nullptr) {
    options_.log->Log(LogLevel::kWarning, fmt::format("delivery {} could not be dead-lettered: {}",
                                                      flight.id, Message(why)));
  }
  wheel_.Set(slot, engine_.EngineNow() + Backoff(flight.dead_attempts));
}

}  // namespace holdfast
