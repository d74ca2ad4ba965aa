#include "meta/mvcc_types.h"

#include <utility>

#include "absl/strings/cord.h"

namespace holdfast {
namespace {

constexpr char kPayloadType[] = "holdfast/mvcc-refusal";

Status RefusalText(MvccRefusal refusal) {
  switch (refusal) {
    case MvccRefusal::kNone:
      return absl::OkStatus();
    case MvccRefusal::kEmptyKey:
      return Invalid("key: it is empty");
    case MvccRefusal::kKeyNotFound:
      return NotFound("key: there is none whose value or lease could be kept");
    case MvccRefusal::kDuplicateKey:
      return Invalid("key: one transaction changes it twice");
    case MvccRefusal::kTooManyOps:
      return Exhausted(Detail::kLimit, "the transaction has too many operations");
    case MvccRefusal::kTooLarge:
      return Exhausted(Detail::kLimit, "the request is too large");
    case MvccRefusal::kCompacted:
      return MakeStatus(StatusCode::kAborted, Detail::kConflict,
                        "revision: it was compacted; start again at the newest");
    case MvccRefusal::kFutureRevision:
      return MakeStatus(StatusCode::kAborted, Detail::kConflict,
                        "revision: it is not reached yet; start again at the newest");
    case MvccRefusal::kLeaseNotFound:
      return NotFound("lease: unknown, or it has ended");
    case MvccRefusal::kLeaseExists:
      return AlreadyExists("lease: one of this id exists");
    case MvccRefusal::kLeaseTtlTooLarge:
      return Invalid("ttl: out of range, 1 ns .. 9,000,000,000 s");
    case MvccRefusal::kValueGiven:
      return Invalid("value: given, but the one that is there is to be kept");
    case MvccRefusal::kLeaseGiven:
      return Invalid("lease: given, but the one that is there is to be kept");
  }
  return absl::OkStatus();
}

}  // namespace

Status Refuse(MvccRefusal refusal) {
  Status status = RefusalText(refusal);
  const std::string number = std::to_string(static_cast<int>(refusal));
  status.SetPayload(kPayloadType, absl::Cord(number.c_str()));
  return status;
}

MvccRefusal RefusalOf(const Status& status) {
  const auto payload = status.GetPayload(kPayloadType);
  if (!payload.has_value()) return MvccRefusal::kNone;
  return static_cast<MvccRefusal>(std::stoi(std::string(*payload)));
}

KeyRange KeyRange::Only(std::string_view key) {
  return {.begin = std::string(key), .end = std::string(key) + '\0'};
}

KeyRange KeyRange::Prefix(std::string_view prefix) {
  KeyRange range{.begin = std::string(prefix), .end = std::string(prefix)};
  while (!range.end.empty() && range.end.back() == '\xff') range.end.pop_back();
  if (!range.end.empty()) ++range.end.back();
  return range;
}

MvccOp MvccOp::Read(MvccRead read) {
  MvccOp op;
  op.kind = Kind::kRead;
  op.read = std::move(read);
  return op;
}

MvccOp MvccOp::Put(std::string_view key, std::string_view value, uint64_t lease) {
  MvccOp op;
  op.kind = Kind::kPut;
  op.key = key;
  op.value = value;
  op.lease = lease;
  return op;
}

MvccOp MvccOp::Delete(KeyRange range) {
  MvccOp op;
  op.kind = Kind::kDelete;
  op.erased = std::move(range);
  return op;
}

}  // namespace holdfast
