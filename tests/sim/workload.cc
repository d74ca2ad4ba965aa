#include "tests/sim/workload.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace holdfast {
namespace {

std::string Bytes(SeededRng& rng, size_t count) {
  std::string bytes(count, '\0');
  const bool plain = rng.OneIn(2);  // compressible
  for (char& c : bytes) c = static_cast<char>(plain ? 'a' + rng.Below(4) : rng.Next());
  return bytes;
}

}  // namespace

std::string Workload::NewId(Engine& engine) {
  const std::string id = engine.NewDeliveryId();
  if (!history_.IssueId(id)) complaint_ = "id " + id + " was issued twice";
  ids_.push_back(id);
  return id;
}

std::string Workload::AnyLive() {
  const auto& live = history_.After(history_.begun()).deliveries;
  if (live.empty()) return "";
  return std::next(live.begin(), static_cast<std::ptrdiff_t>(choices_.Below(live.size())))->first;
}

std::vector<Change> Workload::Next(Engine& engine) {
  const auto& now = history_.After(history_.begun());
  const OffsetKey key{choices_.OneIn(2) ? "orders" : std::string("a/b\0c", 5),
                      fmt::format("client-{}", choices_.Below(3)), choices_.Below(2)};
  const uint64_t kind = choices_.Below(20);
  const std::string live = AnyLive();
  if (kind < 9 || live.empty()) {
    Delivery delivery{
        .id = NewId(engine),
        .epoch = choices_.Below(5),
        .topic = key.topic,
        .incarnation = choices_.Below(2),
        .partition = key.partition,
        .offset = std::nullopt,
        .client = key.client,
        .attempt = 0,
        .due = engine.EngineNow() + absl::Seconds(choices_.Below(60)),
        .created = clock_.WallNow(),
        .redriven_from = std::nullopt,
        .event = Bytes(choices_, choices_.Below(choices_.OneIn(12) ? event_bytes_max_ * 3
                                                                   : event_bytes_max_))};
    if (choices_.OneIn(2)) delivery.offset = ++offset_last_;
    std::vector<Change> changes{PutChange{delivery}};
    if (delivery.offset && *delivery.offset % 3 == 0) {  // what a client begins with
      changes.push_back(StartChange{key, {*delivery.offset, delivery.incarnation}});
    }
    if (choices_.OneIn(3)) {
      changes.push_back(SeenChange{{key.topic, 0, key.partition}, ++offset_last_});
    }
    return changes;
  }
  switch (kind) {
    case 9:
    case 10:
    case 11: {  // an ACK, most with a key
      ended_.push_back(live);
      RemoveChange ack{.id = live, .epoch = offset_last_ % 3, .client = key.client};
      if (offset_last_ % 5 != 0) ack.key = offset_last_ % 2 == 0 ? live : std::string("k\0", 2);
      return {ack, OffsetChange{key, OffsetPosition(++offset_last_)},
              CursorChange{{key.topic, 0, key.partition}, offset_last_}};
    }
    case 12:
      ended_.push_back(live);
      return {RemoveChange{live, Reason::kWithdrawn}};
    case 13:
      return {UpdateChange{live, choices_.Below(9), static_cast<uint32_t>(choices_.Below(9)),
                           engine.EngineNow() + absl::Seconds(100 + choices_.Below(60))}};
    case 14:  // not higher as often as higher
      return {OffsetChange{key, OffsetPosition(choices_.OneIn(2) ? 1 : ++offset_last_)}};
    case 15: {  // a move to the dead letters
      const Delivery& delivery = now.deliveries.at(live);
      ended_.push_back(live);
      return {DeadLetterChange{{.delivery_id = live,
                                .dlq_topic = "dlq",
                                .dlq_offset = ++offset_last_,
                                .reason = "attempts",
                                .attempts = delivery.attempt,
                                .epoch = delivery.epoch,
                                .topic = delivery.topic,
                                .incarnation = delivery.incarnation,
                                .partition = delivery.partition,
                                .offset = delivery.offset,
                                .client = delivery.client,
                                .died = clock_.WallNow(),
                                .event = delivery.event}},
              RemoveChange{live, Reason::kDeadLettered}};
    }
    case 16:
      if (now.dead_letters.empty()) return {ForgetChange{key}};
      return {RedriveChange{now.dead_letters.begin()->first, NewId(engine),
                            engine.EngineNow() + absl::Seconds(1), clock_.WallNow()}};
    case 17:
      if (now.dead_letters.empty() || choices_.OneIn(2)) return {ForgetChange{key}};
      return {PurgeChange{now.dead_letters.rbegin()->first}};
    case 18: {  // a repeated ACK changes nothing, whatever its key
      const std::string ended = ended_.empty() ? "never" : ended_[choices_.Below(ended_.size())];
      return {RemoveChange{.id = ended, .client = key.client, .key = ended}};
    }
    default:  // a retry after the removal is refused, and takes its transaction with it
      return {OffsetChange{key, OffsetPosition(++offset_last_)},
              UpdateChange{ended_.empty() ? "never" : ended_[choices_.Below(ended_.size())], 1, 1,
                           absl::Seconds(5)}};
  }
}

}  // namespace holdfast
