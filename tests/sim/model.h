// The obviously right engine: maps. It follows the public headers word by word and knows nothing of
// how the real one works, so that any difference is a fault of the real one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "holdfast/engine.h"

namespace holdfast {

// One change, owning its bytes.
struct PutChange {
  Delivery delivery;
};
struct UpdateChange {
  std::string id;
  uint64_t epoch = 0;
  uint32_t attempt = 0;
  absl::Duration due;
};
struct RemoveChange {
  std::string id;
  Reason reason = Reason::kAcked;
  uint64_t epoch = 0;
  std::string client = {};
  std::optional<std::string> key = {};  // then it is remembered, if it is an acknowledgement
  Removal view() const {
    return {.id = id, .reason = reason, .epoch = epoch, .client = client, .idempotency_key = key};
  }
  auto operator<=>(const RemoveChange&) const = default;
};
struct OffsetChange {
  OffsetKey key;
  OffsetPosition position;
};
struct StartChange {  // in a Transaction only
  OffsetKey key;
  OffsetPosition start;
};
struct ForgetChange {
  OffsetKey key;
};
struct SeenChange {
  SourceKey key;
  uint64_t through = 0;
};
struct CursorChange {
  SourceKey key;
  uint64_t cursor = 0;
};
struct DeadLetterChange {
  DeadLetter dead_letter;
};
struct RedriveChange {  // alone only: a Transaction has none
  std::string id;
  std::string new_id;
  absl::Duration due;
  absl::Time created;
};
struct PurgeChange {
  std::string id;
};
using Change =
    std::variant<PutChange, UpdateChange, RemoveChange, OffsetChange, StartChange, ForgetChange,
                 SeenChange, CursorChange, DeadLetterChange, RedriveChange, PurgeChange>;

// What one call, or one transaction, answers.
struct ModelAnswer {
  absl::StatusCode code = absl::StatusCode::kOk;
  bool changed = false;
  bool operator==(const ModelAnswer&) const = default;
};

struct ModelDeadLetter {
  DeadLetter dead_letter;
  uint64_t replays = 0;
  bool operator==(const ModelDeadLetter&) const = default;
};
struct ModelSource {
  std::optional<uint64_t> seen, cursor;
  bool operator==(const ModelSource&) const = default;
};

class Model {
 public:
  // EngineOptions::remembered_answers of the engines that are compared with it.
  static constexpr uint64_t kAnswersMax = 10;

  // All of `changes` or, where one is refused, none.
  ModelAnswer Apply(const std::vector<Change>& changes);

  bool operator==(const Model& other) const;
  // The first few differences, for people; empty if there is none.
  std::string DifferenceTo(const Model& real) const;

  std::map<std::string, Delivery> deliveries;
  std::map<OffsetKey, OffsetPosition> offsets, starts;
  std::map<SourceKey, ModelSource> sources;
  std::map<std::string, ModelDeadLetter> dead_letters;
  std::set<RemoveChange> answers;  // acknowledgements that are remembered

 private:
  ModelAnswer ApplyOne(const Change& change);
  bool Remove(const RemoveChange& remove);

  std::deque<RemoveChange> answered_;  // the same as `answers`, oldest first
};

// What an engine does not list, and so is asked for by name.
struct ModelNames {
  std::set<SourceKey> sources;
  std::set<OffsetKey> starts;
  std::set<RemoveChange> answers;

  void Add(const Change& change);
};

// Does the same to a real engine: the call itself for one change, Engine::Transact for more.
Commit Perform(Engine& engine, const std::vector<Change>& changes);

// Everything that `engine` shows, also through Get, GetSchedule, Count, Topics and IsDeadLettered,
// which must agree with the lists. `names`: of what cannot be listed.
// Errors: kInternal  two ways to ask the engine answer differently; otherwise what the engine
//                    answers
absl::StatusOr<Model> ReadModel(Engine& engine, const ModelNames& names);

// For failure messages.
std::string Describe(const std::vector<Change>& changes);

}  // namespace holdfast
