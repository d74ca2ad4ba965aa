// What clients ask of the embedded Meta server: etcd's v3 JSON gateway, requests to operations.
// PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "journal/base/json.h"
#include "journal/base/status.h"
#include "meta/mvcc_types.h"

namespace holdfast {

// The first object of `body`, which is then behind it; none: nothing but white space is left.
// Errors: kInvalidArgument  no whole object; kResourceExhausted  it is too deep or too large
StatusOr<std::optional<Json>> TakeGatewayObject(std::string_view& body);
// A unary request: its first object, whatever follows. An empty body is an empty object.
StatusOr<Json> ReadGatewayRequest(std::string_view body);

// Errors of all that follow: kInvalidArgument, or Refuse()d

// Names come in snake_case or camelCase; what is null is not there.
const Json* GatewayMember(const Json& request, std::string_view name);
// The elements; none where there is no such member.
StatusOr<const Json::Array*> GatewayList(const Json& request, std::string_view name);
// A range as asked for; `read` is what to read for it.
struct GatewayRange {
  MvccRead read;
  bool keys_only = false;
  bool count_only = false;
  size_t limit = 0;
  enum class Order { kNone, kAscend, kDescend } order = Order::kNone;
  enum class Target { kKey, kVersion, kCreate, kMod, kValue } target = Target::kKey;
  uint64_t mod_min = 0, mod_max = 0, create_min = 0, create_max = 0;  // 0: no bound
};
StatusOr<GatewayRange> ReadGatewayRange(const Json& request);
StatusOr<MvccOp> ReadGatewayPut(const Json& request);
StatusOr<MvccOp> ReadGatewayDelete(const Json& request);
StatusOr<MvccTxn> ReadGatewayTxn(const Json& request);
StatusOr<int64_t> ReadGatewayNumber(const Json& request, std::string_view name);
StatusOr<bool> ReadGatewayFlag(const Json& request, std::string_view name);

struct GatewayWatchCreate {
  std::optional<int64_t> id;      // none: the server chooses
  std::optional<KeyRange> range;  // none: an empty one
  uint64_t from = 0;              // 0: from now on
  bool previous = false, no_puts = false, no_deletes = false;
  bool progress_notify = false;  // told now and then that there was nothing
};
struct GatewayWatchRequest {
  std::optional<GatewayWatchCreate> create;
  std::optional<int64_t> cancel;
  bool progress = false;
};
StatusOr<GatewayWatchRequest> ReadGatewayWatch(const Json& request);

}  // namespace holdfast
