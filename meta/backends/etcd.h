// etcd's v3 JSON gateway: operations to requests, answers to results. PURE. Speaks 3.4 as Debian
// packages it and takes the shapes of 3.5 and 3.6; whatever is not understood is an unknown
// outcome.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/base/json.h"
#include "journal/base/status.h"
#include "meta/http/message.h"
#include "meta/mvcc_types.h"

namespace holdfast {

struct EtcdCall {
  std::string_view path;  // behind the prefix of the version, e.g. "/kv/range"
  std::string body;
};

EtcdCall EtcdRange(const MvccRead& read);
EtcdCall EtcdTxn(const MvccTxn& txn);
EtcdCall EtcdLeaseGrant(int64_t ttl_seconds);  // the server chooses the id
EtcdCall EtcdLeaseKeepAlive(uint64_t id);
EtcdCall EtcdLeaseRevoke(uint64_t id);
EtcdCall EtcdAuthenticate(std::string_view user, std::string_view password);

struct EtcdWatchRequest {
  uint64_t id = 0;  // at least 1; frames carry it
  KeyRange range;
  uint64_t from = 0;
};
// One body for all of them; the server is asked to say when it has caught up.
std::string EtcdWatchBody(const std::vector<EtcdWatchRequest>& watches);

struct EtcdHeader {
  uint64_t cluster_id = 0;
  uint64_t revision = 0;
};

// The object that a gateway answered with.
// Errors: as Refuse()d where etcd says why it refused, and
//         kUnauthenticated      no token, or one that it does not know (any more)
//         kPermissionDenied     the user may not
//         kResourceExhausted    kNotWritten: no space, or too many requests
//         kFailedPrecondition   no such path or service here, or not in this state
//         kInvalidArgument      it does not take the request
//         kUnavailable          kUnknownOutcome: it may have happened
StatusOr<Json> EtcdAnswer(const HttpResponse& response);

// What stands in such an object. Errors: kUnavailable, kUnknownOutcome  it is not of that shape
StatusOr<EtcdHeader> ReadEtcdHeader(const Json& answer);
StatusOr<MvccReadResult> ReadEtcdRange(const Json& answer);
// Needs: `txn` is the one that was sent; its branches say what the answers are.
StatusOr<MvccTxnResult> ReadEtcdTxn(const Json& answer, const MvccTxn& txn);
struct EtcdLease {
  uint64_t id = 0;
  int64_t ttl_seconds = 0;  // 0: it has ended
};
StatusOr<EtcdLease> ReadEtcdLease(const Json& answer);
// A keep-alive is answered by a stream of one object.
StatusOr<EtcdLease> ReadEtcdKeptLease(const Json& answer);
StatusOr<std::string> ReadEtcdToken(const Json& answer);
// Whether `refusal` says that the server wants no users.
bool SaysAuthIsOff(const Status& refusal);

struct EtcdWatchFrame {
  std::optional<uint64_t> id;  // none: of the whole stream
  bool created = false;
  bool canceled = false;
  uint64_t compact_revision = 0;  // canceled: because the start was compacted up to here
  std::string cancel_reason;
  bool progress = false;  // all that there was has been sent
  std::vector<MvccEvent> events;
};
// One line of the answer to a watch.
// Errors: as EtcdAnswer, where the line is an error; kUnavailable: not of that shape
StatusOr<EtcdWatchFrame> ReadEtcdWatchFrame(std::string_view line);

}  // namespace holdfast
