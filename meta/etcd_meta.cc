#include "meta/etcd_meta.h"

#include <algorithm>
#include <utility>

#include "meta/http/outcome.h"
#include "meta/meta_terms.h"

namespace holdfast {
namespace {

constexpr int64_t kTtlSecondsMax = 9'000'000'000;

// The limits of every backend, looked at here so that no server needs to be asked.
Status CheckSize(const MvccTxn& txn) {
  if (std::max(txn.compares.size(), txn.success.size()) > kMetaChangesMax) {
    return Refuse(MvccRefusal::kTooManyOps);
  }
  size_t bytes = 0;
  for (const MvccOp& op : txn.success) bytes += op.key.size() + op.value.size();
  return bytes > kMetaWriteBytesMax ? Refuse(MvccRefusal::kTooLarge) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdMeta>> EtcdMeta::Create(HttpTransport& transport, Clock& clock,
                                                           const EtcdOptions& options) {
  if (options.endpoints.empty()) return Invalid("etcd: no endpoint is given");
  if (!options.prefix.empty() && !options.prefix.starts_with('/')) {
    return Invalid("etcd: the prefix does not start with a slash");
  }
  return std::unique_ptr<EtcdMeta>(new EtcdMeta(transport, clock, options));
}

StatusOr<std::unique_ptr<EtcdMeta>> EtcdMeta::Create(std::unique_ptr<HttpTransport> transport,
                                                     Clock& clock, const EtcdOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<EtcdMeta> meta, Create(*transport, clock, options));
  meta->owned_ = std::move(transport);
  return meta;
}

absl::StatusOr<uint64_t> EtcdMeta::Transact(const MetaTransaction& transaction,
                                            const MetaWrite& write) {
  ASSIGN_OR_RETURN(const MvccTxn txn, ToMvccTxn(transaction, write.request_id));
  RETURN_IF_ERROR(CheckSize(txn));
  const auto put =
      std::ranges::find(transaction.changes, MetaChange::Kind::kPut, &MetaChange::kind);
  const bool can_be_found = !write.request_id.empty() && put != transaction.changes.end();
  const absl::Duration deadline = clock_.Now() + write.timeout;
  const StatusOr<MvccTxnResult> result =
      Execute(txn, {.timeout = can_be_found ? write.timeout / 2 : write.timeout});
  if (result.ok() && !result->succeeded) return MetaConflict("a condition does not hold");
  if (result.ok()) return result->revision;
  if (!can_be_found || MetaResultOf(result.status()) != MetaResult::kUnknown) {
    return result.status();
  }
  // All puts are at one revision, so one of them speaks for the whole. That it is not there says
  // nothing: it may still come, or have come and gone.
  const StatusOr<uint64_t> found =
      FindWrite(put->key, write.request_id, {.timeout = deadline - clock_.Now()});
  return found.ok() ? found : result.status();
}

StatusOr<uint64_t> EtcdMeta::FindWrite(std::string_view key, std::string_view request_id,
                                       const MetaCall& call) {
  ASSIGN_OR_RETURN(const ReadAnswer answer, Read({.range = KeyRange::Only(key)}, call));
  for (const MvccEntryPtr& entry : answer.read.entries) {
    if (ToMetaEntry(*entry).request_id == request_id) return entry->mod_revision;
  }
  return NotFound("no entry has this request id");
}

absl::StatusOr<std::unique_ptr<MetaWatch>> EtcdMeta::Watch(
    std::string_view prefix, uint64_t from_revision,
    std::function<void(const MetaNotice&)> callback, const MetaCall&) {
  if (from_revision == 0) return Invalid("from_revision: 0, at least 1 is needed");
  return watches_.Watch(prefix, from_revision, std::move(callback));
}

absl::StatusOr<MetaLease> EtcdMeta::GrantLease(absl::Duration ttl, const MetaCall& call) {
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(ttl, absl::Seconds(1)));
  if (ttl <= absl::ZeroDuration() || seconds > kTtlSecondsMax) {
    return Refuse(MvccRefusal::kLeaseTtlTooLarge);
  }
  ASSIGN_OR_RETURN(
      const Json answer,
      client_.Call(EtcdLeaseGrant(seconds), EtcdClient::Kind::kWrite, clock_.Now() + call.timeout));
  ASSIGN_OR_RETURN(const EtcdLease lease, ReadEtcdLease(answer));
  return MetaLease{.id = lease.id, .ttl = absl::Seconds(lease.ttl_seconds)};
}

absl::StatusOr<MetaLease> EtcdMeta::KeepAlive(uint64_t lease, const MetaCall& call) {
  // Twice is as good as once, so it goes wherever it is answered.
  ASSIGN_OR_RETURN(const Json answer,
                   client_.Call(EtcdLeaseKeepAlive(lease), EtcdClient::Kind::kRead,
                                clock_.Now() + call.timeout));
  const StatusOr<EtcdLease> kept = ReadEtcdKeptLease(answer);
  if (!kept.ok()) return AsRead(kept.status());
  if (kept->ttl_seconds == 0) return NotFound("lease: unknown, or it has ended");
  return MetaLease{.id = kept->id, .ttl = absl::Seconds(kept->ttl_seconds)};
}

absl::Status EtcdMeta::RevokeLease(uint64_t lease, const MetaCall& call) {
  return client_.Call(EtcdLeaseRevoke(lease), EtcdClient::Kind::kWrite, clock_.Now() + call.timeout)
      .status();
}

StatusOr<EtcdMeta::ReadAnswer> EtcdMeta::Read(const MvccRead& read, const MetaCall& call) {
  ASSIGN_OR_RETURN(const Json answer, client_.Call(EtcdRange(read), EtcdClient::Kind::kRead,
                                                   clock_.Now() + call.timeout));
  ASSIGN_OR_RETURN(const EtcdHeader header, ReadEtcdHeader(answer));
  StatusOr<MvccReadResult> entries = ReadEtcdRange(answer);
  if (!entries.ok()) return AsRead(entries.status());
  return ReadAnswer{.read = *std::move(entries), .revision = header.revision};
}

StatusOr<MvccTxnResult> EtcdMeta::Execute(const MvccTxn& txn, const MetaCall& call) {
  ASSIGN_OR_RETURN(const Json answer, client_.Call(EtcdTxn(txn), EtcdClient::Kind::kWrite,
                                                   clock_.Now() + call.timeout));
  return ReadEtcdTxn(answer, txn);
}

}  // namespace holdfast
