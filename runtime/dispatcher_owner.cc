// Whose a source is, and whose a subscription: what a guard holds back, and epochs that rise.
#include <algorithm>
#include <utility>

#include "journal/base/check.h"
#include "runtime/dispatcher.h"

namespace holdfast {

Status DispatcherCore::NotOwned() {
  return MakeStatus(StatusCode::kPermissionDenied, Detail::kStaleOwner,
                    "the source is another instance's now");
}

// The guard is asked without the lock, so the id is looked up once more afterwards. It never names
// another delivery.
Status DispatcherCore::CheckOwned(std::string_view id, Question question) {
  if (host_.guard == nullptr) return absl::OkStatus();
  SourceKey source;
  {
    MutexLock lock(mu_);
    const Slot slot = ready_ ? book_.Find(id) : kNone;
    if (slot == kNone) return absl::OkStatus();
    source = book_.source(book_.track(book_.flight(slot).track).source).key;
  }
  return (host_.guard->*question)(source) ? absl::OkStatus() : NotOwned();
}

// It is counted, attached and armed as if it were made. Held back, it is looked at again after a
// backoff, and its count is still that of the push to come.
void DispatcherCore::PushIfOwned(const Push& push) {
  const auto& [to, delivery, slot, id] = push;
  const bool owned = Owns({delivery.topic, delivery.incarnation, delivery.partition});
  {
    MutexLock lock(mu_);
    if (!book_.Is(slot, id)) return;  // it ended meanwhile
    if (owned) {
      CountPush(slot);
    } else {
      Flight& flight = book_.flight(slot);
      ++stats_.withheld;
      Audit("withhold", flight);
      // Otherwise it is ending, or its channel closed and it is on its way again.
      const bool same = book_.AttemptOf(flight) == delivery.attempt;
      if (flight.phase == Phase::kArmed && same && !flight.counted) {
        flight.counted = true;
        book_.Detach(slot);
        Arm(slot, engine_.EngineNow() + Backoff(1));
      }
      return;
    }
  }
  to->Push(delivery);
}

void DispatcherCore::TellIfOwned(const Told& told) {
  const bool owned = Owns(*told.source);
  {
    MutexLock lock(mu_);
    if (owned) {
      ++stats_.source_acks;
    } else {
      ++stats_.withheld;
      withheld_.push_back(told);
    }
  }
  if (owned) host_.source_ack->Finished(*told.source, told.offset, told.token);
}

void DispatcherCore::TellWithheld() {
  std::vector<Told> withheld;
  {
    MutexLock lock(mu_);
    withheld.swap(withheld_);
  }
  std::vector<Told> still;
  for (const Told& told : withheld) {
    if (Owns(*told.source)) {
      TellIfOwned(told);
    } else {
      still.push_back(told);
    }
  }
  if (still.empty()) return;
  MutexLock lock(mu_);
  withheld_.insert(withheld_.end(), still.begin(), still.end());
}

void DispatcherCore::WithholdDeadLetter(Slot slot, FlightKey id) {
  {
    MutexLock lock(mu_);
    CHECK(book_.Is(slot, id));
    ++stats_.withheld;
    Arm(slot, engine_.EngineNow() + Backoff(1));
  }
  Release();
}

// --- Epochs ---

uint64_t DispatcherCore::FloorOf(uint32_t client, std::string_view topic) {
  const auto floor = floors_.find(client);
  if (floor == floors_.end()) return 0;
  const auto of_topic = floor->second.of_topic.find(topic);
  return std::max(floor->second.of_all,
                  of_topic == floor->second.of_topic.end() ? 0 : of_topic->second);
}

bool DispatcherCore::IsConcerned(Slot slot, uint32_t client,
                                 const std::optional<std::string_view>& topic) {
  const Flight& flight = book_.flight(slot);
  if (!flight.live()) return false;
  const Track& track = book_.track(flight.track);
  return (client == kNone || track.client == client) &&
         (!topic.has_value() || book_.source(track.source).key.topic == *topic);
}

// First the floor: what is put from then on has the new epoch by itself, so a look at what was in
// flight before finds all the others, a piece at a time.
void DispatcherCore::Resubscribe(const Resubscription& to, std::function<void(Status)> done) {
  if (to.epoch == 0) return done(Invalid("epoch 0: epochs begin with 1"));
  uint32_t client = kNone;
  Slot end = 0;
  bool ready = false;
  {
    MutexLock lock(mu_);
    ready = ready_;
    if (ready) {
      client = book_.ClientOf(to.client);
      EpochFloor& floor = floors_[client];
      uint64_t& epoch =
          to.topic.has_value() ? floor.of_topic[std::string(*to.topic)] : floor.of_all;
      epoch = std::max(epoch, to.epoch);
      end = static_cast<Slot>(book_.slots());
    }
  }
  if (!ready) return done(NotReady());
  Status raised;
  for (Slot from = 0; from < end && raised.ok(); from += kSlotsTogether) {
    raised = RaiseEpochs(to, client, from, std::min(end, from + kSlotsTogether));
  }
  if (!raised.ok()) return done(raised);
  Effects effects;
  {
    MutexLock lock(mu_);
    After(floors_[client].newest, std::move(done), effects);
  }
  Run(effects);
}

Status DispatcherCore::RaiseEpochs(const Resubscription& to, uint32_t client, Slot from, Slot end) {
  MutexLock lock(mu_);
  for (Slot slot = from; slot < end; ++slot) {
    if (IsConcerned(slot, client, to.topic)) RETURN_IF_ERROR(RaiseEpoch(slot, to.epoch));
  }
  return absl::OkStatus();
}

Status DispatcherCore::RaiseEpoch(Slot slot, uint64_t epoch) {
  ASSIGN_OR_RETURN(std::optional<Reschedule> raise, ToRaise(slot, epoch));
  if (!raise.has_value()) return absl::OkStatus();
  const FlightId id = book_.IdOf(book_.flight(slot));
  raise->id = id.view();
  const Commit commit = engine_.deliveries().Update(*raise);
  RETURN_IF_ERROR(commit.refused());
  Raised(slot, epoch, commit);
  return absl::OkStatus();
}

// An end that is in the journal already keeps the epoch that it was made with.
StatusOr<std::optional<Reschedule>> DispatcherCore::ToRaise(Slot slot, uint64_t epoch) {
  const Flight& flight = book_.flight(slot);
  if (flight.phase == Phase::kEnding || book_.EpochOf(flight) >= epoch) return std::nullopt;
  ASSIGN_OR_RETURN(const StoredSchedule now,
                   engine_.deliveries().GetSchedule(book_.IdOf(flight).view()));
  return Reschedule{.id = {}, .epoch = epoch, .attempt = now.attempt, .due = now.due};
}

void DispatcherCore::Raised(Slot slot, uint64_t epoch, const Commit& commit) {
  Flight& flight = book_.flight(slot);
  book_.SetEpoch(flight, epoch);
  floors_[book_.track(flight.track).client].newest = commit;
  Audit("resubscribe", flight);
}

}  // namespace holdfast
