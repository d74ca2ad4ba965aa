// JournalOffsetStore: positions, starts and source progress, whole in memory, each change a record.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/offset_store.h"
#include "journal/base/mutex.h"
#include "journal/format/codec.h"
#include "journal/live_bytes.h"
#include "journal/state_machine.h"
#include "stores/record_judge.h"
#include "stores/slot_map.h"
#include "stores/store_writer.h"

namespace holdfast {

// Threads: any, after Attach.
class JournalOffsetStore final : public OffsetStore, public StateMachine, public RecordJudge {
 public:
  // `sequencer` and `live`, which it guards, are borrowed and outlive the store.
  JournalOffsetStore(Mutex& sequencer, LiveBytes& live) : sequencer_(sequencer), live_(live) {}

  // Which records this store takes.
  static constexpr RecordType kTypes[] = {RecordType::kOffsetAdvance, RecordType::kOffsetForget,
                                          RecordType::kSourceSeen, RecordType::kSourceCursor,
                                          RecordType::kOffsetStart};
  // Recovery is over; changes go to `writer`, which is borrowed and outlives the last call.
  void Attach(StoreWriter& writer) { writer_ = &writer; }

  absl::StatusOr<StoredOffset> Read(const OffsetKey& key) override;
  Commit Write(const OffsetKey& key, OffsetPosition position) override;
  absl::StatusOr<OffsetPosition> ReadStart(const OffsetKey& key) override;
  Commit Forget(const OffsetKey& key) override;
  std::vector<StoredOffset> ReadTopic(std::string_view topic) override;
  std::vector<StoredOffset> ReadAll() override;
  std::vector<std::string> Topics() override;
  absl::StatusOr<SourceProgress> ReadSource(const SourceKey& key) override;
  absl::Status Flush() override;

  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override;
  bool Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const override;
  uint64_t SnapshotEntries() const override;
  bool WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const override;
  Status LoadSnapshot(ByteView entries, uint64_t expected) override;
  void Reset() override;
  Judgement Judge(const RawRecord& record, const JudgeContext& context) override;

  uint64_t Count();

 private:
  // The record that an entry rests on: where it lies and what it takes there.
  struct Basis {
    Lsn lsn;  // none: the entry is new
    uint32_t segment = 0;
    uint32_t bytes = 0;
  };
  struct Position : Basis {
    uint64_t incarnation = 0;
    uint64_t next = 0;
  };
  // Where a client began: the position below which nothing was meant for it.
  struct Start : Position {};
  // One of the two marks of a source; not there until its LSN is set.
  struct SourceMark : Basis {
    uint64_t value = 0;
  };
  struct Source {
    SourceMark seen, cursor;
  };

  void Apply(const OffsetAdvance& record, const Basis& basis);
  void Apply(const OffsetStart& record, const Basis& basis);
  void Apply(const OffsetForget& record, Lsn lsn);
  void Apply(const SourceSeen& record, const Basis& basis);
  void Apply(const SourceCursor& record, const Basis& basis);
  void Raise(SourceMark& mark, uint64_t value, const Basis& basis)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  // An entry rests on another record: the live bytes follow.
  void Rest(Basis& on, const Basis& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  void Release(const Basis& basis) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);

  static void Encode(uint64_t kind, const PositionKey& key, const Position& position,
                     std::string& out);
  static void Encode(const PositionKey& key, const Position& position, std::string& out);
  static void Encode(const PositionKey& key, const Start& start, std::string& out);
  static void Encode(const PositionKey& key, const Source& source, std::string& out);
  template <typename Entry>
  bool LoadPosition(Decoder& in, SlotMap<Entry>& entries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  bool LoadSource(Decoder& in) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  static std::optional<Basis> TakeBasis(Decoder& in, Lsn lsn);

  Judgement JudgeAdvance(const RawRecord& record, const JudgeContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Judgement JudgeStart(const RawRecord& record, const JudgeContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Judgement JudgeForget(const RawRecord& record, const JudgeContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Judgement JudgeSource(const RawRecord& record, const JudgeContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);

  template <typename Wanted>
  std::vector<StoredOffset> Select(Wanted wanted);
  bool Durable(Lsn lsn) const { return writer_->sink().Reached(lsn.value()); }
  // Nothing newer than what was confirmed may be shown once the journal has failed.
  bool Hidden(Lsn lsn) const { return lsn && writer_->sink().poisoned() && !Durable(lsn); }

  Mutex& sequencer_;
  LiveBytes& live_ ABSL_GUARDED_BY(sequencer_);  // of the journal; shared with the other stores
  StoreWriter* writer_ = nullptr;
  SlotMap<Position> offsets_ ABSL_GUARDED_BY(sequencer_);
  SlotMap<Source> sources_ ABSL_GUARDED_BY(sequencer_);
  SlotMap<Start> starts_ ABSL_GUARDED_BY(sequencer_);
  Lsn newest_ ABSL_GUARDED_BY(sequencer_);         // record of this store
  Lsn newest_forget_ ABSL_GUARDED_BY(sequencer_);  // bounds what "there is no such key" rests on
};

}  // namespace holdfast
