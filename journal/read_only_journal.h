// ReadOnlyJournal: the records of a store that somebody else may be writing, for an engine that
// only reads.
#pragma once

#include "journal/record_reader.h"
#include "journal/record_sink.h"

namespace holdfast {

// Threads: any.
class ReadOnlyJournal final : public RecordSink {
 public:
  // Storage and mutex are borrowed; they outlive it. `salt` is the store's.
  ReadOnlyJournal(Storage& storage, uint64_t salt, Mutex& sequencer)
      : RecordSink(sequencer), reader_(storage, salt, kFilesMax) {}

  // Errors: kFailedPrecondition kReadOnly, always
  Status Reserve(uint64_t batch_bytes, Claim claim) override;
  bool HasRoom(uint64_t, Claim) const override { return false; }
  Lsn Append(const BatchDraft& draft) override;
  Lsn appended() const override { return Lsn(); }
  void Kick() override {}
  StatusOr<std::string> ReadRecord(const RecordRef& ref, Lsn lsn) override;
  void ReadRecords(std::span<const Place> places, RecordBlock& records) override;
  bool reads_ahead() const override { return reader_.reads_ahead(); }
  bool poisoned() const override { return false; }

  // What was read is on disk already.
  Status WaitFor(uint64_t) override { return absl::OkStatus(); }
  void CallWhenReached(uint64_t lsn, std::function<void(Status)> callback) override;
  bool Reached(uint64_t) const override { return true; }

 private:
  static constexpr size_t kFilesMax = 64;
  RecordReader reader_;
};

}  // namespace holdfast
