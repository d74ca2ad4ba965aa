// The obviously right engine: maps. It follows the public headers word by word and knows nothing of
// how the real one works, so that any difference is a fault of the real one.
#pragma once

#include <cstdint>
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
};
struct OffsetChange {
  OffsetKey key;
  OffsetPosition position;
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
using Change = std::variant<PutChange, UpdateChange, RemoveChange, OffsetChange, ForgetChange,
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
  // All of `changes` or, where one is refused, none.
  ModelAnswer Apply(const std::vector<Change>& changes);

  bool operator==(const Model&) const = default;
  // The first few differences, for people; empty if there is none.
  std::string DifferenceTo(const Model& real) const;

  std::map<std::string, Delivery> deliveries;
  std::map<OffsetKey, OffsetPosition> offsets;
  std::map<SourceKey, ModelSource> sources;
  std::map<std::string, ModelDeadLetter> dead_letters;

 private:
  ModelAnswer ApplyOne(const Change& change);
};

// Does the same to a real engine: the call itself for one change, Engine::Transact for more.
Commit Perform(Engine& engine, const std::vector<Change>& changes);

// Everything that `engine` shows, also through Get, Count, Topics and IsDeadLettered, which must
// agree with the lists. Sources cannot be listed; `sources` names those to ask for. Errors:
// kInternal  two ways to ask the engine answer differently; otherwise what the engine answers
absl::StatusOr<Model> ReadModel(Engine& engine, const std::set<SourceKey>& sources);

// For failure messages.
std::string Describe(const std::vector<Change>& changes);

}  // namespace holdfast
