#include "tools/demo_audit.h"

#include <algorithm>

#include "journal/format/records_text.h"
#include "tools/demo_temper.h"

namespace holdfast {
namespace {

std::string NameOf(uint64_t client) { return DemoWork::ClientName(client); }

}  // namespace

// --- What the child tells ---

DemoAudit::Known& DemoAudit::Learn(const std::string& id, const Place& place) {
  const auto& [client, offset] = place;
  const auto [id_of, first] = ids_.try_emplace(place, id);
  if (!first && id_of->second != id) {
    Fault("event {} was put twice for {}: as {} and as {}", offset, NameOf(client),
          NameText(id_of->second), NameText(id));
  }
  Known& known = known_.try_emplace(id, Known{.client = client, .offset = offset}).first->second;
  if (known.client != client || known.offset != offset) {
    Fault("id {} was given out twice", NameText(id));
  }
  return known;
}

void DemoAudit::Take(const DemoReport& report) {
  if (report.client >= work_.clients || report.offset >= work_.event_count()) {
    return Fault("a report names client {} and event {}", report.client, report.offset);
  }
  const Place place(report.client, report.offset);
  if (report.step == DemoStep::kTold) {
    told_.Add(report.offset);
    for (uint64_t client = 0; client < work_.clients; ++client) TakeEnd({client, report.offset});
    return;
  }
  if (report.step == DemoStep::kOver) return TakeEnd(place);
  if (report.step == DemoStep::kStuck) {
    return Fault("nothing is finished any more: event {} and others are open", report.offset);
  }
  Known& known = Learn(report.id, place);
  switch (report.step) {
    case DemoStep::kPut:
      if (known.put) Fault("{} was put twice", NameText(report.id));
      [[fallthrough]];
    case DemoStep::kAgain:
      if (!known.put) ++puts_told_;
      known.put = true;
      return;
    case DemoStep::kPush:
      return TakePush(report, known);
    case DemoStep::kTry:
      known.tried = true;
      return;
    case DemoStep::kAck:
      return TakeAck(report.id, known);
    case DemoStep::kRefuse:
      known.tried = false;
      return;
    case DemoStep::kOver:
    case DemoStep::kTold:
    case DemoStep::kStuck:
      return;  // Of no delivery.
  }
}

void DemoAudit::TakePush(const DemoReport& report, Known& known) {
  const std::string id = NameText(report.id);
  DemoTally& tally = tallies_[known.client];
  ++tally.pushes;
  if (++pushes_[{known.client, known.offset}] > 1) ++tally.duplicates;
  if (report.checksum != DemoChecksum(work_.EventAt(known.offset))) {
    Fault("{} was pushed with other bytes than event {}", id, known.offset);
  }
  if (report.attempt == 0 || report.attempt > kDemoAttemptsMax) {
    return Fault("{} was pushed as attempt {} of {}", id, report.attempt, kDemoAttemptsMax);
  }
  const uint64_t attempt = uint64_t{1} << report.attempt;
  if ((known.attempts & attempt) != 0) {
    Fault("{} was pushed twice as attempt {}", id, report.attempt);
  }
  known.attempts |= attempt;
  if (known.dead) Fault("{} was pushed though it is a dead letter", id);
  if (!known.acked) return;
  if (known.acked_in < life_ || known.crossed) {
    Fault("{} was pushed again after its acknowledgement was durable", id);
  }
  known.crossed = true;
  ++crossed_;
}

void DemoAudit::TakeAck(const std::string& id, Known& known) {
  if (known.acked) {
    // Each push may be answered; but none of those that came before a kill.
    if (known.acked_in < life_) Fault("{} was acknowledged again after a restart", NameText(id));
    return;
  }
  if (known.attempts == 0) Fault("{} was acknowledged, but never pushed", NameText(id));
  if (known.dead) Fault("{} was acknowledged, but it is a dead letter", NameText(id));
  ++acks_told_;
  ++tallies_[known.client].acked;
  known.acked = true;
  known.acked_in = life_;
}

void DemoAudit::TakeEnd(const Place& place) {
  const auto id = ids_.find(place);
  if (id == ids_.end()) {
    return Fault("event {} is said to be finished for {}, but was never put", place.second,
                 NameOf(place.first));
  }
  Known& known = known_.at(id->second);
  known.ended = true;
  if (!known.tried && !known.acked && !known.dead) known.ended_untried = true;
}

// --- What the store holds ---

DemoAudit::Known* DemoAudit::Recognise(const std::string& id, const std::string& client,
                                       const std::string& topic,
                                       const std::optional<uint64_t>& offset,
                                       const std::string& event) {
  uint64_t number = 0;
  while (number < work_.clients && NameOf(number) != client) ++number;
  if (number == work_.clients || !offset.has_value() || *offset >= work_.event_count() ||
      topic != DemoWork::kTopic) {
    Fault("{} is a delivery that nobody put", NameText(id));
    return nullptr;
  }
  if (event != work_.EventAt(*offset)) {
    Fault("{} has other bytes than event {}", NameText(id), *offset);
  }
  return &Learn(id, {number, *offset});
}

void DemoAudit::CompareLive(const Delivery& delivery, Round& round) {
  ++round.pending;
  Known* const known =
      Recognise(delivery.id, delivery.client, delivery.topic, delivery.offset, delivery.event);
  if (known == nullptr) return;
  const std::string id = NameText(delivery.id);
  if (known->live) Fault("{} is there twice", id);
  if (known->acked) Fault("{} is back after its acknowledgement", id);
  if (known->dead) Fault("{} is back after it became a dead letter", id);
  if (known->ended) {
    Fault("event {} was said to be finished, but {} for {} is not", known->offset, id,
          delivery.client);
  }
  known->live = true;
  known->tried = false;  // Whoever tried is dead.
  if (!known->put) ++round.untold_puts;
  known->put = true;
}

void DemoAudit::CompareDead(const DeadLetter& letter, Round& round) {
  ++round.dead_letters;
  Known* const known =
      Recognise(letter.delivery_id, letter.client, letter.topic, letter.offset, letter.event);
  if (known == nullptr) return;
  const std::string id = NameText(letter.delivery_id);
  if (known->live) Fault("{} is a dead letter and in flight", id);
  if (known->acked) Fault("{} is a dead letter and acknowledged", id);
  if (letter.attempts != kDemoAttemptsMax) {
    Fault("{} was given up after {} attempts of {}", id, letter.attempts, kDemoAttemptsMax);
  }
  if (!known->dead) ++tallies_[known->client].dead_letters;
  known->dead = known->in_dlq = known->put = true;
}

// A push, and all that follows from it, may come before its put is durable; a kill may take both.
// The event then comes again under another id.
void DemoAudit::ForgetUnwritten(uint64_t handed_in, Round& round) {
  for (auto entry = known_.begin(); entry != known_.end();) {
    const Known& known = entry->second;
    if (known.offset < handed_in) {
      ++entry;
      continue;
    }
    if (known.put || known.acked) {
      Fault("event {} was put as {}, but the store says that it was never handed in", known.offset,
            NameText(entry->first));
    }
    ++round.unwritten;
    ids_.erase({known.client, known.offset});
    entry = known_.erase(entry);
  }
}

void DemoAudit::CompareKnown(const std::string& id, Known& known, Round& round) {
  if (known.dead && !known.in_dlq) Fault("the dead letter {} is gone", NameText(id));
  if (known.ended_untried && !known.live && !known.dead) {
    Fault("event {} was said to be finished before {} for {} was", known.offset, NameText(id),
          NameOf(known.client));
  }
  if (known.live || known.dead || known.acked || known.ended_untried) return;
  if (!known.tried) {
    return Fault("{} is missing: event {} for {} was put and did not end", NameText(id),
                 known.offset, NameOf(known.client));
  }
  ++round.untold_acks;
  ++tallies_[known.client].acked;
  known.acked = true;
  known.acked_in = life_;
}

void DemoAudit::CheckEachHandedIn(uint64_t handed_in) {
  for (uint64_t client = 0; client < work_.clients; ++client) {
    uint64_t next = 0;
    for (auto at = ids_.lower_bound({client, 0});
         at != ids_.end() && at->first == Place(client, next) && next < handed_in; ++at) {
      ++next;
    }
    if (next < handed_in) Fault("event {} was never put for {}", next, NameOf(client));
  }
}

Status DemoAudit::CompareOffsets(Engine& store, uint64_t handed_in, Round& round) {
  // The lowest that is not finished, or what comes next.
  std::vector<uint64_t> lowest(work_.clients, handed_in);
  for (const auto& [id, known] : known_) {
    if (known.live) lowest[known.client] = std::min(lowest[known.client], known.offset);
  }
  for (uint64_t client = 0; client < work_.clients; ++client) {
    const StatusOr<StoredOffset> stored =
        store.offsets().Read({DemoWork::kTopic, NameOf(client), DemoWork::kPartition});
    if (!stored.ok() && stored.status().code() != StatusCode::kNotFound) return stored.status();
    const uint64_t next = stored.ok() ? stored->position.next : 0;
    round.offsets.push_back(next);
    if (next < committed_[client]) {
      Fault("the offset of {} was at {}, is at {}", NameOf(client), committed_[client], next);
    }
    if (next > lowest[client]) {
      Fault("the offset of {} is at {}, but event {} is not finished", NameOf(client), next,
            lowest[client]);
    }
    if (next < lowest[client]) {
      Fault("the offset of {} is at {}, but all below event {} is finished", NameOf(client), next,
            lowest[client]);
    }
    committed_[client] = std::max(committed_[client], next);
  }
  const uint64_t unfinished = *std::ranges::min_element(lowest);
  if (round.cursor > unfinished) {
    Fault("the cursor of the source is at {}, but event {} is not finished", round.cursor,
          unfinished);
  }
  if (round.cursor < cursor_) {
    Fault("the cursor of the source was at {}, is at {}", cursor_, round.cursor);
  }
  cursor_ = std::max(cursor_, round.cursor);
  return absl::OkStatus();
}

StatusOr<DemoAudit::Round> DemoAudit::Compare(Engine& store) {
  Round round;
  for (auto& [id, known] : known_) known.live = known.in_dlq = false;
  RETURN_IF_ERROR(store.deliveries().Iterate([&](const StoredDelivery& stored) {
    CompareLive(stored.delivery, round);
    return true;
  }));
  RETURN_IF_ERROR(store.dead_letters().Iterate([&](const StoredDeadLetter& stored) {
    CompareDead(stored.dead_letter, round);
    return true;
  }));
  const StatusOr<SourceProgress> source =
      store.offsets().ReadSource({DemoWork::kTopic, DemoWork::kIncarnation, DemoWork::kPartition});
  if (!source.ok() && source.status().code() != StatusCode::kNotFound) return source.status();
  const uint64_t handed_in = source.ok() && source->has_seen ? source->seen + 1 : 0;
  if (source.ok() && source->has_cursor) round.cursor = source->cursor;
  ForgetUnwritten(handed_in, round);
  for (auto& [id, known] : known_) CompareKnown(id, known, round);
  CheckEachHandedIn(handed_in);
  RETURN_IF_ERROR(CompareOffsets(store, handed_in, round));
  ++life_;
  return round;
}

void DemoAudit::CheckFinished(const Round& last) {
  if (last.pending > 0) Fault("{} deliveries are left at the end", last.pending);
  for (uint64_t offset = 0; offset < work_.event_count(); ++offset) {
    if (!told_.Has(offset)) {
      Fault("the source was not told the end of event {}", offset);
      break;
    }
  }
  for (uint64_t client = 0; client < work_.clients; ++client) {
    const DemoTally& tally = tallies_[client];
    if (last.offsets[client] != work_.event_count()) {
      Fault("{} ended at offset {} of {}", NameOf(client), last.offsets[client],
            work_.event_count());
    }
    if (tally.acked + tally.dead_letters != work_.event_count()) {
      Fault("{} acknowledged {} of {} events, and {} are dead letters", NameOf(client), tally.acked,
            work_.event_count(), tally.dead_letters);
    }
  }
  for (const auto& [id, known] : known_) {
    if (known.acked && !pushes_.contains({known.client, known.offset})) {
      Fault("event {} was never pushed to {}", known.offset, NameOf(known.client));
    }
  }
}

}  // namespace holdfast
