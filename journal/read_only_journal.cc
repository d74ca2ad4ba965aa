#include "journal/read_only_journal.h"

namespace holdfast {

Status ReadOnlyJournal::Reserve(uint64_t, Claim) {
  return WrongState(Detail::kReadOnly, "the store was opened read-only");
}

Lsn ReadOnlyJournal::Append(const BatchDraft&) {
  CHECK(false);  // Reserve never grants room.
}

StatusOr<std::string> ReadOnlyJournal::ReadRecord(const RecordRef& ref, Lsn lsn) {
  return reader_.Read(ref, lsn);
}

void ReadOnlyJournal::ReadRecords(std::span<const Place> places, RecordBlock& records) {
  reader_.ReadMany(places, records);
}

void ReadOnlyJournal::CallWhenReached(uint64_t, std::function<void(Status)> callback) {
  callback(absl::OkStatus());
}

}  // namespace holdfast
