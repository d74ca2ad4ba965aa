// What an engine holds, as lines in a fixed order: two of them are compared as text.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "journal/format/records_text.h"

namespace holdfast {

inline std::string Optional(const std::optional<uint64_t>& value) {
  return value.has_value() ? std::to_string(*value) : "-";
}

// What is not listed, and so asked for by name.
struct StateNames {
  std::vector<SourceKey> sources;
  std::vector<OffsetKey> starts;
  std::vector<Removal> answers;
};

// LSNs too: they say which record a value rests on.
inline StatusOr<std::vector<std::string>> StateText(Engine& engine, const StateNames& names) {
  std::vector<std::string> lines;
  RETURN_IF_ERROR(engine.deliveries().Iterate([&](const StoredDelivery& stored) {
    const Delivery& d = stored.delivery;
    lines.push_back(
        fmt::format("delivery {} epoch={} source={}/{}/{} offset={} client={} attempt={} due_ns={} "
                    "created_ns={} "
                    "redriven_from={} event={} lsn={}",
                    NameText(d.id), d.epoch, NameText(d.topic), d.incarnation, d.partition,
                    Optional(d.offset), NameText(d.client), d.attempt,
                    absl::ToInt64Nanoseconds(d.due), absl::ToUnixNanos(d.created),
                    d.redriven_from.has_value() ? NameText(*d.redriven_from) : "-",
                    NameText(d.event), stored.lsn));
    return true;
  }));
  RETURN_IF_ERROR(engine.dead_letters().Iterate([&](const StoredDeadLetter& stored) {
    const DeadLetter& d = stored.dead_letter;
    lines.push_back(
        fmt::format("dead-letter {} dlq={}/{} reason={} attempts={} epoch={} source={}/{}/{} "
                    "offset={} client={} "
                    "died_ns={} replays={} event={} lsn={}",
                    NameText(d.delivery_id), NameText(d.dlq_topic), d.dlq_offset,
                    NameText(d.reason), d.attempts, d.epoch, NameText(d.topic), d.incarnation,
                    d.partition, Optional(d.offset), NameText(d.client), absl::ToUnixNanos(d.died),
                    stored.replays, NameText(d.event), stored.lsn));
    return true;
  }));
  for (const StoredOffset& stored : engine.offsets().ReadAll()) {
    lines.push_back(fmt::format("offset {}/{}/{} incarnation={} next={} lsn={}",
                                NameText(stored.key.topic), NameText(stored.key.client),
                                stored.key.partition, stored.position.incarnation,
                                stored.position.next, stored.lsn));
  }
  for (const OffsetKey& key : names.starts) {
    const auto start = engine.offsets().ReadStart(key);
    if (start.status().code() == StatusCode::kNotFound) continue;
    RETURN_IF_ERROR(start.status());
    lines.push_back(fmt::format("start {}/{}/{} incarnation={} at={}", NameText(key.topic),
                                NameText(key.client), key.partition, start->incarnation,
                                start->next));
  }
  for (const Removal& ack : names.answers) {
    const Commit answered = engine.deliveries().Answered(ack);
    if (answered.refused().code() == StatusCode::kNotFound) continue;
    RETURN_IF_ERROR(answered.refused());
    lines.push_back(fmt::format("answer {} epoch={} client={} key={} lsn={}", NameText(ack.id),
                                ack.epoch, NameText(ack.client), NameText(*ack.idempotency_key),
                                answered.lsn()));
  }
  for (const SourceKey& key : names.sources) {
    const auto progress = engine.offsets().ReadSource(key);
    if (progress.status().code() == StatusCode::kNotFound) continue;
    RETURN_IF_ERROR(progress.status());
    lines.push_back(fmt::format("source {}/{}/{} seen={}/{} cursor={}/{} lsn={}",
                                NameText(key.topic), key.incarnation, key.partition,
                                progress->has_seen, progress->seen, progress->has_cursor,
                                progress->cursor, progress->lsn));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace holdfast
