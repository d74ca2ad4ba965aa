// MetaStore: small values that several instances share, with revisions, leases and watches. The
// cluster's own etcd (or Nacos) does the agreeing; Holdfast holds no consensus protocol.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/detail.h"

namespace holdfast {

// The five results of every call. They travel as absl::Status; MetaResultOf() tells them apart.
enum class MetaResult {
  kOk,
  kConflict,  // kAborted: the condition did not hold; nothing was written
  kNotFound,  // kNotFound: no such key or lease (an answer of the Meta, never "unreachable")
  kUnknown,   // kUnavailable, kUnknownOutcome: sent, but not answered. It may have happened: read
              // back and look for the request id; never send it again blindly
  kUnavailable,  // any other error: it has not happened
};

inline MetaResult MetaResultOf(const absl::Status& status) {
  if (status.ok()) return MetaResult::kOk;
  if (absl::IsAborted(status)) return MetaResult::kConflict;
  if (absl::IsNotFound(status)) return MetaResult::kNotFound;
  return DetailOf(status) == Detail::kUnknownOutcome ? MetaResult::kUnknown
                                                     : MetaResult::kUnavailable;
}

struct MetaEntry {
  std::string key;
  std::string value;
  uint64_t create_revision = 0;  // of the write that made the key
  uint64_t revision = 0;         // of the newest write
  uint64_t lease = 0;            // it goes with this lease; 0: none
  std::string request_id;        // of the newest write

  bool operator==(const MetaEntry&) const = default;
};

// What goes with every write.
struct MetaWrite {
  std::string_view
      request_id;      // unique per write: an UNKNOWN one is recognised by it when read back
  uint64_t lease = 0;  // 0: the entry stays until it is deleted
};

struct MetaList {
  std::vector<MetaEntry> entries;  // sorted by key, complete
  uint64_t revision = 0;  // all as of this revision; a watch from revision + 1 misses nothing
};

struct MetaEvent {
  enum class Kind {
    kPut,
    kDelete,  // deleted, or its lease ended; only key and revision of `entry` are set
    kResync,  // changes were missed (history compacted, stream lost): List again, then watch from
              // there
  };
  Kind kind = Kind::kPut;
  MetaEntry entry;
};

struct MetaLease {
  uint64_t id = 0;
  // How long it is held at most, counted from before the request was sent: the owner stops by its
  // own monotonic clock, never by the answer of a later call.
  absl::Duration ttl;
};

// Ends the watch when destroyed; then no callback runs any more.
class MetaWatch {
 public:
  virtual ~MetaWatch() = default;
};

// Keys and values are arbitrary bytes. Revisions are one sequence over all keys and only rise.
// Threads: any, except that a watch callback must not destroy its own watch.
// Durable: what a call answered OK is as durable as the backend: memory (not at all), the embedded
//          Meta (synced in the journal), a remote Meta (its quorum).
// Errors:  as MetaResult, besides those named
class MetaStore {
 public:
  virtual ~MetaStore() = default;

  // Linearizable: never older than a write that was answered before the call.
  virtual absl::StatusOr<MetaEntry> Get(std::string_view key) = 0;
  // Every entry whose key starts with `prefix`, at one revision.
  virtual absl::StatusOr<MetaList> List(std::string_view prefix) = 0;

  // The writes return the new revision. A lease that is unknown or has ended is kNotFound.
  virtual absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                                       const MetaWrite& write) = 0;
  // CONFLICT if the key exists.
  virtual absl::StatusOr<uint64_t> PutIfAbsent(std::string_view key, std::string_view value,
                                               const MetaWrite& write) = 0;
  // CONFLICT unless the key exists and stands at `revision`.
  virtual absl::StatusOr<uint64_t> CompareAndSet(std::string_view key, uint64_t revision,
                                                 std::string_view value,
                                                 const MetaWrite& write) = 0;
  // NOT_FOUND if there is no such key.
  virtual absl::StatusOr<uint64_t> Delete(std::string_view key) = 0;
  // CONFLICT unless the key stands at `revision`; NOT_FOUND if there is none.
  virtual absl::StatusOr<uint64_t> DeleteAt(std::string_view key, uint64_t revision) = 0;

  // Calls back for every change under `prefix` from `from_revision` on, in order of revision, one
  // at a time, on a thread of the store; each change once, or kResync instead of what was missed.
  virtual absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(
      std::string_view prefix, uint64_t from_revision,
      std::function<void(const MetaEvent&)> callback) = 0;

  // A lease is not a lock: whatever its owner writes must be conditional too.
  virtual absl::StatusOr<MetaLease> GrantLease(absl::Duration ttl) = 0;
  // Holds the lease for another ttl. NOT_FOUND: it has ended, and its entries with it.
  virtual absl::StatusOr<MetaLease> KeepAlive(uint64_t lease) = 0;
  virtual absl::Status RevokeLease(uint64_t lease) = 0;
};

}  // namespace holdfast
