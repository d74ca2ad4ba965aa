// MetaStore: small values that several instances share, with revisions, transactions, leases and
// watches. The cluster's own etcd (or Nacos) does the agreeing; Holdfast holds no consensus
// protocol.
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
  kConflict,  // kAborted, kConflict: a condition did not hold; nothing was written
  kNotFound,  // kNotFound: no such key or lease (an answer of the Meta, never "unreachable")
  kUnknown,   // kUnavailable, kUnknownOutcome: sent, but not answered. It may have happened, or may
              // yet: read back and look for the request id; never send it again blindly
  kUnavailable,  // any other error: it has not happened and will not
};

inline MetaResult MetaResultOf(const absl::Status& status) {
  if (status.ok()) return MetaResult::kOk;
  if (absl::IsAborted(status)) return MetaResult::kConflict;
  if (absl::IsNotFound(status)) return MetaResult::kNotFound;
  return DetailOf(status) == Detail::kUnknownOutcome ? MetaResult::kUnknown
                                                     : MetaResult::kUnavailable;
}

// What every backend takes; more is kResourceExhausted (kLimit), and nothing was written.
inline constexpr size_t kMetaKeyBytesMax = 64 * 1024;
inline constexpr size_t kMetaWriteBytesMax = 1536 * 1024;  // keys and values of one write together
inline constexpr size_t kMetaChangesMax = 128;  // of one transaction; conditions are counted apart

struct MetaEntry {
  std::string key;
  std::string value;
  uint64_t create_revision = 0;  // of the write that made the key
  uint64_t revision = 0;         // of the newest write
  uint64_t version = 0;          // writes since it was made, that one included
  uint64_t lease = 0;            // it goes with this lease; 0: none
  std::string request_id;        // of the newest write

  bool operator==(const MetaEntry&) const = default;
};

// What goes with every call.
struct MetaCall {
  // The call returns by then: a read with kUnavailable, a write that was sent with UNKNOWN.
  absl::Duration timeout = absl::Seconds(5);
};

// What goes with every write.
struct MetaWrite {
  // Unique per write, up to 255 bytes, kept with each entry that the write puts: an UNKNOWN one is
  // recognised by it when read back. Empty: none.
  std::string_view request_id;
  uint64_t lease = 0;  // 0: the entry stays until it is deleted
  absl::Duration timeout = absl::Seconds(5);
};

// What a transaction asks of one key before it changes anything.
struct MetaCondition {
  enum class Must {
    kBeAbsent,
    kExist,
    kStandAt,  // exist, and its newest write is `revision`
  };
  std::string key;
  Must must = Must::kStandAt;
  uint64_t revision = 0;
};

struct MetaChange {
  enum class Kind { kPut, kDelete };
  Kind kind = Kind::kPut;
  std::string key;
  std::string value;   // kPut
  uint64_t lease = 0;  // kPut; 0: none
};

// All changes or none, at one revision. A key is changed at most once.
struct MetaTransaction {
  std::vector<MetaCondition> conditions;  // all must hold
  std::vector<MetaChange> changes;        // deleting a key that is not there changes nothing
};

// Which part of a prefix to list.
struct MetaPage {
  size_t limit = 0;        // entries at most; 0: no limit
  std::string_view after;  // only keys behind this one: the last one of the page before
  // As of this revision: the one of the first page, so that all pages are one snapshot. 0: newest.
  uint64_t revision = 0;
  absl::Duration timeout = absl::Seconds(5);
};

struct MetaList {
  std::vector<MetaEntry> entries;  // sorted by key (as bytes), without a gap
  bool more = false;               // the limit cut it: the next page is {.after, .revision}
  uint64_t revision = 0;  // all as of this revision; a watch from revision + 1 misses nothing
};

struct MetaEvent {
  enum class Kind {
    kPut,
    kDelete,  // deleted, or its lease ended; only key and revision of `entry` are set
  };
  Kind kind = Kind::kPut;
  MetaEntry entry;
};

