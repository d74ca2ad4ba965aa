// What the embedded Meta server answers: results, watch frames and refusals as etcd 3.4 words them.
// PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/base/json.h"
#include "journal/base/status.h"
#include "meta/gateway_requests.h"
#include "meta/http/message.h"
#include "meta/mvcc_types.h"

namespace holdfast {

// Who answers.
struct GatewayIdentity {
  uint64_t cluster_id = 0;
  uint64_t member_id = 0;
};

// Each is the text of one object.
std::string GatewayHeader(const GatewayIdentity& identity, uint64_t revision);
std::string GatewayRangeAnswer(const GatewayIdentity& identity, uint64_t revision,
                               const GatewayRange& range, const MvccReadResult& read);
std::string GatewayPutAnswer(const GatewayIdentity& identity, const MvccTxnResult& result);
std::string GatewayDeleteAnswer(const GatewayIdentity& identity, const MvccTxnResult& result);
// `request` is the one that the result is of.
std::string GatewayTxnAnswer(const GatewayIdentity& identity, const Json& request,
                             const MvccTxnResult& result);
struct GatewayLease {
  uint64_t id = 0;
  int64_t ttl_seconds = 0;      // 0: left out
  int64_t granted_seconds = 0;  // 0: left out
  std::vector<std::string> keys;
};
std::string GatewayLeaseAnswer(const GatewayIdentity& identity, uint64_t revision,
                               const GatewayLease& lease);

std::string GatewayLeaseList(const GatewayIdentity& identity, uint64_t revision,
                             const std::vector<uint64_t>& leases);
std::string GatewayMemberList(const GatewayIdentity& identity, std::string_view name,
                              std::string_view url);
std::string GatewayServerStatus(const GatewayIdentity& identity, uint64_t revision,
                                std::string_view version);

// A line of a watch or a keep-alive: {"result":…} and a line feed.
std::string GatewayResultLine(std::string_view answer);
struct GatewayWatchFrame {
  int64_t id = 0;
  bool created = false, canceled = false;
  uint64_t compact_revision = 0;
  std::string_view cancel_reason;
};
std::string GatewayWatchLine(const GatewayIdentity& identity, uint64_t revision,
                             const GatewayWatchFrame& frame, const std::vector<MvccEvent>& events,
                             const GatewayWatchCreate& watch);

HttpResponse GatewayAnswer(std::string body);
// Status, code and text that etcd would say it with.
HttpResponse GatewayRefusal(const Status& status);
// What a stream of requests that begins with nonsense gets.
HttpResponse GatewayStreamRefusal(const Status& status);

}  // namespace holdfast
