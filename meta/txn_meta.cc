#include "meta/txn_meta.h"

#include <string>

#include "meta/meta_terms.h"

namespace holdfast {

absl::StatusOr<MetaEntry> TxnMeta::Get(std::string_view key, const MetaCall& call) {
  RETURN_IF_ERROR(CheckMetaKey(key));
  ASSIGN_OR_RETURN(const ReadAnswer answer, Read({.range = KeyRange::Only(key)}, call));
  if (answer.read.entries.empty()) return NotFound("no such key");
  return ToMetaEntry(*answer.read.entries.front());
}

absl::StatusOr<MetaList> TxnMeta::List(std::string_view prefix, const MetaPage& page) {
  MvccRead read{.range = KeyRange::Prefix(prefix), .revision = page.revision, .limit = page.limit};
  if (page.after >= read.range.begin && !page.after.empty()) {
    read.range.begin = std::string(page.after) + '\0';
  }
  ASSIGN_OR_RETURN(const ReadAnswer answer, Read(read, {.timeout = page.timeout}));
  MetaList list{.more = answer.read.more,
                .revision = page.revision == 0 ? answer.revision : page.revision};
  list.entries.reserve(answer.read.entries.size());
  for (const MvccEntryPtr& entry : answer.read.entries) list.entries.push_back(ToMetaEntry(*entry));
  return list;
}

absl::StatusOr<uint64_t> TxnMeta::Delete(std::string_view key, const MetaCall& call) {
  RETURN_IF_ERROR(CheckMetaKey(key));
  MvccTxn txn;
  txn.success.push_back(MvccOp::Delete(KeyRange::Only(key)));
  ASSIGN_OR_RETURN(const MvccTxnResult result, Execute(txn, call));
  if (result.results.front().deleted == 0) return NotFound("no such key");
  return result.revision;
}

absl::StatusOr<uint64_t> TxnMeta::DeleteAt(std::string_view key, uint64_t revision,
                                           const MetaCall& call) {
  RETURN_IF_ERROR(CheckMetaKey(key));
  const KeyRange only = KeyRange::Only(key);
  MvccTxn txn;
  txn.compares.push_back({.range = only,
                          .target = MvccCompare::Target::kMod,
                          .number = static_cast<int64_t>(revision)});
  txn.success.push_back(MvccOp::Delete(only));
  txn.failure.push_back(MvccOp::Read({.range = only, .count_only = true}));
  ASSIGN_OR_RETURN(const MvccTxnResult result, Execute(txn, call));
  if (!result.succeeded && result.results.front().read.count > 0) {
    return MetaConflict("the key stands at another revision");
  }
  // At revision 0 no key stands.
  if (!result.succeeded || result.results.front().deleted == 0) return NotFound("no such key");
  return result.revision;
}

absl::StatusOr<uint64_t> TxnMeta::Transact(const MetaTransaction& transaction,
                                           const MetaWrite& write) {
  ASSIGN_OR_RETURN(const MvccTxn txn, ToMvccTxn(transaction, write.request_id));
  ASSIGN_OR_RETURN(const MvccTxnResult result, Execute(txn, {.timeout = write.timeout}));
  if (!result.succeeded) return MetaConflict("a condition does not hold");
  return result.revision;
}

}  // namespace holdfast
