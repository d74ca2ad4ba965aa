// JournalOffsetStore: positions and source progress, whole in memory, each change a record.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/offset_store.h"
#include "journal/base/mutex.h"
#include "journal/state_machine.h"
#include "stores/key_maps.h"
#include "stores/record_judge.h"
#include "stores/store_writer.h"

namespace holdfast {

// Threads: any, after Attach.
class JournalOffsetStore final : public OffsetStore, public StateMachine, public RecordJudge {
 public:
  // `sequencer` is borrowed and outlives the store.
  explicit JournalOffsetStore(Mutex& sequencer) : sequencer_(sequencer) {}

  // Which records this store takes.
  static constexpr RecordType kTypes[] = {RecordType::kOffsetAdvance, RecordType::kOffsetForget,
                                          RecordType::kSourceSeen, RecordType::kSourceCursor};
  // Recovery is over; changes go to `writer`, which is borrowed and outlives the last call.
  void Attach(StoreWriter& writer) { writer_ = &writer; }

  absl::StatusOr<StoredOffset> Read(const OffsetKey& key) override;
  Commit Write(const OffsetKey& key, OffsetPosition position) override;
  Commit Forget(const OffsetKey& key) override;
  std::vector<StoredOffset> ReadTopic(std::string_view topic) override;
  std::vector<StoredOffset> ReadAll() override;
  std::vector<std::string> Topics() override;
  absl::StatusOr<SourceProgress> ReadSource(const SourceKey& key) override;
  absl::Status Flush() override;

  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override;
  Verdict Judge(const RawRecord& record, const JudgeContext& context) override;
  void OnAppended(const BatchDraft&, Lsn) override {}

  uint64_t Count();

 private:
  struct Position {
    uint64_t incarnation = 0;
    uint64_t next = 0;
    Lsn lsn;
  };
  // One of the two marks of a source; not there until its LSN is set.
  struct SourceMark {
    uint64_t value = 0;
    Lsn lsn;
  };
  struct Source {
    SourceMark seen, cursor;
  };

  void Apply(const OffsetAdvance& record, Lsn lsn);
  void Apply(const OffsetForget& record, Lsn lsn);
  void Apply(const SourceSeen& record, Lsn lsn);
  void Apply(const SourceCursor& record, Lsn lsn);
  static void Raise(SourceMark& mark, uint64_t value, Lsn lsn);
  Source& SourceOf(const PositionKeyView& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);

  Verdict JudgeAdvance(const RawRecord& record, const JudgeContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Verdict JudgeForget(const RawRecord& record, const JudgeContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);
  Verdict JudgeSource(const RawRecord& record, const JudgeContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequencer_);

  template <typename Wanted>
  std::vector<StoredOffset> Select(Wanted wanted);
  bool Durable(Lsn lsn) const { return writer_->sink().Reached(lsn.value()); }
  // Nothing newer than what was confirmed may be shown once the journal has failed.
  bool Hidden(Lsn lsn) const { return lsn && writer_->sink().poisoned() && !Durable(lsn); }

  Mutex& sequencer_;
  StoreWriter* writer_ = nullptr;
  PositionMap<Position> offsets_ ABSL_GUARDED_BY(sequencer_);
  PositionMap<Source> sources_ ABSL_GUARDED_BY(sequencer_);
  Lsn newest_ ABSL_GUARDED_BY(sequencer_);         // record of this store
  Lsn newest_forget_ ABSL_GUARDED_BY(sequencer_);  // bounds what "there is no such key" rests on
};

}  // namespace holdfast
