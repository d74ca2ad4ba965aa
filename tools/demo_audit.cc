#include "tools/demo_audit.h"

#include <algorithm>

#include "journal/format/records_text.h"

namespace holdfast {

DemoAudit::Known& DemoAudit::Learn(const std::string& id, uint64_t client, uint64_t offset) {
  const auto [id_of, first] = ids_.try_emplace({client, offset}, id);
  if (!first && id_of->second != id) {
    findings_.Add(fmt::format("event {} was put twice for client {}: as {} and as {}", offset,
                              DemoWork::ClientName(client), NameText(id_of->second), NameText(id)));
  }
  Known& known = known_.try_emplace(id, Known{.client = client, .offset = offset}).first->second;
  if (known.client != client || known.offset != offset) {
    findings_.Add(fmt::format("id {} was given out twice", NameText(id)));
  }
  return known;
}

void DemoAudit::Take(const DemoReport& report) {
  if (report.client >= work_.clients || report.offset >= work_.event_count()) {
    findings_.Add(
        fmt::format("a report names client {} and event {}", report.client, report.offset));
    return;
  }
  Known& known = Learn(report.id, report.client, report.offset);
  switch (report.step) {
    case DemoStep::kPut:
      ++puts_told_;
      if (known.put) findings_.Add(fmt::format("{} was put twice", NameText(report.id)));
      known.put = true;
      return;
    case DemoStep::kTry:
      if (known.acked)
        findings_.Add(fmt::format("{} came back after its ack", NameText(report.id)));
      known.tried = true;
      return;
    case DemoStep::kAck:
      break;
  }
  ++acks_told_;
  if (known.acked) findings_.Add(fmt::format("{} was acknowledged twice", NameText(report.id)));
  known.acked = true;
  committed_[report.client] = std::max(committed_[report.client], report.next);
}

void DemoAudit::CompareLive(const Delivery& delivery, Round& round) {
  ++round.pending;
  uint64_t client = 0;
  while (client < work_.clients && DemoWork::ClientName(client) != delivery.client) ++client;
  if (client == work_.clients || !delivery.offset.has_value() ||
      *delivery.offset >= work_.event_count() || delivery.topic != DemoWork::kTopic) {
    findings_.Add(fmt::format("{} is a delivery that nobody put", NameText(delivery.id)));
    return;
  }
  Known& known = Learn(delivery.id, client, *delivery.offset);
  if (known.live) findings_.Add(fmt::format("{} is there twice", NameText(delivery.id)));
  if (known.acked) findings_.Add(fmt::format("{} is back after its ack", NameText(delivery.id)));
  if (delivery.event != work_.EventAt(*delivery.offset)) {
    findings_.Add(
        fmt::format("{} has other bytes than event {}", NameText(delivery.id), *delivery.offset));
  }
  known.live = true;
  if (!known.put) ++round.untold_puts;
  known.put = true;
}

StatusOr<uint64_t> DemoAudit::HandedIn(Engine& store) {
  const StatusOr<SourceProgress> source =
      store.offsets().ReadSource({DemoWork::kTopic, DemoWork::kIncarnation, DemoWork::kPartition});
  if (source.status().code() == StatusCode::kNotFound) return 0;
  RETURN_IF_ERROR(source.status());
  return source->has_seen ? source->seen + 1 : 0;
}

void DemoAudit::ForgetUnwritten(uint64_t handed_in) {
  for (auto entry = known_.begin(); entry != known_.end();) {
    const Known& known = entry->second;
    if (known.offset < handed_in) {
      ++entry;
      continue;
    }
    if (known.put) {
      findings_.Add(
          fmt::format("event {} was put as {}, but the store says that it was never handed in",
                      known.offset, NameText(entry->first)));
    }
    ids_.erase({known.client, known.offset});
    entry = known_.erase(entry);
  }
}

StatusOr<DemoAudit::Round> DemoAudit::Compare(Engine& store) {
  Round round;
  for (auto& [id, known] : known_) known.live = false;
  RETURN_IF_ERROR(store.deliveries().Iterate([&](const StoredDelivery& stored) {
    CompareLive(stored.delivery, round);
    return true;
  }));
  ASSIGN_OR_RETURN(const uint64_t handed_in, HandedIn(store));
  ForgetUnwritten(handed_in);
  std::vector<uint64_t> lowest_live(work_.clients, work_.event_count());
  for (auto& [id, known] : known_) {
    if (known.live) {
      lowest_live[known.client] = std::min(lowest_live[known.client], known.offset);
    } else if (known.tried && !known.acked) {
      ++round.untold_acks;
      known.acked = true;
    } else if (known.put && !known.acked) {
      findings_.Add(fmt::format("{} is missing: event {} for {} was put and not acknowledged",
                                NameText(id), known.offset, DemoWork::ClientName(known.client)));
    }
  }
  for (uint64_t client = 0; client < work_.clients; ++client) {
    const std::string name = DemoWork::ClientName(client);
    const StatusOr<StoredOffset> stored =
        store.offsets().Read({DemoWork::kTopic, name, DemoWork::kPartition});
    if (!stored.ok() && stored.status().code() != StatusCode::kNotFound) return stored.status();
    const uint64_t next = stored.ok() ? stored->position.next : 0;
    round.offsets.push_back(next);
    if (next < committed_[client]) {
      findings_.Add(
          fmt::format("the offset of {} was at {}, is at {}", name, committed_[client], next));
    }
    if (next > lowest_live[client]) {
      findings_.Add(fmt::format("the offset of {} is at {}, but event {} is not finished", name,
                                next, lowest_live[client]));
    }
    committed_[client] = std::max(committed_[client], next);
  }
  return round;
}

void DemoAudit::CheckFinished(const Round& last) {
  if (last.pending > 0)
    findings_.Add(fmt::format("{} deliveries are left at the end", last.pending));
  for (uint64_t client = 0; client < work_.clients; ++client) {
    if (last.offsets[client] != work_.event_count()) {
      findings_.Add(fmt::format("{} ended at offset {} of {}", DemoWork::ClientName(client),
                                last.offsets[client], work_.event_count()));
    }
  }
  const auto finished = static_cast<uint64_t>(
      std::ranges::count_if(known_, [](const auto& entry) { return entry.second.acked; }));
  if (finished != work_.delivery_count()) {
    findings_.Add(
        fmt::format("{} deliveries were finished, expected {}", finished, work_.delivery_count()));
  }
}

}  // namespace holdfast
