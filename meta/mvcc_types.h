// The vocabulary of the embedded Meta: entries with revisions, transactions, their results, and the
// changes that they come down to. As etcd's, without its wire.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "journal/base/status.h"

namespace holdfast {

// Why the Meta refused a request. Nothing was changed.
enum class MvccRefusal : int {
  kNone = 0,
  kEmptyKey = 1,
  kKeyNotFound = 2,   // a put that keeps the value or the lease of a key that is not there
  kDuplicateKey = 3,  // one branch of a transaction changes a key twice
  kTooManyOps = 4,
  kTooLarge = 5,
  kCompacted = 6,
  kFutureRevision = 7,
  kLeaseNotFound = 8,
  kLeaseExists = 9,
  kLeaseTtlTooLarge = 10,
  kValueGiven = 11,  // a put that keeps the value brings one
  kLeaseGiven = 12,  // a put that keeps the lease names one
};
// The refusal as a Status: kInvalidArgument, kNotFound, kAlreadyExists, kResourceExhausted or
// kAborted.
Status Refuse(MvccRefusal refusal);
// Which one it was; kNone: another error.
MvccRefusal RefusalOf(const Status& status);

// One version of a key. Immutable.
struct MvccEntry {
  std::string key;
  std::string value;
  uint64_t create_revision = 0;
  uint64_t mod_revision = 0;
  uint64_t version = 0;  // 0: this is the deletion of the key
  uint64_t lease = 0;

  bool deleted() const { return version == 0; }
  bool operator==(const MvccEntry&) const = default;
};
// Shared by the state, its history and those who read; the last of them frees it.
using MvccEntryPtr = std::shared_ptr<const MvccEntry>;

// Keys from `begin` up to, not including, `end`; an empty end is no bound.
struct KeyRange {
  std::string begin;
  std::string end;

  static KeyRange Only(std::string_view key);
  static KeyRange Prefix(std::string_view prefix);
  static KeyRange All() { return {}; }
  bool Holds(std::string_view key) const { return key >= begin && (end.empty() || key < end); }
  bool operator==(const KeyRange&) const = default;
};

struct MvccRead {
  KeyRange range;
  uint64_t revision = 0;  // 0: the newest
  size_t limit = 0;       // 0: none
  bool count_only = false;
};
struct MvccReadResult {
  std::vector<MvccEntryPtr> entries;  // by key
  uint64_t count = 0;                 // in the range, whatever the limit
  bool more = false;
};

struct MvccCompare {
  enum class Target { kVersion, kCreate, kMod, kValue, kLease };
  enum class Op { kEqual, kGreater, kLess, kNotEqual };
  // Every live key in it must fulfil the compare. One key that is not there compares as zeros; its
  // value compares false.
  KeyRange range;
  Target target = Target::kVersion;
  Op op = Op::kEqual;
  int64_t number = 0;
  std::string value;  // kValue
};

struct MvccTxn;
struct MvccOp {
  enum class Kind { kRead, kPut, kDelete, kTxn };
  Kind kind = Kind::kRead;
  MvccRead read;
  // kPut
  std::string key, value;
  uint64_t lease = 0;
  bool keep_value = false, keep_lease = false;
  KeyRange erased;                // kDelete
  bool previous = false;          // kPut, kDelete: answer with what was there
  std::vector<MvccTxn> branches;  // kTxn: exactly one

  static MvccOp Read(MvccRead read);
  static MvccOp Put(std::string_view key, std::string_view value, uint64_t lease = 0);
  static MvccOp Delete(KeyRange range);
};
struct MvccTxn {
  std::vector<MvccCompare> compares;
  std::vector<MvccOp> success, failure;
};

struct MvccOpResult {
  MvccOp::Kind kind = MvccOp::Kind::kRead;
  MvccReadResult read;
  std::vector<MvccEntryPtr> previous;  // where asked for; a put has one at most
  uint64_t deleted = 0;
  bool succeeded = false;             // kTxn
  std::vector<MvccOpResult> results;  // kTxn
};
struct MvccTxnResult {
  bool succeeded = false;
  std::vector<MvccOpResult> results;
  // Of the store behind it: the transaction's own if it changed something.
  uint64_t revision = 0;
};

// What state comes about from; each is a record of the journal. Absolute: applied again, or after a
// newer one of its key, it changes nothing.
struct MvccPut {
  MvccEntryPtr entry;
};
struct MvccDelete {
  std::string key;
  uint64_t revision = 0;
};
struct MvccLeaseGrant {
  uint64_t id = 0;
  absl::Duration ttl;
};
struct MvccLeaseEnd {
  uint64_t id = 0;
};
// The newest revision is at least this.
struct MvccRevision {
  uint64_t revision = 0;
};
using MvccChange = std::variant<MvccPut, MvccDelete, MvccLeaseGrant, MvccLeaseEnd, MvccRevision>;

struct MvccEvent {
  MvccEntryPtr now;     // deleted(): only key and mod_revision are set
  MvccEntryPtr before;  // null if the key was not there
};

struct MvccLeaseInfo {
  uint64_t id = 0;
  absl::Duration granted;
  absl::Duration left;
  std::vector<std::string> keys;  // sorted
};

}  // namespace holdfast
