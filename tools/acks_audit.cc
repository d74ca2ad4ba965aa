#include "tools/acks_audit.h"

#include <algorithm>

#include "journal/format/records_text.h"

namespace holdfast {
namespace {

std::string KeyText(const OffsetKey& key) {
  return fmt::format("topic={} client={} partition={}", NameText(key.topic), NameText(key.client),
                     key.partition);
}

}  // namespace

void AcksAudit::Take(const AckLine& line) {
  Told& told = told_[line.id];
  switch (line.kind) {
    case AckKind::kTry:
      told.tried = true;
      return;
    case AckKind::kPut:
      ++puts_;
      if (told.put) findings_.Add(fmt::format("put twice: {}", NameText(line.id)));
      told.put = true;
      return;
    case AckKind::kAck: {
      ++acks_;
      if (told.ended()) findings_.Add(fmt::format("ended twice: {}", NameText(line.id)));
      told.acked = true;
      uint64_t& next = committed_[{line.topic, line.client, line.partition}];
      next = std::max(next, line.next);
      return;
    }
    case AckKind::kDead:
      ++dead_;
      if (told.ended()) findings_.Add(fmt::format("ended twice: {}", NameText(line.id)));
      told.dead = true;
      return;
  }
}

Status AcksAudit::Compare(Engine& store) {
  RETURN_IF_ERROR(CompareLive(store));
  RETURN_IF_ERROR(CompareDead(store));
  RETURN_IF_ERROR(CompareOffsets(store));
  CompareTold();
  return absl::OkStatus();
}

void AcksAudit::CheckEvent(std::string_view what, const std::string& id, const std::string& event) {
  const StatusOr<std::string> expected = WorkloadEvent(id);
  if (!expected.ok()) {
    findings_.Add(fmt::format("{} {}: not made by a workload", what, NameText(id)));
  } else if (event != *expected) {
    const auto differs = std::ranges::mismatch(event, *expected).in1 - event.begin();
    findings_.Add(fmt::format("{} {}: event of {} bytes, expected {}; they differ from byte {} on",
                              what, NameText(id), event.size(), expected->size(), differs));
  }
}

Status AcksAudit::CompareLive(Engine& store) {
  const uint64_t count = store.deliveries().Count();
  RETURN_IF_ERROR(store.deliveries().Iterate([&](const StoredDelivery& stored) {
    const Delivery& delivery = stored.delivery;
    ++live_;
    Told& told = told_[delivery.id];
    if (told.seen_live) findings_.Add(fmt::format("live twice: {}", NameText(delivery.id)));
    told.seen_live = true;
    if (told.ended()) {
      findings_.Add(fmt::format("back again: {} was {}", NameText(delivery.id),
                                told.acked ? "acknowledged" : "dead-lettered"));
    }
    CheckEvent("delivery", delivery.id, delivery.event);
    if (delivery.offset.has_value()) {
      const OffsetKey key{delivery.topic, delivery.client, delivery.partition};
      const auto lowest = lowest_live_.try_emplace(key, *delivery.offset).first;
      lowest->second = std::min(lowest->second, *delivery.offset);
    }
    return true;
  }));
  if (live_ != count)
    findings_.Add(fmt::format("{} deliveries are live, but {} are counted", live_, count));
  return absl::OkStatus();
}

Status AcksAudit::CompareDead(Engine& store) {
  return store.dead_letters().Iterate([&](const StoredDeadLetter& stored) {
    const DeadLetter& dead_letter = stored.dead_letter;
    Told& told = told_[dead_letter.delivery_id];
    if (told.seen_dead)
      findings_.Add(fmt::format("recorded twice: {}", NameText(dead_letter.delivery_id)));
    told.seen_dead = true;
    CheckEvent("dead letter", dead_letter.delivery_id, dead_letter.event);
    return true;
  });
}

Status AcksAudit::CompareOffsets(Engine& store) {
  std::map<OffsetKey, uint64_t> stored;
  for (const StoredOffset& offset : store.offsets().ReadAll()) {
    stored[offset.key] = offset.position.next;
    const auto lowest = lowest_live_.find(offset.key);
    if (lowest != lowest_live_.end() && lowest->second < offset.position.next) {
      findings_.Add(fmt::format("offset {} of {} has passed a delivery that is still owed, at {}",
                                offset.position.next, KeyText(offset.key), lowest->second));
    }
  }
  for (const auto& [key, next] : committed_) {
    const auto found = stored.find(key);
    if (found == stored.end()) {
      findings_.Add(fmt::format("offset missing: {} was at {}", KeyText(key), next));
    } else if (found->second < next) {
      findings_.Add(fmt::format("offset went back: {} was at {}, is at {}", KeyText(key), next,
                                found->second));
    }
  }
  return absl::OkStatus();
}

void AcksAudit::CompareTold() {
  for (const auto& [id, told] : told_) {
    if (told.put && !told.tried && !told.ended() && !told.seen_live) {
      findings_.Add(fmt::format("missing: {} was put", NameText(id)));
    }
    if (told.dead && !told.seen_dead)
      findings_.Add(fmt::format("missing dead letter: {}", NameText(id)));
    if (told.seen_dead && told.acked) {
      findings_.Add(fmt::format("acknowledged and dead-lettered: {}", NameText(id)));
    }
    if (told.seen_dead && told.seen_live) {
      findings_.Add(fmt::format("live and dead-lettered: {}", NameText(id)));
    }
    if (told.seen_dead && !told.tried) {
      findings_.Add(fmt::format("dead-lettered though nobody asked: {}", NameText(id)));
    }
    if (told.tried && !told.ended() && !told.seen_live) ++untold_;
    if (!told.put && told.seen_live) ++untold_;
  }
}

}  // namespace holdfast
