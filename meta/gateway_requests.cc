#include "meta/gateway_requests.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast {
namespace {

constexpr Json::Limits kRequestLimits{
    .bytes_max = size_t{4} << 20, .depth_max = 32, .values_max = 100'000};
constexpr std::string_view kNoBound("\0", 1);

StatusOr<std::string> Bytes(const Json& object, std::string_view name) {
  const Json* const member = GatewayMember(object, name);
  if (member == nullptr) return std::string();
  if (member->string() == nullptr) return Invalid("json: {} is no text", name);
  std::optional<std::string> bytes = FromBase64(*member->string());
  if (!bytes.has_value()) return Invalid("illegal base64 data in {}", name);
  return *std::move(bytes);
}

// Revisions and sizes: what is negative is none.
StatusOr<uint64_t> Count(const Json& object, std::string_view name) {
  ASSIGN_OR_RETURN(const int64_t number, ReadGatewayNumber(object, name));
  return number < 0 ? 0 : static_cast<uint64_t>(number);
}

// A value of an enumeration is its name or its number.
template <size_t kCount>
StatusOr<size_t> Choice(const Json& object, std::string_view name,
                        const std::array<std::string_view, kCount>& names) {
  const Json* const member = GatewayMember(object, name);
  if (member == nullptr) return size_t{0};
  if (const auto number = member->unsigned_integer(); number.has_value() && *number < kCount) {
    return static_cast<size_t>(*number);
  }
  if (member->string() != nullptr) {
    const auto found = std::ranges::find(names, *member->string());
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  return Invalid("unknown value for {}", name);
}

StatusOr<KeyRange> Range(const Json& request) {
  ASSIGN_OR_RETURN(std::string key, Bytes(request, "key"));
  ASSIGN_OR_RETURN(std::string end, Bytes(request, "range_end"));
  if (key.empty()) return Refuse(MvccRefusal::kEmptyKey);
  if (end.empty()) return KeyRange::Only(key);
  if (end == kNoBound) return KeyRange{.begin = std::move(key), .end = {}};
  if (end <= key) end = key;  // Nothing is in it.
  return KeyRange{.begin = std::move(key), .end = std::move(end)};
}

StatusOr<MvccCompare> ReadCompare(const Json& request) {
  constexpr std::array<std::string_view, 5> kTargets = {"VERSION", "CREATE", "MOD", "VALUE",
                                                        "LEASE"};
  constexpr std::array<std::string_view, 5> kMembers = {"version", "create_revision",
                                                        "mod_revision", "value", "lease"};
  constexpr std::array<std::string_view, 4> kOps = {"EQUAL", "GREATER", "LESS", "NOT_EQUAL"};
  MvccCompare compare;
  ASSIGN_OR_RETURN(compare.range, Range(request));
  ASSIGN_OR_RETURN(const size_t target, Choice(request, "target", kTargets));
  ASSIGN_OR_RETURN(const size_t op, Choice(request, "result", kOps));
  compare.target = static_cast<MvccCompare::Target>(target);
  compare.op = static_cast<MvccCompare::Op>(op);
  if (compare.target == MvccCompare::Target::kValue) {
    ASSIGN_OR_RETURN(compare.value, Bytes(request, "value"));
  } else {
    ASSIGN_OR_RETURN(compare.number, ReadGatewayNumber(request, kMembers[target]));
  }
  return compare;
}

StatusOr<MvccOp> ReadOp(const Json& request) {
  if (const Json* const range = GatewayMember(request, "request_range"); range != nullptr) {
    ASSIGN_OR_RETURN(GatewayRange read, ReadGatewayRange(*range));
    return MvccOp::Read(std::move(read.read));
  }
  if (const Json* const put = GatewayMember(request, "request_put"); put != nullptr) {
    return ReadGatewayPut(*put);
  }
  if (const Json* const erase = GatewayMember(request, "request_delete_range"); erase != nullptr) {
    return ReadGatewayDelete(*erase);
  }
  if (const Json* const txn = GatewayMember(request, "request_txn"); txn != nullptr) {
    MvccOp op{.kind = MvccOp::Kind::kTxn};
    ASSIGN_OR_RETURN(MvccTxn nested, ReadGatewayTxn(*txn));
    op.branches.push_back(std::move(nested));
    return op;
  }
  return Refuse(MvccRefusal::kEmptyKey);
}

}  // namespace

StatusOr<std::optional<Json>> TakeGatewayObject(std::string_view& body) {
  const size_t begin = body.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return std::optional<Json>();
  // To the bracket that closes the first one; what is inside is the parser's affair.
  size_t depth = 0;
  bool in_string = false;
  for (size_t at = begin; at < body.size(); ++at) {
    const char c = body[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && depth > 0 && --depth == 0) {
      ASSIGN_OR_RETURN(Json json, Json::Parse(body.substr(begin, at + 1 - begin), kRequestLimits));
      if (json.object() == nullptr) return Invalid("json: the request is no object");
      body.remove_prefix(at + 1);
      return std::optional<Json>(std::move(json));
    }
    if (depth == 0) return Invalid("json: the request is no object");
  }
  return Invalid("unexpected EOF");
}

StatusOr<Json> ReadGatewayRequest(std::string_view body) {
  ASSIGN_OR_RETURN(std::optional<Json> json, TakeGatewayObject(body));
  if (!json.has_value()) return Json::Parse("{}");
  return *std::move(json);
}

StatusOr<int64_t> ReadGatewayNumber(const Json& request, std::string_view name) {
  const Json* const member = GatewayMember(request, name);
  if (member == nullptr) return 0;
  if (const auto number = member->integer(); number.has_value()) return *number;
  int64_t number = 0;
  if (const std::string* const text = member->string(); text != nullptr) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error == std::errc() && end == text->data() + text->size()) return number;
  }
  return Invalid("json: {} is no number of 64 bits", name);
}

