// LiveJournal: a journal on a storage, opened as an engine opens it, with a machine that remembers
// what was applied while running and by recovery.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "journal/journal.h"
#include "recovery/opener.h"

namespace holdfast {

// The records are offset advances: `next` is a value that the test chose, `topic` makes them long.
class ValueMachine final : public StateMachine {
 public:
  ValueMachine() { machines_.Route(RecordType::kOffsetAdvance, *this); }
  void Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) override {
    values_[lsn] = FieldsOf<OffsetAdvance>(record).next;
    places_[lsn] = ref;
  }
  const StateMachines& machines() const { return machines_; }
  const std::map<Lsn, uint64_t>& values() const { return values_; }
  const std::map<Lsn, RecordRef>& places() const { return places_; }

 private:
  std::map<Lsn, uint64_t> values_;
  std::map<Lsn, RecordRef> places_;
  StateMachines machines_;
};

class LiveJournal {
 public:
  // Storage and clock are borrowed.
  LiveJournal(Storage& storage, Clock& clock) : storage_(storage), clock_(clock) {}

  // Recovers and starts.
  Status Open(const JournalOptions& options, LogSink* log = nullptr) {
    journal_.reset();
    machine_ = std::make_unique<ValueMachine>();
    SeededRng rng(++boots_);
    ASSIGN_OR_RETURN(OpenedStore opened,
                     OpenStore(storage_, clock_, rng, {.segment_bytes = options.segment_bytes},
                               machine_->machines()));
    report_ = opened.report;
    ASSIGN_OR_RETURN(journal_, Journal::Start(storage_, clock_, log, options,
                                              std::move(opened.start), machine_->machines(), mu_));
    return absl::OkStatus();
  }

  static BatchDraft Draft(const std::vector<uint64_t>& values, size_t padding = 0) {
    const std::string topic(padding, 'x');
    BatchDraft draft;
    for (const uint64_t value : values) {
      draft.Add(OffsetAdvance{.topic = topic, .client = "c", .partition = 1, .next = value});
    }
    return draft;
  }

  // One batch. The Commit is for its last record.
  Commit Append(const std::vector<uint64_t>& values, size_t padding = 0, Claim claim = Claim::kGrow)
      ABSL_LOCKS_EXCLUDED(mu_) {
    const BatchDraft draft = Draft(values, padding);
    Lsn last;
    {
      MutexLock lock(journal_->sequencer());
      const Status reserved = journal_->Reserve(draft.batch_bytes(), claim);
      if (!reserved.ok()) return Commit(reserved);
      last = journal_->Append(draft) + (values.size() - 1);
    }
    journal_->Kick();
    return journal_->CommitAt(last, /*changed=*/true);
  }
  Commit Append(uint64_t value) { return Append(std::vector<uint64_t>{value}); }

  // The value of the record `lsn`, read back.
  StatusOr<uint64_t> Read(Lsn lsn) {
    RecordRef ref;
    {
      MutexLock lock(mu_);
      ref = machine_->places().at(lsn);
    }
    ASSIGN_OR_RETURN(const std::string bytes, journal_->ReadRecord(ref, lsn));
    ByteView view = AsBytes(bytes);
    ASSIGN_OR_RETURN(const RawRecord raw, TakeRecord(view));
    ASSIGN_OR_RETURN(const AnyRecord record, DecodeRecord(raw));
    return std::get<OffsetAdvance>(record).next;
  }

  // Everything applied so far, by LSN.
  std::vector<uint64_t> Values() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    std::vector<uint64_t> values;
    for (const auto& [lsn, value] : machine_->values()) values.push_back(value);
    return values;
  }

  JournalSpace Space() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(journal_->sequencer());
    return journal_->space();
  }

  Journal& operator*() { return *journal_; }
  Journal* operator->() { return journal_.get(); }
  void Destroy() { journal_.reset(); }
  const RecoveryReport& report() const { return report_; }
  Mutex& mu() ABSL_LOCK_RETURNED(mu_) { return mu_; }

 private:
  Storage& storage_;
  Clock& clock_;
  Mutex mu_;
  uint64_t boots_ = 0;
  RecoveryReport report_;
  std::unique_ptr<ValueMachine> machine_;
  std::unique_ptr<Journal> journal_;
};

}  // namespace holdfast
