// RocksDB: one write batch a cycle through its write-ahead log, which is synced each 100 ms.
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include "bench/peers/recovery_store.h"

namespace holdfast::bench {
namespace {

Status FromRocks(const rocksdb::Status& status) {
  return status.ok() ? absl::OkStatus()
                     : Unavailable(Detail::kIo, "RocksDB: {}", status.ToString());
}

class RocksDbStore final : public RecoveryStore {
 public:
  explicit RocksDbStore(rocksdb::DB* db) : db_(db) {}

  Status Run(const Cycle& cycle) override {
    batch_.Clear();
    MakePeerKey(cycle.put.id, key_);
    EncodeForPeer(cycle.put, value_);
    RETURN_IF_ERROR(FromRocks(batch_.Put(key_, value_)));
    if (!cycle.remove_id.empty()) {
      MakePeerKey(cycle.remove_id, key_);
      RETURN_IF_ERROR(FromRocks(batch_.Delete(key_)));
    }
    MakePeerKey(cycle.offset, key_);
    const uint64_t next = cycle.next;
    RETURN_IF_ERROR(FromRocks(
        batch_.Put(key_, rocksdb::Slice(reinterpret_cast<const char*>(&next), sizeof next))));
    RETURN_IF_ERROR(FromRocks(db_->Write(rocksdb::WriteOptions(), &batch_)));
    return timer_.Due() ? Confirm() : absl::OkStatus();
  }
  Status Confirm() override { return FromRocks(db_->FlushWAL(/*sync=*/true)); }
  Status ReadAll(const Visit& visit) override {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
    for (it->Seek(std::string(1, kDeliveryLetter)); it->Valid(); it->Next()) {
      const std::string_view key(it->key().data(), it->key().size());
      if (key.front() != kDeliveryLetter) break;
      ASSIGN_OR_RETURN(const std::string_view event,
                       EventOfPeer({it->value().data(), it->value().size()}));
      visit(key.substr(1), event);
    }
    return FromRocks(it->status());
  }

 private:
  const std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteBatch batch_;
  SyncTimer timer_;
  std::string key_, value_;
};

StatusOr<std::unique_ptr<RecoveryStore>> Open(const RecoverySetup& setup) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  RETURN_IF_ERROR(FromRocks(rocksdb::DB::Open(options, setup.directory, &db)));
  return std::make_unique<RocksDbStore>(db);
}

}  // namespace

std::vector<RecoveryKind> RocksDbKinds() {
  return {{.name = fmt::format("RocksDB {}.{}.{}", ROCKSDB_MAJOR, ROCKSDB_MINOR, ROCKSDB_PATCH),
           .settings = "defaults (64 MiB memtable, Snappy); a write batch with WAL for each cycle, "
                       "FlushWAL(sync) each 100 ms; read by an iterator without filling the cache",
           .open = &Open}};
}

}  // namespace holdfast::bench
