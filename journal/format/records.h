// THE CATALOGUE: every record that can stand in a journal. A record is a struct with a number, a
// version and its fields; encoding, decoding, size checks, text form and fuzzing follow from the
// list. Adding a record = one struct + one entry in Catalogue + its row in FORMAT.md. Numbers are
// never reused; zero is never a valid one; numbers from 128 up belong to the host program.
//
// The structs hold views: they borrow the bytes they were decoded from, or their maker's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

#include "journal/base/bytes.h"
#include "journal/base/status.h"
#include "journal/base/strong.h"
#include "journal/format/stored_answers.h"

namespace holdfast {

enum class RecordType : uint8_t {
  kInvalid = 0,
  kOffsetAdvance = 1,
  kOffsetForget = 2,
  kSourceSeen = 3,
  kSourceCursor = 4,
  kDeliveryPut = 5,
  kDeliveryReschedule = 6,
  kDeliveryRemove = 7,
  kDeadLetter = 8,
  kDeadLetterRedriven = 9,
  kDeadLetterPurge = 10,
  kOffsetStart = 11,
  kAnswers = 12,
  // 16 .. 31: the embedded Meta.
  kMetaPut = 16,
  kMetaDelete = 17,
  kMetaLeaseGrant = 18,
  kMetaLeaseEnd = 19,
  kMetaRevision = 20,
  kFirstHostType = 128,
};

// An event in a record: as it is, or one zstd frame with the size it unpacks to.
struct StoredEvent {
  uint64_t raw_bytes = 0;  // size of the event itself
  bool compressed = false;
  std::string_view bytes;  // as stored
};

struct OffsetAdvance {
  static constexpr RecordType kType = RecordType::kOffsetAdvance;
  static constexpr const char* kName = "offset-advance";
  std::string_view topic, client;
  uint64_t partition = 0, incarnation = 0, next = 0;
  static constexpr auto Fields() {
    return std::tuple(&OffsetAdvance::topic, &OffsetAdvance::client, &OffsetAdvance::partition,
                      &OffsetAdvance::incarnation, &OffsetAdvance::next);
  }
  static constexpr const char* kFieldNames[] = {"topic", "client", "partition", "incarnation",
                                                "next"};
};

struct OffsetForget {
  static constexpr RecordType kType = RecordType::kOffsetForget;
  static constexpr const char* kName = "offset-forget";
  std::string_view topic, client;
  uint64_t partition = 0;
  static constexpr auto Fields() {
    return std::tuple(&OffsetForget::topic, &OffsetForget::client, &OffsetForget::partition);
  }
  static constexpr const char* kFieldNames[] = {"topic", "client", "partition"};
};

struct SourceSeen {
  static constexpr RecordType kType = RecordType::kSourceSeen;
  static constexpr const char* kName = "source-seen";
  std::string_view topic;
  uint64_t incarnation = 0, partition = 0, through = 0;
  static constexpr auto Fields() {
    return std::tuple(&SourceSeen::topic, &SourceSeen::incarnation, &SourceSeen::partition,
                      &SourceSeen::through);
  }
  static constexpr const char* kFieldNames[] = {"topic", "incarnation", "partition", "through"};
};

struct SourceCursor {
  static constexpr RecordType kType = RecordType::kSourceCursor;
  static constexpr const char* kName = "source-cursor";
  std::string_view topic;
  uint64_t incarnation = 0, partition = 0, cursor = 0;
  static constexpr auto Fields() {
    return std::tuple(&SourceCursor::topic, &SourceCursor::incarnation, &SourceCursor::partition,
                      &SourceCursor::cursor);
  }
  static constexpr const char* kFieldNames[] = {"topic", "incarnation", "partition", "cursor"};
};

struct DeliveryPut {
  static constexpr RecordType kType = RecordType::kDeliveryPut;
  static constexpr const char* kName = "delivery-put";
  std::string_view id;
  uint64_t epoch = 0;
  std::string_view topic;
  uint64_t incarnation = 0, partition = 0;
  std::optional<uint64_t> offset;
  std::string_view client;
  uint64_t attempt = 0;
  int64_t due_ns = 0;      // engine clock
  int64_t created_ns = 0;  // wall clock, since 1970
  std::optional<std::string_view> redriven_from;
  StoredEvent event;
  static constexpr auto Fields() {
    return std::tuple(&DeliveryPut::id, &DeliveryPut::epoch, &DeliveryPut::topic,
                      &DeliveryPut::incarnation, &DeliveryPut::partition, &DeliveryPut::offset,
                      &DeliveryPut::client, &DeliveryPut::attempt, &DeliveryPut::due_ns,
                      &DeliveryPut::created_ns, &DeliveryPut::redriven_from, &DeliveryPut::event);
  }
  static constexpr const char* kFieldNames[] = {
      "id",     "epoch",   "topic",  "incarnation", "partition",     "offset",
      "client", "attempt", "due_ns", "created_ns",  "redriven_from", "event"};
};

struct DeliveryReschedule {
  static constexpr RecordType kType = RecordType::kDeliveryReschedule;
  static constexpr const char* kName = "delivery-reschedule";
  std::string_view id;
  uint64_t epoch = 0, attempt = 0;
  int64_t due_ns = 0;
  static constexpr auto Fields() {
    return std::tuple(&DeliveryReschedule::id, &DeliveryReschedule::epoch,
                      &DeliveryReschedule::attempt, &DeliveryReschedule::due_ns);
  }
  static constexpr const char* kFieldNames[] = {"id", "epoch", "attempt", "due_ns"};
};

struct DeliveryRemove {
  static constexpr RecordType kType = RecordType::kDeliveryRemove;
  static constexpr const char* kName = "delivery-remove";
  std::string_view id;
  uint64_t epoch = 0;
  std::string_view client;
  uint64_t reason = 0;  // holdfast::Reason
  std::optional<std::string_view> idempotency_key;
  std::string_view answer;
  static constexpr auto Fields() {
    return std::tuple(&DeliveryRemove::id, &DeliveryRemove::epoch, &DeliveryRemove::client,
                      &DeliveryRemove::reason, &DeliveryRemove::idempotency_key,
                      &DeliveryRemove::answer);
  }
  static constexpr const char* kFieldNames[] = {"id",     "epoch",           "client",
                                                "reason", "idempotency_key", "answer"};
};

struct DeadLetterRecord {
  static constexpr RecordType kType = RecordType::kDeadLetter;
  static constexpr const char* kName = "dead-letter";
  std::string_view id, dlq_topic;
  uint64_t dlq_offset = 0;
  std::string_view reason;
  uint64_t attempts = 0, epoch = 0;
  std::string_view topic;
  uint64_t incarnation = 0, partition = 0;
  std::optional<uint64_t> offset;
  std::string_view client;
  int64_t died_ns = 0;   // wall clock, since 1970
  uint64_t replays = 0;  // 0 when first recorded; compaction states the count again here
  StoredEvent event;
  static constexpr auto Fields() {
    return std::tuple(
        &DeadLetterRecord::id, &DeadLetterRecord::dlq_topic, &DeadLetterRecord::dlq_offset,
        &DeadLetterRecord::reason, &DeadLetterRecord::attempts, &DeadLetterRecord::epoch,
        &DeadLetterRecord::topic, &DeadLetterRecord::incarnation, &DeadLetterRecord::partition,
        &DeadLetterRecord::offset, &DeadLetterRecord::client, &DeadLetterRecord::died_ns,
        &DeadLetterRecord::replays, &DeadLetterRecord::event);
  }
  static constexpr const char* kFieldNames[] = {
      "id",          "dlq_topic", "dlq_offset", "reason", "attempts", "epoch",   "topic",
      "incarnation", "partition", "offset",     "client", "died_ns",  "replays", "event"};
};

struct DeadLetterRedriven {
  static constexpr RecordType kType = RecordType::kDeadLetterRedriven;
  static constexpr const char* kName = "dead-letter-redriven";
  std::string_view id, new_id;
  uint64_t replays = 0;  // absolute
  static constexpr auto Fields() {
    return std::tuple(&DeadLetterRedriven::id, &DeadLetterRedriven::new_id,
                      &DeadLetterRedriven::replays);
  }
  static constexpr const char* kFieldNames[] = {"id", "new_id", "replays"};
};

struct DeadLetterPurge {
  static constexpr RecordType kType = RecordType::kDeadLetterPurge;
  static constexpr const char* kName = "dead-letter-purge";
  std::string_view id;
  static constexpr auto Fields() { return std::tuple(&DeadLetterPurge::id); }
  static constexpr const char* kFieldNames[] = {"id"};
};

struct MetaPut {
  static constexpr RecordType kType = RecordType::kMetaPut;
  static constexpr const char* kName = "meta-put";
  std::string_view key;
  uint64_t create_revision = 0, revision = 0, version = 0;
  uint64_t lease = 0;  // 0: none
  std::string_view value;
  static constexpr auto Fields() {
    return std::tuple(&MetaPut::key, &MetaPut::create_revision, &MetaPut::revision,
                      &MetaPut::version, &MetaPut::lease, &MetaPut::value);
  }
  static constexpr const char* kFieldNames[] = {"key",     "create_revision", "revision",
                                                "version", "lease",           "value"};
};

struct MetaDelete {
  static constexpr RecordType kType = RecordType::kMetaDelete;
  static constexpr const char* kName = "meta-delete";
  std::string_view key;
  uint64_t revision = 0;
  static constexpr auto Fields() { return std::tuple(&MetaDelete::key, &MetaDelete::revision); }
  static constexpr const char* kFieldNames[] = {"key", "revision"};
};

struct MetaLeaseGrant {
  static constexpr RecordType kType = RecordType::kMetaLeaseGrant;
  static constexpr const char* kName = "meta-lease-grant";
  uint64_t id = 0;
  int64_t ttl_ns = 0;  // granted whole again at every start
  static constexpr auto Fields() {
    return std::tuple(&MetaLeaseGrant::id, &MetaLeaseGrant::ttl_ns);
  }
  static constexpr const char* kFieldNames[] = {"id", "ttl_ns"};
};

// Its keys are deleted by records of their own, in the same batch or before.
struct MetaLeaseEnd {
  static constexpr RecordType kType = RecordType::kMetaLeaseEnd;
  static constexpr const char* kName = "meta-lease-end";
  uint64_t id = 0;
  static constexpr auto Fields() { return std::tuple(&MetaLeaseEnd::id); }
  static constexpr const char* kFieldNames[] = {"id"};
};

// The newest revision is at least this: what compaction states where a deletion was the newest.
struct MetaRevision {
  static constexpr RecordType kType = RecordType::kMetaRevision;
  static constexpr const char* kName = "meta-revision";
  uint64_t revision = 0;
  static constexpr auto Fields() { return std::tuple(&MetaRevision::revision); }
  static constexpr const char* kFieldNames[] = {"revision"};
};

// The first offset that was meant for a client. The first one of an incarnation holds.
struct OffsetStart {
  static constexpr RecordType kType = RecordType::kOffsetStart;
  static constexpr const char* kName = "offset-start";
  std::string_view topic, client;
  uint64_t partition = 0, incarnation = 0, start = 0;
  static constexpr auto Fields() {
    return std::tuple(&OffsetStart::topic, &OffsetStart::client, &OffsetStart::partition,
                      &OffsetStart::incarnation, &OffsetStart::start);
  }
  static constexpr const char* kFieldNames[] = {"topic", "client", "partition", "incarnation",
                                                "start"};
};

// Acknowledgements that are still remembered when the segments with their removals are to go.
struct Answers {
  static constexpr RecordType kType = RecordType::kAnswers;
  static constexpr const char* kName = "answers";
  StoredAnswers answers;
  static constexpr auto Fields() { return std::tuple(&Answers::answers); }
  static constexpr const char* kFieldNames[] = {"answers"};
};

template <typename... Records>
struct RecordList {
  using Any = std::variant<Records...>;
};
using Catalogue =
    RecordList<OffsetAdvance, OffsetForget, SourceSeen, SourceCursor, DeliveryPut,
               DeliveryReschedule, DeliveryRemove, DeadLetterRecord, DeadLetterRedriven,
               DeadLetterPurge, MetaPut, MetaDelete, MetaLeaseGrant, MetaLeaseEnd, MetaRevision,
               OffsetStart, Answers>;
using AnyRecord = Catalogue::Any;

// Record header, 8 bytes: type u8, version u8, flags u16, length u32 (of the fields that follow).
inline constexpr size_t kRecordHeaderBytes = 8;
inline constexpr uint16_t kRecordMaySkip = 1;  // a reader that does not know the type may skip it
inline constexpr uint8_t kRecordVersion = 1;   // of every record in the catalogue so far

struct RecordHeader {
  uint8_t type = 0;
  uint8_t version = 0;
  uint16_t flags = 0;
  uint32_t length = 0;
  bool may_skip() const { return (flags & kRecordMaySkip) != 0; }
};

// Appends header and fields.
template <typename Record>
void EncodeRecord(const Record& record, std::string& out);
// The same into memory of the caller, who has made room for EncodedBytesMax. Returns the end of
// what was laid down.
template <typename Record>
size_t EncodedBytesMax(const Record& record);
template <typename Record>
char* EncodeRecordAt(const Record& record, char* place);
void EncodeAnyRecord(const AnyRecord& record, std::string& out);

// One record as it stands in a batch.
struct RawRecord {
  RecordHeader header;
  ByteView fields;
  // What it takes there, header included: below 32 MiB, as a batch is.
  uint32_t bytes() const { return static_cast<uint32_t>(kRecordHeaderBytes + fields.size()); }
};
// Takes the first record off `records`.
// Errors: kDataLoss  the bytes are not a record header with its fields
StatusOr<RawRecord> TakeRecord(ByteView& records);

// Errors: kDataLoss      the fields do not decode to the end, or a value is out of its range
//         kUnimplemented unknown type, or a newer version of a known one
StatusOr<AnyRecord> DecodeRecord(const RawRecord& raw);
// Whether DecodeRecord would succeed; cheaper. Errors: the same
Status CheckRecord(const RawRecord& raw);
// False: the fields are not those of such a record.
template <typename Record>
bool DecodeFields(ByteView fields, Record& record);
// Needs: `raw` is such a record, and was checked or made by this program.
template <typename Record>
Record FieldsOf(const RawRecord& raw);

// "delivery-put", or "type-200" for one that is not in the catalogue.
std::string RecordTypeName(uint8_t type);

}  // namespace holdfast

// The templates, split off to keep the list readable.
#include "journal/format/records_codec.h"
