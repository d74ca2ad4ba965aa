#include "tests/sim/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "journal/base/check.h"
#include "journal/base/status.h"

namespace holdfast {
namespace {

constexpr uint64_t kOffsetMax = (uint64_t{1} << 63) - 2;
constexpr size_t kNameBytesMax = 65'535;

constexpr ModelAnswer kInvalidAnswer{StatusCode::kInvalidArgument, false};
constexpr ModelAnswer kNotFoundAnswer{StatusCode::kNotFound, false};
constexpr ModelAnswer kSame{StatusCode::kOk, false};
constexpr ModelAnswer kChanged{StatusCode::kOk, true};

template <typename... Names>
bool Fits(const Names&... names) {
  return (... && (names.size() <= kNameBytesMax));
}

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

ModelAnswer Raise(std::optional<uint64_t>& value, uint64_t to) {
  if (value && *value >= to) return kSame;
  value = to;
  return kChanged;
}

// Names may hold anything, and a diff is read by people.
std::string Printable(const std::string& bytes) {
  std::string text;
  for (const char c : bytes.substr(0, 24)) {
    text += c >= ' ' && c <= '~' ? std::string(1, c)
                                 : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  return bytes.size() > 24 ? fmt::format("{}… ({} B)", text, bytes.size()) : text;
}

std::string Name(const std::string& id) { return Printable(id); }
std::string Name(const OffsetKey& key) {
  return fmt::format("{}/{}/{}", Printable(key.topic), Printable(key.client), key.partition);
}
std::string Name(const SourceKey& key) {
  return fmt::format("{}/{}/{}", Printable(key.topic), key.incarnation, key.partition);
}

std::string Name(const RemoveChange& remove) {
  return fmt::format("{} of {} epoch {} key {}", Printable(remove.id), Printable(remove.client),
                     remove.epoch, Printable(remove.key.value_or("-")));
}

std::string Value(const Delivery& d) {
  return fmt::format("epoch {} attempt {} due {} event {}", d.epoch, d.attempt,
                     absl::ToInt64Nanoseconds(d.due), Printable(d.event));
}
std::string Value(const OffsetPosition& position) {
  return fmt::format("{}:{}", position.incarnation, position.next);
}
std::string Value(const ModelSource& source) {
  return fmt::format("seen {} cursor {}", source.seen.value_or(0), source.cursor.value_or(0));
}
std::string Value(const ModelDeadLetter& letter) {
  return fmt::format("replays {} event {}", letter.replays, Printable(letter.dead_letter.event));
}

template <typename Map>
void Compare(const char* what, const Map& want, const Map& real, std::vector<std::string>& out) {
  for (const auto& [key, value] : want) {
    const auto it = real.find(key);
    if (it == real.end()) {
      out.push_back(fmt::format("{} {}: missing, want {}", what, Name(key), Value(value)));
    } else if (!(it->second == value)) {
      out.push_back(
          fmt::format("{} {}: is {}, want {}", what, Name(key), Value(it->second), Value(value)));
    }
  }
  for (const auto& [key, value] : real) {
    if (!want.contains(key)) {
      out.push_back(fmt::format("{} {}: is {}, want none", what, Name(key), Value(value)));
    }
  }
}

}  // namespace

bool Model::operator==(const Model& other) const {
  const auto all = [](const Model& model) {
    return std::tie(model.deliveries, model.offsets, model.starts, model.sources,
                    model.dead_letters, model.answers);
  };
  return all(*this) == all(other);
}

bool Model::Remove(const RemoveChange& remove) {
  if (deliveries.erase(remove.id) == 0) return false;
  if (remove.reason == Reason::kAcked && remove.key.has_value()) {
    answers.insert(remove);
    answered_.push_back(remove);
    if (answered_.size() > kAnswersMax) {
      answers.erase(answered_.front());
      answered_.pop_front();
    }
  }
  return true;
}

ModelAnswer Model::Apply(const std::vector<Change>& changes) {
  Model next = *this;
  bool changed = false;
  for (const Change& change : changes) {
    const ModelAnswer answer = next.ApplyOne(change);
    if (answer.code != StatusCode::kOk) return answer;
    changed |= answer.changed;
  }
  *this = std::move(next);
  return {StatusCode::kOk, changed};
}

ModelAnswer Model::ApplyOne(const Change& change) {
  return std::visit(
      Overloaded{
          [&](const PutChange& put) {
            const Delivery& d = put.delivery;
            if (d.id.empty() || !Fits(d.id, d.topic, d.client)) return kInvalidAnswer;
            if (d.offset && *d.offset > kOffsetMax) return kInvalidAnswer;
            deliveries[d.id] = d;
            return kChanged;
          },
          [&](const UpdateChange& update) {
            const auto it = deliveries.find(update.id);
            if (it == deliveries.end()) return kNotFoundAnswer;
            const Delivery before = it->second;
            it->second.epoch = update.epoch;
            it->second.attempt = update.attempt;
            it->second.due = update.due;
            return it->second == before ? kSame : kChanged;
          },
          [&](const RemoveChange& remove) { return Remove(remove) ? kChanged : kSame; },
          [&](const OffsetChange& offset) {
            if (!Fits(offset.key.topic, offset.key.client)) return kInvalidAnswer;
            if (offset.position.next > kOffsetMax) return kInvalidAnswer;
            const auto [it, fresh] = offsets.try_emplace(offset.key, offset.position);
            if (fresh) return kChanged;
            if (offset.position <= it->second) return kSame;
            it->second = offset.position;
            return kChanged;
          },
          [&](const StartChange& start) {
            if (!Fits(start.key.topic, start.key.client)) return kInvalidAnswer;
            if (start.start.next > kOffsetMax) return kInvalidAnswer;
            const auto [it, fresh] = starts.try_emplace(start.key, start.start);
            if (fresh) return kChanged;
            if (start.start.incarnation <= it->second.incarnation) return kSame;
            it->second = start.start;
            return kChanged;
          },
          [&](const ForgetChange& forget) {
            return offsets.erase(forget.key) + starts.erase(forget.key) > 0 ? kChanged : kSame;
          },
          [&](const SeenChange& seen) { return Raise(sources[seen.key].seen, seen.through); },
          [&](const CursorChange& cursor) {
            return Raise(sources[cursor.key].cursor, cursor.cursor);
          },
          [&](const DeadLetterChange& dead) {
            const DeadLetter& d = dead.dead_letter;
            if (d.delivery_id.empty() || !Fits(d.delivery_id, d.topic, d.client, d.dlq_topic)) {
              return kInvalidAnswer;
            }
            return dead_letters.try_emplace(d.delivery_id, ModelDeadLetter{d, 0}).second ? kChanged
                                                                                         : kSame;
          },
          [&](const RedriveChange& redrive) {
            const auto it = dead_letters.find(redrive.id);
            if (it == dead_letters.end()) return kNotFoundAnswer;
            if (deliveries.contains(redrive.new_id)) {
              return ModelAnswer{StatusCode::kAlreadyExists, false};
            }
            if (redrive.new_id.empty()) return kInvalidAnswer;
            ++it->second.replays;
            const DeadLetter& from = it->second.dead_letter;
            deliveries[redrive.new_id] = Delivery{.id = redrive.new_id,
                                                  .epoch = from.epoch,
                                                  .topic = from.topic,
                                                  .incarnation = from.incarnation,
                                                  .partition = from.partition,
                                                  .offset = std::nullopt,
                                                  .client = from.client,
                                                  .attempt = 0,
                                                  .due = redrive.due,
                                                  .created = redrive.created,
                                                  .redriven_from = redrive.id,
                                                  .event = from.event};
            return kChanged;
          },
          [&](const PurgeChange& purge) {
            return dead_letters.erase(purge.id) > 0 ? kChanged : kSame;
          },
      },
      change);
}

std::string Model::DifferenceTo(const Model& real) const {
  std::vector<std::string> lines;
  Compare("delivery", deliveries, real.deliveries, lines);
  Compare("offset", offsets, real.offsets, lines);
  Compare("start", starts, real.starts, lines);
  Compare("source", sources, real.sources, lines);
  Compare("dead letter", dead_letters, real.dead_letters, lines);
  for (const RemoveChange& answer : answers) {
    if (!real.answers.contains(answer)) {
      lines.push_back(fmt::format("answer {}: is not remembered", Name(answer)));
    }
  }
  for (const RemoveChange& answer : real.answers) {
    if (!answers.contains(answer)) {
      lines.push_back(fmt::format("answer {}: is still remembered", Name(answer)));
    }
  }
  // A field that the lines above do not print.
  if (lines.empty() && !(*this == real)) lines.push_back("a field differs");
  const size_t shown = std::min<size_t>(lines.size(), 6);
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += "\n  " + lines[i];
  if (shown < lines.size()) text += fmt::format("\n  and {} more", lines.size() - shown);
  return text;
}

Commit Perform(Engine& engine, const std::vector<Change>& changes) {
  if (changes.size() != 1) {
    return engine.Transact([&](Transaction& transaction) {
      for (const Change& change : changes) {
        std::visit(
            Overloaded{
                [&](const PutChange& c) { transaction.PutDelivery(c.delivery); },
                [&](const UpdateChange& c) {
                  transaction.UpdateDelivery({c.id, c.epoch, c.attempt, c.due});
                },
                [&](const RemoveChange& c) { transaction.RemoveDelivery(c.view()); },
                [&](const OffsetChange& c) { transaction.WriteOffset(c.key, c.position); },
                [&](const StartChange& c) { transaction.WriteStart(c.key, c.start); },
                [&](const ForgetChange& c) { transaction.ForgetOffset(c.key); },
                [&](const SeenChange& c) { transaction.SourceSeen(c.key, c.through); },
                [&](const CursorChange& c) { transaction.SourceCursor(c.key, c.cursor); },
                [&](const DeadLetterChange& c) { transaction.RecordDeadLetter(c.dead_letter); },
                [&](const RedriveChange&) { CHECK(changes.size() == 1); },
                [&](const PurgeChange& c) { transaction.PurgeDeadLetter(c.id); },
            },
            change);
      }
    });
  }
  return std::visit(
      Overloaded{
          [&](const PutChange& c) { return engine.deliveries().Put(c.delivery); },
          [&](const UpdateChange& c) {
            return engine.deliveries().Update({c.id, c.epoch, c.attempt, c.due});
          },
          [&](const RemoveChange& c) { return engine.deliveries().Remove(c.view()); },
          [&](const OffsetChange& c) { return engine.offsets().Write(c.key, c.position); },
          [&](const StartChange& c) {
            return engine.Transact([&](Transaction& t) { t.WriteStart(c.key, c.start); });
          },
          [&](const ForgetChange& c) { return engine.offsets().Forget(c.key); },
          [&](const SeenChange& c) {
            return engine.Transact([&](Transaction& t) { t.SourceSeen(c.key, c.through); });
          },
          [&](const CursorChange& c) {
            return engine.Transact([&](Transaction& t) { t.SourceCursor(c.key, c.cursor); });
          },
          [&](const DeadLetterChange& c) { return engine.dead_letters().Record(c.dead_letter); },
          [&](const RedriveChange& c) {
            return engine.dead_letters().Redrive(c.id, {c.new_id, c.due, c.created});
          },
          [&](const PurgeChange& c) { return engine.dead_letters().Purge(c.id); },
      },
      changes.front());
}

namespace {

Status Disagree(const std::string& what) {
  return absl::InternalError("the engine disagrees: " + what);
}

Status ReadDeliveries(Engine& engine, Model& model) {
  Status inside;
  RETURN_IF_ERROR(engine.deliveries().Iterate([&](const StoredDelivery& stored) {
    if (!model.deliveries.emplace(stored.delivery.id, stored.delivery).second) {
      inside = Disagree("Iterate visits twice: " + Printable(stored.delivery.id));
    }
    return inside.ok();
  }));
  RETURN_IF_ERROR(inside);
  if (engine.deliveries().Count() != model.deliveries.size()) {
    return Disagree(fmt::format("deliveries Count {} and Iterate {}", engine.deliveries().Count(),
                                model.deliveries.size()));
  }
  for (const auto& [id, delivery] : model.deliveries) {
    ASSIGN_OR_RETURN(const StoredDelivery stored, engine.deliveries().Get(id));
    if (!(stored.delivery == delivery)) return Disagree("Get and Iterate: " + Printable(id));
    ASSIGN_OR_RETURN(const StoredSchedule schedule, engine.deliveries().GetSchedule(id));
    if (std::tie(schedule.epoch, schedule.attempt, schedule.due, schedule.lsn) !=
        std::tie(delivery.epoch, delivery.attempt, delivery.due, stored.lsn)) {
      return Disagree("GetSchedule and Iterate: " + Printable(id));
    }
  }
  return absl::OkStatus();
}

Status ReadOffsets(Engine& engine, Model& model) {
  std::set<std::string> topics;
  for (const StoredOffset& stored : engine.offsets().ReadAll()) {
    if (!model.offsets.emplace(stored.key, stored.position).second) {
      return Disagree("ReadAll lists twice: " + Name(stored.key));
    }
    topics.insert(stored.key.topic);
    ASSIGN_OR_RETURN(const StoredOffset read, engine.offsets().Read(stored.key));
    if (read.position != stored.position) return Disagree("Read and ReadAll: " + Name(stored.key));
  }
  const std::vector<std::string> listed = engine.offsets().Topics();
  if (!std::equal(listed.begin(), listed.end(), topics.begin(), topics.end())) {
    return Disagree("Topics and ReadAll");
  }
  return absl::OkStatus();
}

Status ReadDeadLetters(Engine& engine, Model& model) {
  Status inside;
  RETURN_IF_ERROR(engine.dead_letters().Iterate([&](const StoredDeadLetter& stored) {
    const std::string& id = stored.dead_letter.delivery_id;
    if (!model.dead_letters.emplace(id, ModelDeadLetter{stored.dead_letter, stored.replays})
             .second) {
      inside = Disagree("dead letters visited twice: " + Printable(id));
    }
    return inside.ok();
  }));
  RETURN_IF_ERROR(inside);
  if (engine.dead_letters().Count() != model.dead_letters.size()) {
    return Disagree("dead letters Count and Iterate");
  }
  for (const auto& [id, letter] : model.dead_letters) {
    ASSIGN_OR_RETURN(const StoredDeadLetter stored, engine.dead_letters().Get(id));
    if (!(ModelDeadLetter{stored.dead_letter, stored.replays} == letter)) {
      return Disagree("dead letters Get and Iterate: " + Printable(id));
    }
    ASSIGN_OR_RETURN(const DeadLetterStore::Presence presence,
                     engine.dead_letters().IsDeadLettered(id));
    if (!presence.recorded) {
      return Disagree("IsDeadLettered: " + Printable(id));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void ModelNames::Add(const Change& change) {
  if (const auto* seen = std::get_if<SeenChange>(&change)) sources.insert(seen->key);
  if (const auto* cursor = std::get_if<CursorChange>(&change)) sources.insert(cursor->key);
  if (const auto* start = std::get_if<StartChange>(&change)) starts.insert(start->key);
  if (const auto* remove = std::get_if<RemoveChange>(&change)) answers.insert(*remove);
}

absl::StatusOr<Model> ReadModel(Engine& engine, const ModelNames& names) {
  Model model;
  RETURN_IF_ERROR(ReadDeliveries(engine, model));
  RETURN_IF_ERROR(ReadOffsets(engine, model));
  RETURN_IF_ERROR(ReadDeadLetters(engine, model));
  for (const OffsetKey& key : names.starts) {
    const auto start = engine.offsets().ReadStart(key);
    if (!start.ok() && start.status().code() == StatusCode::kNotFound) continue;
    RETURN_IF_ERROR(start.status());
    model.starts[key] = *start;
  }
  for (const RemoveChange& answer : names.answers) {
    const Status answered = engine.deliveries().Answered(answer.view()).refused();
    if (answered.ok()) {
      model.answers.insert(answer);
    } else if (answered.code() != StatusCode::kNotFound) {
      return answered;
    }
  }
  for (const SourceKey& key : names.sources) {
    const auto progress = engine.offsets().ReadSource(key);
    if (!progress.ok() && progress.status().code() == StatusCode::kNotFound) continue;
    RETURN_IF_ERROR(progress.status());
    ModelSource& source = model.sources[key];
    if (progress->has_seen) source.seen = progress->seen;
    if (progress->has_cursor) source.cursor = progress->cursor;
  }
  return model;
}

std::string Describe(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) {
    if (!text.empty()) text += " + ";
    text += std::visit(
        Overloaded{
            [](const PutChange& c) { return "put " + Name(c.delivery.id); },
            [](const UpdateChange& c) { return "update " + Name(c.id); },
            [](const RemoveChange& c) { return "remove " + Name(c.id); },
            [](const OffsetChange& c) { return "offset " + Name(c.key) + "=" + Value(c.position); },
            [](const StartChange& c) { return "start " + Name(c.key) + "=" + Value(c.start); },
            [](const ForgetChange& c) { return "forget " + Name(c.key); },
            [](const SeenChange& c) { return "seen " + Name(c.key); },
            [](const CursorChange& c) { return "cursor " + Name(c.key); },
            [](const DeadLetterChange& c) { return "dead " + Name(c.dead_letter.delivery_id); },
            [](const RedriveChange& c) { return "redrive " + Name(c.id); },
            [](const PurgeChange& c) { return "purge " + Name(c.id); },
        },
        change);
  }
  return text;
}

}  // namespace holdfast
