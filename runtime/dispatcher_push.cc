// Pushing: what is due, over which channel, and what waits for one.
#include <algorithm>
#include <tuple>
#include <utility>

#include "journal/base/check.h"
#include "runtime/dispatcher.h"
#include "runtime/retry_policy.h"

namespace holdfast {
namespace {

// What one tick does at most before it lets others have the lock: a millisecond, about.
constexpr TimerWheel::Most kAtOnce{.due = 1'024, .moved = 65'536};
// A client's list of what waits may hold so many that have ended.
constexpr size_t kWaitingSlack = 64;

}  // namespace

StatusOr<Delivery> DispatcherCore::Read(const Flight& flight) {
  ASSIGN_OR_RETURN(StoredDelivery stored, engine_.deliveries().Get(book_.IdOf(flight).view()));
  return std::move(stored.delivery);
}

// It is due.
void DispatcherCore::PushOrWait(Slot slot, Effects& effects) {
  Flight& flight = book_.flight(slot);
  book_.Detach(slot);
  if (flight.numbered && book_.source(book_.track(flight.track).source).MayEndMoved()) {
    return EndIt(slot, {.reason = Reason::kWithdrawn, .moved = true}, nullptr, effects);
  }
  if (!flight.counted && book_.AttemptOf(flight) >= options_.attempts_max) {
    return BeginDeadLetter(slot, effects);
  }
  const uint32_t channel = book_.NextChannel(book_.track(flight.track).client);
  if (channel == kNone) return Wait(slot);
  if (flight.counted) return PushCounted(slot, channel, effects);
  BeginPush(slot, channel, effects);
}

// The count of this push must be durable before it: a message that kills the process on every push
// would never reach the end of its attempts otherwise.
void DispatcherCore::BeginPush(Slot slot, uint32_t channel, Effects& effects) {
  Flight& flight = book_.flight(slot);
  if (host_.still_wanted) {
    const StatusOr<Delivery> delivery = Read(flight);
    if (delivery.ok() && !host_.still_wanted(*delivery)) {
      return EndIt(slot, {.reason = Reason::kWithdrawn}, nullptr, effects);
    }
  }
  const uint32_t attempt = book_.AttemptOf(flight) + 1;
  const absl::Duration due = engine_.EngineNow() + options_.ack_timeout;
  const FlightId id = book_.IdOf(flight);
  const Commit commit = engine_.deliveries().Update(
      {.id = id.view(), .epoch = book_.EpochOf(flight), .attempt = attempt, .due = due});
  if (!commit.refused().ok()) {
    // A full disk: it is not pushed, because that could not be counted.
    return Arm(slot, engine_.EngineNow() + Backoff(attempt));
  }
  book_.SetAttempt(flight, attempt);
  flight.phase = Phase::kPushing;
  book_.Attach(slot, channel);
  After(
      commit,
      [this, slot, id = flight.id, attempt](const Status& durable) {
        FinishPush(slot, id, attempt, durable);
      },
      effects);
}

void DispatcherCore::FinishPush(Slot slot, FlightKey id, uint32_t attempt, const Status& durable) {
  Effects effects;
  {
    MutexLock lock(mu_);
    if (!durable.ok() || !book_.Is(slot, id)) return;
    Flight& flight = book_.flight(slot);
    // It was acknowledged meanwhile, by its id from an earlier push.
    if (flight.phase != Phase::kPushing || book_.AttemptOf(flight) != attempt) return;
    flight.counted = true;
    const uint32_t channel = book_.ChannelOf(flight);
    if (channel == kNone) {
      PushOrWait(slot, effects);  // the channel closed meanwhile
    } else {
      PushCounted(slot, channel, effects);
    }
  }
  Run(effects);
}

// Its count is durable, and it is made once a channel is there for it.
void DispatcherCore::PushCounted(Slot slot, uint32_t channel, Effects& effects) {
  Flight& flight = book_.flight(slot);
  StatusOr<Delivery> delivery = Read(flight);
  if (!delivery.ok()) {
    if (options_.log != nullptr) {
      options_.log->Log(LogLevel::kError,
                        fmt::format("delivery {} cannot be read: {}", book_.IdOf(flight).view(),
                                    Message(delivery.status())));
    }
    return Arm(slot, engine_.EngineNow() + Backoff(book_.AttemptOf(flight)));
  }
  Hand(slot, channel, *std::move(delivery), engine_.EngineNow(), effects);
}

// The push itself.
void DispatcherCore::Hand(Slot slot, uint32_t channel, Delivery delivery, absl::Duration now,
                          Effects& effects) {
  Flight& flight = book_.flight(slot);
  flight.counted = false;
  book_.Attach(slot, channel);
  Arm(slot, now + options_.ack_timeout);
  if (host_.guard == nullptr) CountPush(slot);  // otherwise once it is let through
  effects.pushes.push_back(
      {book_.ClientOfFlight(flight).channels[channel], std::move(delivery), slot, flight.id});
}

void DispatcherCore::CountPush(Slot slot) {
  const Flight& flight = book_.flight(slot);
  Client& client = book_.ClientOfFlight(flight);
  ++stats_.pushed;
  ++client.pushed;
  if (book_.AttemptOf(flight) > 1) {
    ++stats_.redelivered;
    ++client.redelivered;
  }
  Audit("push", flight);
}

void DispatcherCore::Arm(Slot slot, absl::Duration due) {
  book_.flight(slot).phase = Phase::kArmed;
  wheel_.Set(slot, due);
}

// Until its client has a channel. It spends no attempt meanwhile.
void DispatcherCore::Wait(Slot slot) {
  Flight& flight = book_.flight(slot);
  flight.phase = Phase::kWaiting;
  wheel_.Clear(slot);
  Client& client = book_.ClientOfFlight(flight);
  client.waiting.push_back(flight.id);
  ++stats_.waiting;
  // Those that ended while they waited are not in flight any more.
  if (client.waiting.size() > 2 * client.in_flight + kWaitingSlack) {
    std::erase_if(client.waiting, [this](FlightKey id) {
      mu_.AssertHeld();
      return !IsWaiting(id);
    });
  }
}

bool DispatcherCore::IsWaiting(FlightKey id) {
  const Slot slot = book_.FindKey(id);
  return slot != kNone && book_.flight(slot).phase == Phase::kWaiting;
}

void DispatcherCore::ChannelOpened(std::string_view name, std::shared_ptr<Channel> channel) {
  Effects effects;
  {
    MutexLock lock(mu_);
    const uint32_t client = book_.ClientOf(name);
    book_.OpenFor(client, std::move(channel));
    auto waiting = std::exchange(book_.client(client).waiting, {});
    for (const FlightKey id : waiting) {
      if (!IsWaiting(id)) continue;
      const Slot slot = book_.FindKey(id);
      --stats_.waiting;
      book_.flight(slot).phase = Phase::kArmed;
      PushOrWait(slot, effects);
    }
  }
  Run(effects);
}

void DispatcherCore::ChannelClosed(std::string_view name, const Channel* channel) {
  Effects effects;
  {
    MutexLock lock(mu_);
    const uint32_t client = book_.FindClient(name);
    if (client == kNone) return;
    // All have the same timeout: what is due first was pushed first, to a grain of the wheel.
    std::vector<std::tuple<absl::Duration, size_t, Slot>> pushed;
    for (const Slot slot : book_.Close(client, channel)) {
      // What is being pushed or ended finds out by itself.
      if (book_.flight(slot).phase != Phase::kArmed) continue;
      pushed.emplace_back(wheel_.DueOf(slot), pushed.size(), slot);
    }
    std::sort(pushed.begin(), pushed.end());
    for (const auto& [due, place, slot] : pushed) {
      wheel_.Clear(slot);
      PushOrWait(slot, effects);
    }
  }
  Run(effects);
}

void DispatcherCore::Tick() {
  for (bool more = true; more;) {
    Effects effects;
    {
      MutexLock lock(mu_);
      if (!ready_) return;
      due_.clear();
      more = wheel_.Turn(engine_.EngineNow(), kAtOnce, due_);
      for (const Slot slot : due_) PushOrWait(slot, effects);
      if (!more) WriteCursors();
    }
    Run(effects);
  }
  if (host_.guard != nullptr) TellWithheld();
}

// How far each source may forget; written now and then, because only a restart of it asks.
void DispatcherCore::WriteCursors() {
  std::vector<std::pair<uint32_t, uint64_t>> risen;
  for (uint32_t index = 0; index < book_.sources(); ++index) {
    Source& source = book_.source(index);
    if (!std::exchange(source.cursor_dirty, false)) continue;
    const uint64_t cursor = book_.CursorOf(index);
    if (cursor > source.cursor) risen.emplace_back(index, cursor);
  }
  if (risen.empty()) return;
  const Commit commit = engine_.Transact([&](Transaction& change) {
    mu_.AssertHeld();
    for (const auto& [index, cursor] : risen) change.SourceCursor(book_.source(index).key, cursor);
  });
  for (const auto& [index, cursor] : risen) {
    Source& source = book_.source(index);
    if (commit.refused().ok()) {
      source.cursor = cursor;
    } else {
      source.cursor_dirty = true;
    }
  }
}

}  // namespace holdfast
