// What people see of the dispatcher: audit lines, and what is in flight.
#include <algorithm>
#include <utility>

#include "journal/base/checksum.h"
#include "journal/base/json.h"
#include "runtime/dispatcher.h"

namespace holdfast {
namespace {

constexpr size_t kPendingMax = 10'000;

DeliveryPhase PhaseOf(const Flight& flight) {
  switch (flight.phase) {
    case Phase::kWaiting:
      return DeliveryPhase::kWaiting;
    case Phase::kArmed:
      return DeliveryPhase::kScheduled;
    case Phase::kPushing:
      return DeliveryPhase::kCounting;
    case Phase::kEnding:
      return DeliveryPhase::kEnding;
    case Phase::kFree:
    case Phase::kDeadLettering:
      break;
  }
  return DeliveryPhase::kDeadLettering;
}

// One word of a line, whatever bytes a client sent.
std::string Word(std::string_view bytes) {
  const bool plain = !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != '=';
  });
  if (plain) return std::string(bytes);
  std::string quoted;
  JsonWriter(quoted).Value(bytes);
  return quoted;
}

}  // namespace

std::string_view DeliveryPhaseName(DeliveryPhase phase) {
  switch (phase) {
    case DeliveryPhase::kWaiting:
      return "waiting";
    case DeliveryPhase::kScheduled:
      return "scheduled";
    case DeliveryPhase::kCounting:
      return "counting";
    case DeliveryPhase::kEnding:
      return "ending";
    case DeliveryPhase::kDeadLettering:
      break;
  }
  return "dead-lettering";
}

// By the id alone, so that all lines of a delivery are there, in this process and the next.
bool DispatcherCore::IsAudited(std::string_view id) const {
  return options_.audit != nullptr &&
         (options_.audit_one_in == 1 || Checksum(AsBytes(id), 0) % options_.audit_one_in == 0);
}

void DispatcherCore::Audit(std::string_view what, const Flight& flight) {
  if (options_.audit == nullptr) return;
  const FlightId id = book_.IdOf(flight);
  if (!IsAudited(id.view())) return;
  options_.audit->Log(LogLevel::kInfo,
                      fmt::format("{} id={} attempt={} epoch={}", what, Word(id.view()),
                                  book_.AttemptOf(flight), book_.EpochOf(flight)));
}

void DispatcherCore::AuditRefusal(std::string_view what, const Acknowledgement& ack,
                                  const Status& why) {
  if (!IsAudited(ack.id)) return;
  options_.audit->Log(LogLevel::kInfo,
                      fmt::format("{} id={} client={} epoch={} why={}", what, Word(ack.id),
                                  Word(ack.client), ack.epoch, Word(Message(why))));
}

StatusOr<std::vector<PendingDelivery>> DispatcherCore::Pending(const PendingFilter& filter) {
  if (filter.limit == 0 || filter.limit > kPendingMax) {
    return Invalid("limit {}: it must be from 1 to {}", filter.limit, kPendingMax);
  }
  std::vector<PendingDelivery> pending;
  uint32_t client = kNone;
  size_t end = 0;
  {
    MutexLock lock(mu_);
    if (filter.client.has_value()) {
      client = book_.FindClient(*filter.client);
      if (client == kNone) return pending;
    }
    end = book_.slots();
  }
  for (size_t from = 0; from < end && pending.size() < filter.limit; from += kSlotsTogether) {
    MutexLock lock(mu_);
    for (size_t at = from; at < std::min<size_t>(end, from + kSlotsTogether); ++at) {
      const auto slot = static_cast<Slot>(at);
      if (!IsConcerned(slot, client, filter.topic)) continue;
      pending.push_back(Show(slot));
      if (pending.size() == filter.limit) break;
    }
  }
  return pending;
}

PendingDelivery DispatcherCore::Show(Slot slot) {
  const Flight& flight = book_.flight(slot);
  const Track& track = book_.track(flight.track);
  const absl::Duration now = engine_.EngineNow();
  const absl::Duration due_in = wheel_.IsSet(slot) ? wheel_.DueOf(slot) - now : absl::Duration();
  return {.id = std::string(book_.IdOf(flight).view()),
          .client = book_.client(track.client).name,
          .source = book_.source(track.source).key,
          .offset = flight.numbered ? std::optional(flight.offset) : std::nullopt,
          .epoch = book_.EpochOf(flight),
          .attempt = book_.AttemptOf(flight),
          .phase = PhaseOf(flight),
          .due_in = std::max(due_in, absl::ZeroDuration()),
          .age = std::max(now - book_.BornOf(flight), absl::ZeroDuration())};
}

}  // namespace holdfast
