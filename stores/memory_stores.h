// The three local stores as plain maps behind one lock.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/transaction.h"
#include "journal/base/mutex.h"
#include "journal/base/status.h"
#include "stores/answer_window.h"
#include "stores/key_maps.h"
#include "stores/store_limits.h"

namespace holdfast {

// What the three share. Every change has a number, as in the journal, and is confirmed at once.
struct MemoryState {
  MemoryState(const StoreLimits& store_limits, uint64_t answers_max)
      : limits(store_limits), answers(answers_max) {}

  // One change each; true if something changed.
  bool Put(Delivery delivery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Update(const Reschedule& reschedule) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // `answer`: of the acknowledgement that is to be remembered, if it is one.
  bool Remove(std::string_view id, std::optional<uint64_t> answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Advance(const OffsetKey& key, OffsetPosition position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Start(const OffsetKey& key, OffsetPosition start) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Forget(const OffsetKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Seen(const SourceKey& key, uint64_t through) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Cursor(const SourceKey& key, uint64_t cursor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Record(DeadLetter dead_letter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool Purge(std::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // The answer to a change.
  Commit Done(bool changed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return Commit(nullptr, lsn, changed);
  }

  const StoreLimits limits;
  Mutex mu;
  bool closed ABSL_GUARDED_BY(mu) = false;  // changes are refused
  uint64_t lsn ABSL_GUARDED_BY(mu) = 0;
  NameMap<StoredDelivery> deliveries ABSL_GUARDED_BY(mu);
  AnswerWindow answers ABSL_GUARDED_BY(mu);
  PositionMap<StoredOffset> offsets ABSL_GUARDED_BY(mu);
  PositionMap<OffsetPosition> starts ABSL_GUARDED_BY(mu);
  PositionMap<SourceProgress> sources ABSL_GUARDED_BY(mu);
  NameMap<StoredDeadLetter> dead_letters ABSL_GUARDED_BY(mu);
};

// Collects copies; Apply makes all changes in order, or none.
// Threads: one at a time. Reusable: Begin() keeps the memory.
class MemoryTransaction final : public Transaction {
 public:
  void Begin(MemoryState& state);
  Commit Apply();

  using Transaction::RemoveDelivery;
  void PutDelivery(const Delivery& delivery) override;
  void UpdateDelivery(const Reschedule& reschedule) override;
  void RemoveDelivery(const Removal& removal) override;
  void WriteOffset(const OffsetKey& key, OffsetPosition position) override;
  void WriteStart(const OffsetKey& key, OffsetPosition start) override;
  void ForgetOffset(const OffsetKey& key) override;
  void SourceSeen(const SourceKey& key, uint64_t through) override;
  void SourceCursor(const SourceKey& key, uint64_t cursor) override;
  void RecordDeadLetter(const DeadLetter& dead_letter) override;
  void PurgeDeadLetter(std::string_view delivery_id) override;

 private:
  struct Update {
    std::string id;
    uint64_t epoch;
    uint32_t attempt;
    absl::Duration due;
    Reschedule view() const { return {id, epoch, attempt, due}; }
  };
  struct Remove {
    std::string id;
    std::optional<uint64_t> answer;
  };
  struct Advance {
    OffsetKey key;
    OffsetPosition position;
  };
  struct Start {
    OffsetKey key;
    OffsetPosition start;
  };
  struct Forget {
    OffsetKey key;
  };
  struct Seen {
    SourceKey key;
    uint64_t through;
  };
  struct Cursor {
    SourceKey key;
    uint64_t cursor;
  };
  struct Purge {
    std::string id;
  };
  using Change = std::variant<Delivery, Update, Remove, Advance, Start, Forget, Seen, Cursor,
                              DeadLetter, Purge>;

  void Add(const Status& checked, Change change);
  // An update of a delivery that is not live when its turn comes is refused; nothing else is.
  Status JudgeUpdates() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  bool Make(Change& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  MemoryState* state_ = nullptr;
  Status refused_;
  bool has_updates_ = false;
  std::vector<Change> changes_;
};

class MemoryOffsetStore final : public OffsetStore {
 public:
  explicit MemoryOffsetStore(MemoryState& state) : state_(state) {}
  absl::StatusOr<StoredOffset> Read(const OffsetKey& key) override;
  Commit Write(const OffsetKey& key, OffsetPosition position) override;
  absl::StatusOr<OffsetPosition> ReadStart(const OffsetKey& key) override;
  Commit Forget(const OffsetKey& key) override;
  std::vector<StoredOffset> ReadTopic(std::string_view topic) override;
  std::vector<StoredOffset> ReadAll() override;
  std::vector<std::string> Topics() override;
  absl::StatusOr<SourceProgress> ReadSource(const SourceKey& key) override;
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  template <typename Wanted>
  std::vector<StoredOffset> Select(Wanted wanted);
  MemoryState& state_;
};

class MemoryDeliveryStateStore final : public DeliveryStateStore {
 public:
  explicit MemoryDeliveryStateStore(MemoryState& state) : state_(state) {}
  Commit Put(const Delivery& delivery) override;
  Commit Update(const Reschedule& reschedule) override;
  Commit Remove(const Removal& removal) override;
  absl::StatusOr<StoredDelivery> Get(std::string_view id) override;
  absl::StatusOr<StoredSchedule> GetSchedule(std::string_view id) override;
  Commit Answered(const Removal& acknowledgement) override;
  absl::Status Iterate(const std::function<bool(const StoredDelivery&)>& visit) override;
  uint64_t Count() override;
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  MemoryState& state_;
};

class MemoryDeadLetterStore final : public DeadLetterStore {
 public:
  explicit MemoryDeadLetterStore(MemoryState& state) : state_(state) {}
  Commit Record(const DeadLetter& dead_letter) override;
  absl::StatusOr<Presence> IsDeadLettered(std::string_view delivery_id) override;
  absl::StatusOr<StoredDeadLetter> Get(std::string_view delivery_id) override;
  absl::Status Iterate(const std::function<bool(const StoredDeadLetter&)>& visit) override;
  uint64_t Count() override;
  Commit Redrive(std::string_view delivery_id, const RedriveAs& as) override;
  Commit Purge(std::string_view delivery_id) override;
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  MemoryState& state_;
};

}  // namespace holdfast
