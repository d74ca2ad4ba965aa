// LMDB: one transaction a cycle into a writable map without sync, and an msync each 100 ms. A power
// cut between two of them may leave nothing usable; a killed process loses nothing.
#include <fmt/format.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bench/peers/recovery_store.h"

namespace holdfast::bench {
namespace {

Status FromLmdb(int error) {
  return error == 0 ? absl::OkStatus() : Unavailable(Detail::kIo, "LMDB: {}", mdb_strerror(error));
}

MDB_val ValueOf(std::string_view bytes) {
  return {.mv_size = bytes.size(), .mv_data = const_cast<char*>(bytes.data())};
}
std::string_view BytesOf(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// Aborts what was not committed.
class Txn {
 public:
  ~Txn() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  Status Begin(MDB_env* env, unsigned flags) {
    return FromLmdb(mdb_txn_begin(env, nullptr, flags, &txn_));
  }
  Status Commit() { return FromLmdb(mdb_txn_commit(std::exchange(txn_, nullptr))); }
  MDB_txn* get() { return txn_; }

 private:
  MDB_txn* txn_ = nullptr;
};

class LmdbStore final : public RecoveryStore {
 public:
  ~LmdbStore() override {
    if (env_ != nullptr) mdb_env_close(env_);
  }

  Status Open(const RecoverySetup& setup) {
    if (mkdir(setup.directory.c_str(), 0755) != 0 && errno != EEXIST) {
      return Unavailable(Detail::kIo, "{}: {}", setup.directory, std::strerror(errno));
    }
    RETURN_IF_ERROR(FromLmdb(mdb_env_create(&env_)));
    // A sparse file: room for pages that are half empty, and for those freed and not reused yet.
    const uint64_t map_bytes = std::max(uint64_t{1} << 30, setup.live_bytes * 4);
    RETURN_IF_ERROR(FromLmdb(mdb_env_set_mapsize(env_, map_bytes)));
    RETURN_IF_ERROR(
        FromLmdb(mdb_env_open(env_, setup.directory.c_str(), MDB_NOSYNC | MDB_WRITEMAP, 0644)));
    Txn txn;
    RETURN_IF_ERROR(txn.Begin(env_, 0));
    RETURN_IF_ERROR(FromLmdb(mdb_dbi_open(txn.get(), nullptr, 0, &dbi_)));
    return txn.Commit();
  }

  Status Run(const Cycle& cycle) override {
    Txn txn;
    RETURN_IF_ERROR(txn.Begin(env_, 0));
    MakePeerKey(cycle.put.id, key_);
    EncodeForPeer(cycle.put, value_);
    RETURN_IF_ERROR(Put(txn, key_, value_));
    if (!cycle.remove_id.empty()) {
      MakePeerKey(cycle.remove_id, key_);
      MDB_val key = ValueOf(key_);
      const int error = mdb_del(txn.get(), dbi_, &key, nullptr);
      if (error != MDB_NOTFOUND) RETURN_IF_ERROR(FromLmdb(error));
    }
    MakePeerKey(cycle.offset, key_);
    const uint64_t next = cycle.next;
    RETURN_IF_ERROR(Put(txn, key_, {reinterpret_cast<const char*>(&next), sizeof next}));
    RETURN_IF_ERROR(txn.Commit());
    return timer_.Due() ? Confirm() : absl::OkStatus();
  }
  Status Confirm() override { return FromLmdb(mdb_env_sync(env_, /*force=*/1)); }

  Status ReadAll(const Visit& visit) override {
    Txn txn;
    RETURN_IF_ERROR(txn.Begin(env_, MDB_RDONLY));
    MDB_cursor* raw = nullptr;
    RETURN_IF_ERROR(FromLmdb(mdb_cursor_open(txn.get(), dbi_, &raw)));
    const std::unique_ptr<MDB_cursor, decltype(&mdb_cursor_close)> cursor(raw, &mdb_cursor_close);
    MDB_val key{}, value{};
    int error = mdb_cursor_get(raw, &key, &value, MDB_FIRST);
    for (; error == 0; error = mdb_cursor_get(raw, &key, &value, MDB_NEXT)) {
      const std::string_view name = BytesOf(key);
      if (name.front() != kDeliveryLetter) continue;
      ASSIGN_OR_RETURN(const std::string_view event, EventOfPeer(BytesOf(value)));
      visit(name.substr(1), event);
    }
    return error == MDB_NOTFOUND ? absl::OkStatus() : FromLmdb(error);
  }

 private:
  Status Put(Txn& txn, std::string_view key_bytes, std::string_view value_bytes) {
    MDB_val key = ValueOf(key_bytes), value = ValueOf(value_bytes);
    return FromLmdb(mdb_put(txn.get(), dbi_, &key, &value, 0));
  }

  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  SyncTimer timer_;
  std::string key_, value_;
};

StatusOr<std::unique_ptr<RecoveryStore>> OpenLmdb(const RecoverySetup& setup) {
  auto store = std::make_unique<LmdbStore>();
  RETURN_IF_ERROR(store->Open(setup));
  return std::unique_ptr<RecoveryStore>(std::move(store));
}

}  // namespace

std::vector<RecoveryKind> LmdbKinds() {
  return {{.name = fmt::format("LMDB {}.{}.{}", MDB_VERSION_MAJOR, MDB_VERSION_MINOR,
                               MDB_VERSION_PATCH),
           .settings = "MDB_WRITEMAP, MDB_NOSYNC, a transaction for each cycle, mdb_env_sync each "
                       "100 ms; not safe against power cuts in between; its map counts as resident "
                       "memory; read by a cursor",
           .open = &OpenLmdb}};
}

}  // namespace holdfast::bench
