#include "meta/meta_terms.h"

#include <string>
#include <utility>

#include "meta/value_envelope.h"

namespace holdfast {
namespace {

Status CheckRequestId(std::string_view request_id) {
  if (request_id.size() <= kRequestIdBytesMax) return absl::OkStatus();
  return Invalid("request_id: {} bytes, at most {} are allowed", request_id.size(),
                 kRequestIdBytesMax);
}

MvccCompare CompareOf(const MetaCondition& condition) {
  MvccCompare compare{.range = KeyRange::Only(condition.key),
                      .target = MvccCompare::Target::kCreate};
  switch (condition.must) {
    case MetaCondition::Must::kBeAbsent:
      break;
    case MetaCondition::Must::kExist:
      compare.op = MvccCompare::Op::kGreater;
      break;
    case MetaCondition::Must::kStandAt:
      compare.target = MvccCompare::Target::kMod;
      compare.number = static_cast<int64_t>(condition.revision);
      break;
  }
  return compare;
}

StatusOr<MvccOp> OpOf(const MetaChange& change, std::string_view request_id) {
  RETURN_IF_ERROR(CheckMetaKey(change.key));
  if (change.kind == MetaChange::Kind::kDelete) return MvccOp::Delete(KeyRange::Only(change.key));
  return MvccOp::Put(change.key, SealEnvelope({.request_id = request_id, .value = change.value}),
                     change.lease);
}

}  // namespace

MetaEntry ToMetaEntry(const MvccEntry& entry) {
  const EnvelopeParts parts = OpenEnvelope(entry.value);
  return {.key = entry.key,
          .value = std::string(parts.value),
          .create_revision = entry.create_revision,
          .revision = entry.mod_revision,
          .version = entry.version,
          .lease = entry.lease,
          .request_id = std::string(parts.request_id)};
}

MetaEvent ToMetaEvent(const MvccEvent& event) {
  if (!event.now->deleted()) {
    return {.kind = MetaEvent::Kind::kPut, .entry = ToMetaEntry(*event.now)};
  }
  return {.kind = MetaEvent::Kind::kDelete,
          .entry = {.key = event.now->key, .revision = event.now->mod_revision}};
}

Status CheckMetaKey(std::string_view key) {
  if (key.empty()) return Refuse(MvccRefusal::kEmptyKey);
  if (key.size() <= kMetaKeyBytesMax) return absl::OkStatus();
  return Exhausted(Detail::kLimit, "key: {} bytes, at most {} are allowed", key.size(),
                   kMetaKeyBytesMax);
}

Status MetaConflict(std::string_view what) {
  return MakeStatus(StatusCode::kAborted, Detail::kConflict, std::string(what));
}

StatusOr<MvccTxn> ToMvccTxn(const MetaTransaction& transaction, std::string_view request_id) {
  RETURN_IF_ERROR(CheckRequestId(request_id));
  MvccTxn txn;
  for (const MetaCondition& condition : transaction.conditions) {
    RETURN_IF_ERROR(CheckMetaKey(condition.key));
    if (condition.must == MetaCondition::Must::kStandAt && condition.revision == 0) {
      return MetaConflict("a condition does not hold: no key stands at revision 0");
    }
    txn.compares.push_back(CompareOf(condition));
  }
  for (const MetaChange& change : transaction.changes) {
    ASSIGN_OR_RETURN(MvccOp op, OpOf(change, request_id));
    txn.success.push_back(std::move(op));
  }
  return txn;
}

}  // namespace holdfast
