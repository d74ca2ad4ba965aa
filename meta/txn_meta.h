// TxnMeta: a MetaStore whose values are read and changed by the reads and transactions of etcd's
// terms. Where they are carried out is up to the class below it.
#pragma once

#include <cstdint>
#include <string_view>

#include "journal/base/status.h"
#include "meta/mvcc_types.h"
#include "meta/transacted_meta.h"

namespace holdfast {

// Threads: any.
class TxnMeta : public TransactedMeta {
 public:
  absl::StatusOr<MetaEntry> Get(std::string_view key, const MetaCall& call) override;
  absl::StatusOr<MetaList> List(std::string_view prefix, const MetaPage& page) override;
  absl::StatusOr<uint64_t> Delete(std::string_view key, const MetaCall& call) override;
  absl::StatusOr<uint64_t> DeleteAt(std::string_view key, uint64_t revision,
                                    const MetaCall& call) override;
  absl::StatusOr<uint64_t> Transact(const MetaTransaction& transaction,
                                    const MetaWrite& write) override;

  // --- In etcd's terms. Errors are Refuse()d, see RefusalOf, or those of MetaStore. ---
  struct ReadAnswer {
    MvccReadResult read;
    uint64_t revision = 0;  // newest of the store
  };
  virtual StatusOr<ReadAnswer> Read(const MvccRead& read, const MetaCall& call) = 0;
  virtual StatusOr<MvccTxnResult> Execute(const MvccTxn& txn, const MetaCall& call) = 0;
};

}  // namespace holdfast
