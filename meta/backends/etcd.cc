#include "meta/backends/etcd.h"

#include <array>
#include <charconv>
#include <memory>
#include <utility>

namespace holdfast {
namespace {

// Answers of a list may be large; the transport has its own limit.
constexpr Json::Limits kJsonLimits{
    .bytes_max = size_t{64} << 20, .depth_max = 64, .values_max = 4'000'000};

// ---- requests

std::string Decimal(uint64_t number) { return std::to_string(number); }

// etcd: no end means the one key, "\0" means no bound; and no key is empty.
void WriteRange(const KeyRange& range, JsonWriter& json) {
  const std::string_view no_bound("\0", 1);
  json.Field("key", Base64(range.begin.empty() ? no_bound : std::string_view(range.begin)));
  if (range == KeyRange::Only(range.begin)) return;
  json.Field("range_end", Base64(range.end.empty() ? no_bound : std::string_view(range.end)));
}

void WriteRead(const MvccRead& read, JsonWriter& json) {
  WriteRange(read.range, json);
  if (read.revision != 0) json.Field("revision", Decimal(read.revision));
  if (read.limit != 0) json.Field("limit", Decimal(read.limit));
  if (read.count_only) json.Field("count_only", true);
}

void WriteCompare(const MvccCompare& compare, JsonWriter& json) {
  constexpr std::array kTargets = {"VERSION", "CREATE", "MOD", "VALUE", "LEASE"};
  constexpr std::array kMembers = {"version", "create_revision", "mod_revision", "value", "lease"};
  constexpr std::array kOps = {"EQUAL", "GREATER", "LESS", "NOT_EQUAL"};
  const auto target = static_cast<size_t>(compare.target);
  json.BeginObject();
  WriteRange(compare.range, json);
  json.Field("target", kTargets[target]).Field("result", kOps[static_cast<size_t>(compare.op)]);
  json.Field(kMembers[target], compare.target == MvccCompare::Target::kValue
                                   ? Base64(compare.value)
                                   : std::to_string(compare.number));
  json.EndObject();
}

void WriteTxn(const MvccTxn& txn, JsonWriter& json);

void WriteOp(const MvccOp& op, JsonWriter& json) {
  json.BeginObject();
  switch (op.kind) {
    case MvccOp::Kind::kRead:
      json.Key("request_range").BeginObject();
      WriteRead(op.read, json);
      break;
    case MvccOp::Kind::kPut:
      json.Key("request_put").BeginObject().Field("key", Base64(op.key));
      if (!op.value.empty()) json.Field("value", Base64(op.value));
      if (op.lease != 0) json.Field("lease", Decimal(op.lease));
      if (op.keep_value) json.Field("ignore_value", true);
      if (op.keep_lease) json.Field("ignore_lease", true);
      if (op.previous) json.Field("prev_kv", true);
      break;
    case MvccOp::Kind::kDelete:
      json.Key("request_delete_range").BeginObject();
      WriteRange(op.erased, json);
      if (op.previous) json.Field("prev_kv", true);
      break;
    case MvccOp::Kind::kTxn:
      json.Key("request_txn").BeginObject();
      WriteTxn(op.branches.front(), json);
      break;
  }
  json.EndObject().EndObject();
}

void WriteOps(const char* name, const std::vector<MvccOp>& ops, JsonWriter& json) {
  json.Key(name).BeginArray();
  for (const MvccOp& op : ops) WriteOp(op, json);
  json.EndArray();
}

// The members of a transaction; its object is already open.
void WriteTxn(const MvccTxn& txn, JsonWriter& json) {
  json.Key("compare").BeginArray();
  for (const MvccCompare& compare : txn.compares) WriteCompare(compare, json);
  json.EndArray();
  WriteOps("success", txn.success, json);
  WriteOps("failure", txn.failure, json);
}

template <typename Write>
std::string Body(const Write& write) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  write(json);
  json.EndObject();
  return body;
}

// ---- answers

Status NotUnderstood(std::string_view what) {
  return Unavailable(Detail::kUnknownOutcome, "etcd: the answer has no {} of the known shape",
                     what);
}

// A number is a string or a number, and left out where it is zero.
std::optional<uint64_t> Number(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  if (member == nullptr || member->is_null()) return 0;
  const std::string* const text = member->string();
  if (text == nullptr) return member->unsigned_integer();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

std::optional<int64_t> SignedNumber(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  if (member == nullptr || member->is_null()) return 0;
  const std::string* const text = member->string();
  if (text == nullptr) return member->integer();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

bool Flag(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr && member->boolean() != nullptr && *member->boolean();
}

std::string Text(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member != nullptr && member->string() != nullptr ? *member->string() : "";
}

std::optional<std::string> Bytes(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  if (member == nullptr || member->is_null()) return "";
  if (member->string() == nullptr) return std::nullopt;
  return FromBase64(*member->string());
}

// The elements of an array that is left out where it is empty. Null: it is no array.
const Json::Array* Elements(const Json& object, std::string_view name) {
  static const Json::Array none;
  const Json* const member = object.Find(name);
  return member == nullptr || member->is_null() ? &none : member->array();
}

StatusOr<MvccEntryPtr> ReadEntry(const Json& kv) {
  const auto key = Bytes(kv, "key");
  const auto value = Bytes(kv, "value");
  const auto create_revision = Number(kv, "create_revision");
  const auto mod_revision = Number(kv, "mod_revision");
  const auto version = Number(kv, "version");
  const auto lease = Number(kv, "lease");
  if (!key.has_value() || key->empty() || !value.has_value() || !create_revision.has_value() ||
      !mod_revision.has_value() || !version.has_value() || !lease.has_value()) {
    return NotUnderstood("entry");
  }
  return std::make_shared<const MvccEntry>(MvccEntry{.key = *key,
                                                     .value = *value,
                                                     .create_revision = *create_revision,
                                                     .mod_revision = *mod_revision,
                                                     .version = *version,
                                                     .lease = *lease});
}

StatusOr<MvccTxnResult> ReadTxn(const Json& answer, const MvccTxn& txn);

StatusOr<MvccOpResult> ReadOpResult(const Json& response, const MvccOp& op) {
  constexpr std::array kMembers = {"response_range", "response_put", "response_delete_range",
                                   "response_txn"};
  MvccOpResult result{.kind = op.kind};
  const Json* const inner = response.Find(kMembers[static_cast<size_t>(op.kind)]);
  if (inner == nullptr) return NotUnderstood("result of an operation");
  if (op.kind == MvccOp::Kind::kRead) {
    ASSIGN_OR_RETURN(result.read, ReadEtcdRange(*inner));
  } else if (op.kind == MvccOp::Kind::kPut) {
    if (const Json* const previous = inner->Find("prev_kv"); previous != nullptr) {
      ASSIGN_OR_RETURN(MvccEntryPtr entry, ReadEntry(*previous));
      result.previous.push_back(std::move(entry));
    }
  } else if (op.kind == MvccOp::Kind::kDelete) {
    const auto deleted = Number(*inner, "deleted");
    const Json::Array* const previous = Elements(*inner, "prev_kvs");
    if (!deleted.has_value() || previous == nullptr) return NotUnderstood("count of the deleted");
    result.deleted = *deleted;
    for (const Json& kv : *previous) {
      ASSIGN_OR_RETURN(MvccEntryPtr entry, ReadEntry(kv));
      result.previous.push_back(std::move(entry));
    }
  } else {
    ASSIGN_OR_RETURN(MvccTxnResult nested, ReadTxn(*inner, op.branches.front()));
    result.succeeded = nested.succeeded;
    result.results = std::move(nested.results);
  }
  return result;
}

// Without the revision, which only the outermost one has.
StatusOr<MvccTxnResult> ReadTxn(const Json& answer, const MvccTxn& txn) {
  MvccTxnResult result{.succeeded = Flag(answer, "succeeded")};
  const std::vector<MvccOp>& branch = result.succeeded ? txn.success : txn.failure;
  const Json::Array* const responses = Elements(answer, "responses");
  if (responses == nullptr || responses->size() != branch.size()) {
    return NotUnderstood("result for each operation");
  }
  for (size_t index = 0; index < branch.size(); ++index) {
    ASSIGN_OR_RETURN(MvccOpResult one, ReadOpResult((*responses)[index], branch[index]));
    result.results.push_back(std::move(one));
  }
  return result;
}

// gRPC's codes, as far as one of them alone decides.
enum GrpcCode : uint64_t {
  kGrpcInvalidArgument = 3,
  kGrpcNotFound = 5,
  kGrpcPermissionDenied = 7,
  kGrpcResourceExhausted = 8,
  kGrpcFailedPrecondition = 9,
  kGrpcOutOfRange = 11,
  kGrpcUnimplemented = 12,
  kGrpcUnauthenticated = 16,
};

Status RefusalFor(uint64_t code, const std::string& message) {
  struct Known {
    std::string_view text;
    MvccRefusal refusal;
  };
  constexpr std::array kKnown = {
      Known{"etcdserver: mvcc: required revision has been compacted", MvccRefusal::kCompacted},
      Known{"etcdserver: mvcc: required revision is a future revision",
            MvccRefusal::kFutureRevision},
      Known{"etcdserver: requested lease not found", MvccRefusal::kLeaseNotFound},
      Known{"etcdserver: lease already exists", MvccRefusal::kLeaseExists},
      Known{"etcdserver: too large lease TTL", MvccRefusal::kLeaseTtlTooLarge},
      Known{"etcdserver: key is not provided", MvccRefusal::kEmptyKey},
      Known{"etcdserver: key not found", MvccRefusal::kKeyNotFound},
      Known{"etcdserver: duplicate key given in txn request", MvccRefusal::kDuplicateKey},
      Known{"etcdserver: too many operations in txn request", MvccRefusal::kTooManyOps},
      Known{"etcdserver: request is too large", MvccRefusal::kTooLarge},
  };
  for (const Known& known : kKnown) {
    if (message == known.text) return Refuse(known.refusal);
  }
  const std::string told = "etcd: " + message;
  switch (code) {
    case kGrpcUnauthenticated:
      return MakeStatus(StatusCode::kUnauthenticated, Detail::kNone, told);
    case kGrpcPermissionDenied:
      return MakeStatus(StatusCode::kPermissionDenied, Detail::kNone, told);
    case kGrpcInvalidArgument:
      if (message == "etcdserver: user name is empty") {
        return MakeStatus(StatusCode::kUnauthenticated, Detail::kNone, told);
      }
      return MakeStatus(StatusCode::kInvalidArgument, Detail::kNone, told);
    case kGrpcResourceExhausted:
      if (message.find("larger than max") != std::string::npos) {
        return Refuse(MvccRefusal::kTooLarge);
      }
      return MakeStatus(StatusCode::kResourceExhausted, Detail::kNotWritten, told);
    case kGrpcFailedPrecondition:
    case kGrpcOutOfRange:
    case kGrpcNotFound:
    case kGrpcUnimplemented:
      return MakeStatus(StatusCode::kFailedPrecondition, Detail::kNone, told);
    default:
      return MakeStatus(StatusCode::kUnavailable, Detail::kUnknownOutcome, told);
  }
}

}  // namespace

EtcdCall EtcdRange(const MvccRead& read) {
  return {"/kv/range", Body([&](JsonWriter& json) { WriteRead(read, json); })};
}

EtcdCall EtcdTxn(const MvccTxn& txn) {
  return {"/kv/txn", Body([&](JsonWriter& json) { WriteTxn(txn, json); })};
}

EtcdCall EtcdLeaseGrant(int64_t ttl_seconds) {
  return {"/lease/grant",
          Body([&](JsonWriter& json) { json.Field("TTL", std::to_string(ttl_seconds)); })};
}

EtcdCall EtcdLeaseKeepAlive(uint64_t id) {
  return {"/lease/keepalive", Body([&](JsonWriter& json) { json.Field("ID", Decimal(id)); })};
}

EtcdCall EtcdLeaseRevoke(uint64_t id) {
  return {"/lease/revoke", Body([&](JsonWriter& json) { json.Field("ID", Decimal(id)); })};
}

EtcdCall EtcdAuthenticate(std::string_view user, std::string_view password) {
  return {"/auth/authenticate",
          Body([&](JsonWriter& json) { json.Field("name", user).Field("password", password); })};
}

std::string EtcdWatchBody(const std::vector<EtcdWatchRequest>& watches) {
  std::string body;
  for (const EtcdWatchRequest& watch : watches) {
    body += Body([&](JsonWriter& json) {
      json.Key("create_request").BeginObject();
      WriteRange(watch.range, json);
      json.Field("start_revision", Decimal(watch.from));
      json.Field("watch_id", Decimal(watch.id)).EndObject();
    });
  }
  return body + R"({"progress_request":{}})";
}

StatusOr<Json> EtcdAnswer(const HttpResponse& response) {
  StatusOr<Json> answer = Json::Parse(response.body, kJsonLimits);
  const bool is_object = answer.ok() && answer->object() != nullptr;
  if (response.status == 200 && is_object) return answer;
  if (is_object) {
    const auto code = Number(*answer, "code");
    std::string message = Text(*answer, "message");
    if (message.empty()) message = Text(*answer, "error");
    if (code.has_value() && *code != 0) return RefusalFor(*code, message);
  }
  switch (response.status) {
    case 401:
      return MakeStatus(StatusCode::kUnauthenticated, Detail::kNone, "etcd: HTTP status 401");
    case 403:
      return MakeStatus(StatusCode::kPermissionDenied, Detail::kNone, "etcd: HTTP status 403");
    case 404:
    case 405:
      return WrongState(Detail::kNone, "HTTP status {}: no etcd v3 gateway is at this path",
                        response.status);
    case 413:
      return Refuse(MvccRefusal::kTooLarge);
    default:
      return Unavailable(Detail::kUnknownOutcome, "etcd: HTTP status {} without an answer of etcd",
                         response.status);
  }
}

StatusOr<EtcdHeader> ReadEtcdHeader(const Json& answer) {
  const Json* const header = answer.Find("header");
  if (header == nullptr) return NotUnderstood("header");
  const auto cluster_id = Number(*header, "cluster_id");
  const auto revision = Number(*header, "revision");
  if (!cluster_id.has_value() || !revision.has_value()) return NotUnderstood("header");
  return EtcdHeader{.cluster_id = *cluster_id, .revision = *revision};
}

StatusOr<MvccReadResult> ReadEtcdRange(const Json& answer) {
  MvccReadResult result{.more = Flag(answer, "more")};
  const auto count = Number(answer, "count");
  const Json::Array* const kvs = Elements(answer, "kvs");
  if (!count.has_value() || kvs == nullptr) return NotUnderstood("list of entries");
  result.count = *count;
  result.entries.reserve(kvs->size());
  for (const Json& kv : *kvs) {
    ASSIGN_OR_RETURN(MvccEntryPtr entry, ReadEntry(kv));
    result.entries.push_back(std::move(entry));
  }
  return result;
}

StatusOr<MvccTxnResult> ReadEtcdTxn(const Json& answer, const MvccTxn& txn) {
  ASSIGN_OR_RETURN(const EtcdHeader header, ReadEtcdHeader(answer));
  ASSIGN_OR_RETURN(MvccTxnResult result, ReadTxn(answer, txn));
  result.revision = header.revision;
  return result;
}

StatusOr<EtcdLease> ReadEtcdLease(const Json& answer) {
  const auto id = Number(answer, "ID");
  const auto ttl = SignedNumber(answer, "TTL");
  if (!id.has_value() || *id == 0 || !ttl.has_value()) return NotUnderstood("lease");
  return EtcdLease{.id = *id, .ttl_seconds = *ttl < 0 ? 0 : *ttl};
}

StatusOr<EtcdLease> ReadEtcdKeptLease(const Json& answer) {
  const Json* const result = answer.Find("result");
  if (result == nullptr) return NotUnderstood("lease");
  return ReadEtcdLease(*result);
}

StatusOr<std::string> ReadEtcdToken(const Json& answer) {
  std::string token = Text(answer, "token");
  if (token.empty()) return NotUnderstood("token");
  return token;
}

bool SaysAuthIsOff(const Status& refusal) {
  return Message(refusal).find("authentication is not enabled") != std::string_view::npos;
}

StatusOr<EtcdWatchFrame> ReadEtcdWatchFrame(std::string_view line) {
  ASSIGN_OR_RETURN(const Json json, Json::Parse(line, kJsonLimits));
  if (const Json* const error = json.Find("error"); error != nullptr) {
    // 3.4 and 3.5 say grpc_code, 3.6 says code.
    const uint64_t code = Number(*error, "grpc_code").value_or(0);
    return RefusalFor(code != 0 ? code : Number(*error, "code").value_or(0),
                      Text(*error, "message"));
  }
  const Json* const result = json.Find("result");
  if (result == nullptr) return NotUnderstood("watch frame");
  EtcdWatchFrame frame{.created = Flag(*result, "created"),
                       .canceled = Flag(*result, "canceled"),
                       .cancel_reason = Text(*result, "cancel_reason")};
  const auto id = SignedNumber(*result, "watch_id");
  const auto compact_revision = Number(*result, "compact_revision");
  const Json::Array* const events = Elements(*result, "events");
  if (!id.has_value() || !compact_revision.has_value() || events == nullptr) {
    return NotUnderstood("watch frame");
  }
  if (*id >= 0) frame.id = static_cast<uint64_t>(*id);
  frame.compact_revision = *compact_revision;
  for (const Json& event : *events) {
    const Json* const kv = event.Find("kv");
    if (kv == nullptr) return NotUnderstood("event");
    ASSIGN_OR_RETURN(MvccEntryPtr now, ReadEntry(*kv));
    const std::string type = Text(event, "type");
    const auto number = Number(event, "type");
    const bool deleted = type == "DELETE" || (type.empty() && number == 1);
    // A put without a version, or a deletion with one, is neither.
    if (deleted != now->deleted()) return NotUnderstood("event");
    frame.events.push_back({.now = std::move(now), .before = nullptr});
  }
  frame.progress =
      !frame.id.has_value() && !frame.created && !frame.canceled && frame.events.empty();
  return frame;
}

}  // namespace holdfast