// What a watch calls back with.
struct MetaNotice {
  enum class Kind {
    kChanges,  // `events`, all of them of one or several whole revisions, in their order
    kResync,   // changes were missed (history compacted, too slow, stream lost): List again, then
               // watch from there. The last notice of its watch
  };
  Kind kind = Kind::kChanges;
  std::vector<MetaEvent> events;
  // kChanges: every change under the prefix up to here has been called back.
  // kResync:  the oldest revision that a new watch could start from, or 0 where that is unknown.
  uint64_t revision = 0;
  absl::Status reason;  // kResync: why, for people
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

  // How long ago it was last known that no change was missing. In process: next to nothing. Over a
  // network it grows while the backend cannot be reached; the watch resumes by itself.
  // Threads: any, the callback included.
  virtual absl::Duration Staleness() const = 0;
};

// Keys and values are arbitrary bytes; a key is not empty. Revisions are one sequence over all keys
// and only rise, across restarts too.
// Threads: any, except that a watch callback must not destroy its own watch, and must not block for
//          long: a watch that falls behind gets kResync.
// Durable: what a call answered OK, and what a read or a watch showed, is as durable as the
//          backend: memory (not at all), the embedded Meta (synced in the journal), a remote Meta
//          (its quorum).
// Errors:  as MetaResult, besides those named; kInvalidArgument  an empty key, a key that one
//          transaction changes twice, a request id that is too long
class MetaStore {
 public:
  virtual ~MetaStore() = default;

  // Linearizable: never older than a write that was answered before the call.
  virtual absl::StatusOr<MetaEntry> Get(std::string_view key, const MetaCall& call) = 0;
  // The entries whose key starts with `prefix` (empty: all), at one revision. Never partly: a page
  // that could not be read whole is an error.
  // CONFLICT if page.revision was compacted, or is not reached yet: start again at 0.
  virtual absl::StatusOr<MetaList> List(std::string_view prefix, const MetaPage& page) = 0;

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
  // NOT_FOUND if there is no such key. An UNKNOWN delete is resolved by reading whether the key
  // still stands where it stood.
  virtual absl::StatusOr<uint64_t> Delete(std::string_view key, const MetaCall& call) = 0;
  // CONFLICT unless the key stands at `revision`; NOT_FOUND if there is none.
  virtual absl::StatusOr<uint64_t> DeleteAt(std::string_view key, uint64_t revision,
                                            const MetaCall& call) = 0;
  // CONFLICT unless all conditions hold. `write.request_id` goes into every put; `write.lease` is
  // not used, each change names its own. A transaction that changes nothing returns the revision
  // that it was decided at.
  virtual absl::StatusOr<uint64_t> Transact(const MetaTransaction& transaction,
                                            const MetaWrite& write) = 0;

  // Calls back for every change under `prefix` from `from_revision` (at least 1) on, in order of
  // revision, one call at a time, on a thread of the store; each change once, or kResync instead of
  // what was missed. A start that is compacted gives kResync at once.
  virtual absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(
      std::string_view prefix, uint64_t from_revision,
      std::function<void(const MetaNotice&)> callback, const MetaCall& call) = 0;

  // Grants a lease of at least `ttl` (a backend may round up: see MetaLease::ttl). An UNKNOWN one
  // ends by itself. A lease is not a lock: whatever its owner writes must be conditional too.
  virtual absl::StatusOr<MetaLease> GrantLease(absl::Duration ttl, const MetaCall& call) = 0;
  // Holds the lease for another ttl. NOT_FOUND: it has ended, and its entries with it.
  virtual absl::StatusOr<MetaLease> KeepAlive(uint64_t lease, const MetaCall& call) = 0;
  // Ends it now and deletes its entries, at one revision. NOT_FOUND: it had ended.
  virtual absl::Status RevokeLease(uint64_t lease, const MetaCall& call) = 0;
};

}  // namespace holdfast
