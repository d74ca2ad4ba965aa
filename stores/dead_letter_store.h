// JournalDeadLetterStore: deliveries that were given up; ids in memory, bodies in the journal.
#pragma once

#include <functional>
#include <string_view>

#include "holdfast/dead_letter_store.h"
#include "journal/state_machine.h"
#include "stores/payload_index.h"
#include "stores/record_judge.h"
#include "stores/store_writer.h"

namespace holdfast {

// Bodies are rarely read, so none is cached.
// Threads: any, after Attach.
class JournalDeadLetterStore final : public DeadLetterStore,
                                     public StateMachine,
                                     public RecordJudge {
 public:
  // `sequencer` and `live` are borrowed and outlive the store. `seed` is of the index.
  JournalDeadLetterStore(Mutex& sequencer, LiveBytes& live, uint64_t seed)
      : payloads_(sequencer, live, seed, {.entries_max = 0, .bytes_max = 0}) {}

  static constexpr RecordType kTypes[] = {RecordType::kDeadLetter, RecordType::kDeadLetterRedriven,
                                          RecordType::kDeadLetterPurge};
  // Recovery is over; changes go to `writer`, which is borrowed and outlives the last call.
  void Attach(StoreWriter& writer);

  Commit Record(const DeadLetter& dead_letter) override;
  absl::StatusOr<Presence> IsDeadLettered(std::string_view delivery_id) override;
  absl::StatusOr<StoredDeadLetter> Get(std::string_view delivery_id) override;
  absl::Status Iterate(const std::function<bool(const StoredDeadLetter&)>& visit) override;
  uint64_t Count() override;
  Commit Redrive(std::string_view delivery_id, const RedriveAs& as) override;
  Commit Purge(std::string_view delivery_id) override;
  absl::Status Flush() override;

  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override;
  bool Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const override;
  uint64_t SnapshotEntries() const override;
  bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const override;
  Status LoadSnapshot(ByteView entries, uint64_t expected) override;
  void Reset() override;
  Judgement Judge(const RawRecord& record, const JudgeContext& context) override;

 private:
  // Every dead letter is an index entry; its attempt is the count of replays.
  void Apply(const DeadLetterRecord& record, Lsn lsn, const RecordRef& ref, uint32_t record_bytes);
  void Apply(const DeadLetterRedriven& record, Lsn lsn);
  void Apply(const DeadLetterPurge& record, Lsn lsn);
  StatusOr<StoredDeadLetter> ToDeadLetter(const StoredPayload& payload) const;

  StoreWriter* writer_ = nullptr;
  PayloadIndex payloads_;
  Lsn newest_ ABSL_GUARDED_BY(payloads_.sequencer());  // record of this store
};

}  // namespace holdfast
