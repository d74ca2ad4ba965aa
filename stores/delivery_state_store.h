// JournalDeliveryStateStore: deliveries in flight; state in memory, events in the journal.
#pragma once

#include <functional>
#include <string_view>

#include "holdfast/delivery_state_store.h"
#include "holdfast/engine.h"
#include "journal/state_machine.h"
#include "stores/answer_memory.h"
#include "stores/payload_index.h"
#include "stores/record_judge.h"
#include "stores/store_writer.h"

namespace holdfast {

// Threads: any, after Attach.
class JournalDeliveryStateStore final : public DeliveryStateStore,
                                        public StateMachine,
                                        public RecordJudge {
 public:
  // `sequencer`, `live` and `answers` are borrowed and outlive the store. `seed` is of the index.
  JournalDeliveryStateStore(Mutex& sequencer, LiveBytes& live, AnswerMemory& answers, uint64_t seed,
                            const ValueCache::Options& cache)
      : answers_(answers), payloads_(sequencer, live, seed, cache) {}

  static constexpr RecordType kTypes[] = {RecordType::kDeliveryPut, RecordType::kDeliveryReschedule,
                                          RecordType::kDeliveryRemove};
  // Recovery is over; changes go to `writer`, which is borrowed and outlives the last call.
  void Attach(StoreWriter& writer);

  Commit Put(const Delivery& delivery) override;
  Commit Update(const Reschedule& reschedule) override;
  Commit Remove(const Removal& removal) override;
  absl::StatusOr<StoredDelivery> Get(std::string_view id) override;
  absl::StatusOr<StoredSchedule> GetSchedule(std::string_view id) override;
  Commit Answered(const Removal& acknowledgement) override;
  absl::Status Iterate(const std::function<bool(const StoredDelivery&)>& visit) override;
  uint64_t Count() override;
  absl::Status Flush() override;

  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override;
  void Expect(const RawRecord& record) const override;
  bool Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const override;
  uint64_t SnapshotEntries() const override;
  bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const override;
  Status LoadSnapshot(ByteView entries, uint64_t expected) override;
  void Reset() override;
  void Expect(const BatchDraft& draft) const override;
  Judgement Judge(const RawRecord& record, const JudgeContext& context) override;

  // Adds what the cache did to `stats`.
  void AddTo(EngineStats& stats);
  // Memory of the index, keys included.
  uint64_t IndexBytes();

 private:
  void ApplyPut(const RawRecord& record, Lsn lsn, const RecordRef& ref);
  void Apply(const DeliveryReschedule& record, Lsn lsn);
  void Apply(const DeliveryRemove& record, Lsn lsn, const RecordRef& ref);
  // `into` may hold another one: its memory is used again.
  Status Fill(const StoredPayload& payload, StoredDelivery& into) const;

  StoreWriter* writer_ = nullptr;  // null: recovery
  AnswerMemory& answers_;
  PayloadIndex payloads_;
  Lsn newest_ ABSL_GUARDED_BY(payloads_.sequencer());  // record of this store
};

}  // namespace holdfast
