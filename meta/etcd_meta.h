// EtcdMeta: a MetaStore whose values are kept by an etcd, or by whatever speaks its v3 JSON
// gateway.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "holdfast/clock.h"
#include "holdfast/meta_store.h"
#include "meta/etcd_client.h"
#include "meta/etcd_watches.h"
#include "meta/mvcc_types.h"
#include "meta/txn_meta.h"

namespace holdfast {

// A write that was sent and not answered is looked for by its request id, in the second half of its
// time; found, it is OK, else UNKNOWN. It is never sent twice.
// Threads: any. Watches are called back on one thread of its own; a callback that blocks holds up
//          the others.
class EtcdMeta final : public TxnMeta {
 public:
  // Borrows `transport` and `clock`, which outlive it.
  // Errors: kInvalidArgument  no endpoint, or a prefix that is no path
  static absl::StatusOr<std::unique_ptr<EtcdMeta>> Create(HttpTransport& transport, Clock& clock,
                                                          const EtcdOptions& options);
  // The same with a transport of its own.
  static absl::StatusOr<std::unique_ptr<EtcdMeta>> Create(std::unique_ptr<HttpTransport> transport,
                                                          Clock& clock, const EtcdOptions& options);

  absl::StatusOr<uint64_t> Transact(const MetaTransaction& transaction,
                                    const MetaWrite& write) override;
  absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(std::string_view prefix, uint64_t from_revision,
                                                   std::function<void(const MetaNotice&)> callback,
                                                   const MetaCall& call) override;
  absl::StatusOr<MetaLease> GrantLease(absl::Duration ttl, const MetaCall& call) override;
  absl::StatusOr<MetaLease> KeepAlive(uint64_t lease, const MetaCall& call) override;
  absl::Status RevokeLease(uint64_t lease, const MetaCall& call) override;

 private:
  EtcdMeta(HttpTransport& transport, Clock& clock, const EtcdOptions& options)
      : clock_(clock), client_(transport, clock, options), watches_(client_, options) {}

  StatusOr<ReadAnswer> Read(const MvccRead& read, const MetaCall& call) override;
  StatusOr<MvccTxnResult> Execute(const MvccTxn& txn, const MetaCall& call) override;
  // The revision of the write with that id, if `key` still stands where it put it.
  StatusOr<uint64_t> FindWrite(std::string_view key, std::string_view request_id,
                               const MetaCall& call);

  std::unique_ptr<HttpTransport> owned_;  // null: the transport is borrowed
  Clock& clock_;
  EtcdClient client_;
  EtcdWatches watches_;
};

}  // namespace holdfast