StatusOr<bool> ReadGatewayFlag(const Json& request, std::string_view name) {
  const Json* const member = GatewayMember(request, name);
  if (member == nullptr) return false;
  if (member->boolean() == nullptr) return Invalid("json: {} is neither true nor false", name);
  return *member->boolean();
}

StatusOr<GatewayRange> ReadGatewayRange(const Json& request) {
  constexpr std::array<std::string_view, 3> kOrders = {"NONE", "ASCEND", "DESCEND"};
  constexpr std::array<std::string_view, 5> kTargets = {"KEY", "VERSION", "CREATE", "MOD", "VALUE"};
  GatewayRange range;
  ASSIGN_OR_RETURN(const size_t order, Choice(request, "sort_order", kOrders));
  ASSIGN_OR_RETURN(const size_t target, Choice(request, "sort_target", kTargets));
  range.order = static_cast<GatewayRange::Order>(order);
  range.target = static_cast<GatewayRange::Target>(target);
  // A target without an order sorts upwards.
  if (order == 0 && target != 0) range.order = GatewayRange::Order::kAscend;
  ASSIGN_OR_RETURN(range.keys_only, ReadGatewayFlag(request, "keys_only"));
  ASSIGN_OR_RETURN(range.count_only, ReadGatewayFlag(request, "count_only"));
  ASSIGN_OR_RETURN(range.limit, Count(request, "limit"));
  ASSIGN_OR_RETURN(range.mod_min, Count(request, "min_mod_revision"));
  ASSIGN_OR_RETURN(range.mod_max, Count(request, "max_mod_revision"));
  ASSIGN_OR_RETURN(range.create_min, Count(request, "min_create_revision"));
  ASSIGN_OR_RETURN(range.create_max, Count(request, "max_create_revision"));
  ASSIGN_OR_RETURN(range.read.range, Range(request));
  ASSIGN_OR_RETURN(range.read.revision, Count(request, "revision"));
  // What is sorted or sifted is cut off afterwards.
  const bool whole = range.order != GatewayRange::Order::kNone || range.mod_min != 0 ||
                     range.mod_max != 0 || range.create_min != 0 || range.create_max != 0;
  range.read.limit = whole ? 0 : range.limit;
  range.read.count_only = range.count_only;
  return range;
}

StatusOr<MvccOp> ReadGatewayPut(const Json& request) {
  MvccOp op{.kind = MvccOp::Kind::kPut};
  ASSIGN_OR_RETURN(op.key, Bytes(request, "key"));
  ASSIGN_OR_RETURN(op.value, Bytes(request, "value"));
  ASSIGN_OR_RETURN(const int64_t lease, ReadGatewayNumber(request, "lease"));
  ASSIGN_OR_RETURN(op.keep_value, ReadGatewayFlag(request, "ignore_value"));
  ASSIGN_OR_RETURN(op.keep_lease, ReadGatewayFlag(request, "ignore_lease"));
  ASSIGN_OR_RETURN(op.previous, ReadGatewayFlag(request, "prev_kv"));
  if (lease < 0) return Refuse(MvccRefusal::kLeaseNotFound);  // No id is.
  op.lease = static_cast<uint64_t>(lease);
  return op;
}

