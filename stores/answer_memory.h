// AnswerMemory: acknowledgements that were answered, so that a repeated one gets the same answer
// again, after a restart too. The newest EngineOptions::remembered_answers of them.
//
// One comes about by the removal that it made. When the segment of that removal is to go, and it is
// still among the newest, it is stated again in a record of its own, with many others.
#pragma once

#include <string>

#include "journal/base/mutex.h"
#include "journal/format/records.h"
#include "journal/live_bytes.h"
#include "journal/state_machine.h"
#include "stores/answer_window.h"

namespace holdfast {

// Threads: the sequencer is held in every call (recovery: nothing else runs yet).
class AnswerMemory final : public StateMachine {
 public:
  // What each counts in LiveBytes: about what it takes when it is stated again.
  static constexpr uint64_t kLiveBytes = 16;
  // A record states no more than so many, so that a batch can be filled with them piece by piece.
  static constexpr uint64_t kInRecordMax = 128;

  // `sequencer` and `live`, which it guards, are borrowed and outlive it.
  AnswerMemory(Mutex& sequencer, LiveBytes& live, uint64_t answers_max)
      : sequencer_(sequencer), live_(live), window_(answers_max) {}

  static constexpr RecordType kTypes[] = {RecordType::kAnswers};

  // A delivery was removed; an acknowledgement with a key is remembered.
  void ApplyRemoval(const DeliveryRemove& removal, Lsn lsn, const RecordRef& ref);
  // As Restate, for a removal.
  bool RestateRemoval(Lsn lsn, BatchDraft& draft) const;
  // The number of the removal that exactly this acknowledgement made; none: it is not remembered.
  Lsn Find(uint64_t hash) const;
  uint64_t size() const;

  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override;
  bool Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const override;
  uint64_t SnapshotEntries() const override { return size(); }
  bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const override;
  Status LoadSnapshot(ByteView entries, uint64_t expected) override;
  void Reset() override;

 private:
  void Take(const RememberedAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  void Release(const RememberedAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_) {
    live_.Remove(SegmentId(answer.segment), kLiveBytes);
  }

  Mutex& sequencer_;
  LiveBytes& live_ ABSL_GUARDED_BY(sequencer_);  // of the journal; shared with the stores
  AnswerWindow window_ ABSL_GUARDED_BY(sequencer_);
};

}  // namespace holdfast