StatusOr<MvccOp> ReadGatewayDelete(const Json& request) {
  MvccOp op{.kind = MvccOp::Kind::kDelete};
  ASSIGN_OR_RETURN(op.erased, Range(request));
  ASSIGN_OR_RETURN(op.previous, ReadGatewayFlag(request, "prev_kv"));
  return op;
}

StatusOr<MvccTxn> ReadGatewayTxn(const Json& request) {
  MvccTxn txn;
  ASSIGN_OR_RETURN(const Json::Array* const compares, GatewayList(request, "compare"));
  ASSIGN_OR_RETURN(const Json::Array* const success, GatewayList(request, "success"));
  ASSIGN_OR_RETURN(const Json::Array* const failure, GatewayList(request, "failure"));
  for (const Json& json : *compares) {
    ASSIGN_OR_RETURN(MvccCompare compare, ReadCompare(json));
    txn.compares.push_back(std::move(compare));
  }
  for (const Json& json : *success) {
    ASSIGN_OR_RETURN(MvccOp op, ReadOp(json));
    txn.success.push_back(std::move(op));
  }
  for (const Json& json : *failure) {
    ASSIGN_OR_RETURN(MvccOp op, ReadOp(json));
    txn.failure.push_back(std::move(op));
  }
  return txn;
}

StatusOr<GatewayWatchRequest> ReadGatewayWatch(const Json& request) {
  GatewayWatchRequest result;
  result.progress = GatewayMember(request, "progress_request") != nullptr;
  if (const Json* const cancel = GatewayMember(request, "cancel_request"); cancel != nullptr) {
    ASSIGN_OR_RETURN(result.cancel, ReadGatewayNumber(*cancel, "watch_id"));
  }
  const Json* const create = GatewayMember(request, "create_request");
  if (create == nullptr) return result;
  GatewayWatchCreate& watch = result.create.emplace();
  ASSIGN_OR_RETURN(std::string key, Bytes(*create, "key"));
  ASSIGN_OR_RETURN(const std::string end, Bytes(*create, "range_end"));
  if (key.empty()) key = kNoBound;
  if (end.empty()) {
    watch.range = KeyRange::Only(key);
  } else if (end == kNoBound) {
    watch.range = KeyRange{.begin = key, .end = {}};
  } else if (key < end) {
    watch.range = KeyRange{.begin = key, .end = end};
  }
  ASSIGN_OR_RETURN(watch.from, Count(*create, "start_revision"));
  ASSIGN_OR_RETURN(const int64_t id, ReadGatewayNumber(*create, "watch_id"));
  if (id != 0) watch.id = id;
  ASSIGN_OR_RETURN(watch.previous, ReadGatewayFlag(*create, "prev_kv"));
  ASSIGN_OR_RETURN(watch.progress_notify, ReadGatewayFlag(*create, "progress_notify"));
  ASSIGN_OR_RETURN(const Json::Array* const filters, GatewayList(*create, "filters"));
  for (const Json& filter : *filters) {
    const std::string* const name = filter.string();
    const auto number = filter.unsigned_integer();
    if ((name != nullptr && *name == "NOPUT") || number == 0) {
      watch.no_puts = true;
    } else if ((name != nullptr && *name == "NODELETE") || number == 1) {
      watch.no_deletes = true;
    } else {
      return Invalid("unknown value for filters");
    }
  }
  return result;
}

const Json* GatewayMember(const Json& request, std::string_view name) {
  if (const Json* const member = request.Find(name); member != nullptr) {
    return member->is_null() ? nullptr : member;
  }
  std::string camel;
  for (size_t at = 0; at < name.size(); ++at) {
    const bool joint = name[at] == '_' && at + 1 < name.size();
    camel += joint ? static_cast<char>(name[++at] - 'a' + 'A') : name[at];
  }
  const Json* const member = request.Find(camel);
  return member == nullptr || member->is_null() ? nullptr : member;
}

StatusOr<const Json::Array*> GatewayList(const Json& request, std::string_view name) {
  static const Json::Array none;
  const Json* const member = GatewayMember(request, name);
  if (member == nullptr) return &none;
  if (member->array() == nullptr) return Invalid("json: {} is no array", name);
  return member->array();
}

}  // namespace holdfast
