#include "meta/gateway_answers.h"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

using Text = std::string;
Text Decimal(uint64_t number) { return std::to_string(number); }

// Zeros and empty values are left out.
void Put(JsonWriter& json, std::string_view name, uint64_t number) {
  if (number != 0) json.Field(name, Decimal(number));
}

void WriteHeader(JsonWriter& json, const GatewayIdentity& identity, uint64_t revision) {
  json.Key("header").BeginObject();
  json.Field("cluster_id", Decimal(identity.cluster_id));
  json.Field("member_id", Decimal(identity.member_id));
  Put(json, "revision", revision);
  json.Field("raft_term", "1").EndObject();
}
// The one inside of a transaction says the revision only.
void WriteInnerHeader(JsonWriter& json, uint64_t revision) {
  json.Key("header").BeginObject();
  Put(json, "revision", revision);
  json.EndObject();
}

void WriteEntry(JsonWriter& json, const MvccEntry& entry, bool keys_only) {
  json.BeginObject().Field("key", Base64(entry.key));
  Put(json, "create_revision", entry.create_revision);
  Put(json, "mod_revision", entry.mod_revision);
  Put(json, "version", entry.version);
  if (!entry.value.empty() && !keys_only) json.Field("value", Base64(entry.value));
  Put(json, "lease", entry.lease);
  json.EndObject();
}

int64_t SortNumber(const MvccEntry& entry, GatewayRange::Target target) {
  switch (target) {
    case GatewayRange::Target::kVersion:
      return static_cast<int64_t>(entry.version);
    case GatewayRange::Target::kCreate:
      return static_cast<int64_t>(entry.create_revision);
    case GatewayRange::Target::kMod:
      return static_cast<int64_t>(entry.mod_revision);
    default:
      return 0;
  }
}

// Stable over the order of keys, as etcd sorts.
void Sort(std::vector<MvccEntryPtr>& entries, const GatewayRange& range) {
  const auto before = [&](const MvccEntryPtr& a, const MvccEntryPtr& b) {
    if (range.target == GatewayRange::Target::kKey) return a->key < b->key;
    if (range.target == GatewayRange::Target::kValue) return a->value < b->value;
    return SortNumber(*a, range.target) < SortNumber(*b, range.target);
  };
  if (range.order == GatewayRange::Order::kDescend) {
    std::sort(entries.begin(), entries.end(), [&](const MvccEntryPtr& a, const MvccEntryPtr& b) {
      return before(b, a) || (!before(a, b) && a->key < b->key);
    });
  } else if (range.order == GatewayRange::Order::kAscend) {
    std::sort(entries.begin(), entries.end(), [&](const MvccEntryPtr& a, const MvccEntryPtr& b) {
      return before(a, b) || (!before(b, a) && a->key < b->key);
    });
  }
}

void WriteRange(JsonWriter& json, const GatewayRange& range, const MvccReadResult& read) {
  std::vector<MvccEntryPtr> entries = read.entries;
  const auto outside = [](uint64_t number, uint64_t min, uint64_t max) {
    return number < min || (max != 0 && number > max);
  };
  std::erase_if(entries, [&](const MvccEntryPtr& entry) {
    return outside(entry->mod_revision, range.mod_min, range.mod_max) ||
           outside(entry->create_revision, range.create_min, range.create_max);
  });
  Sort(entries, range);
  bool more = read.more;
  if (range.limit != 0 && entries.size() > range.limit) {
    entries.resize(range.limit);
    more = true;
  }
  if (!range.count_only && !entries.empty()) {
    json.Key("kvs").BeginArray();
    for (const MvccEntryPtr& entry : entries) WriteEntry(json, *entry, range.keys_only);
    json.EndArray();
  }
  if (more && !range.count_only) json.Field("more", true);
  Put(json, "count", read.count);
}

void WritePrevious(JsonWriter& json, const MvccOpResult& result) {
  if (result.previous.empty()) return;
  if (result.kind == MvccOp::Kind::kPut) {
    json.Key("prev_kv");
    return WriteEntry(json, *result.previous.front(), false);
  }
  json.Key("prev_kvs").BeginArray();
  for (const MvccEntryPtr& entry : result.previous) WriteEntry(json, *entry, false);
  json.EndArray();
}

void WriteResults(JsonWriter& json, const Json& request, bool succeeded,
                  const std::vector<MvccOpResult>& results, uint64_t revision);

void WriteOpResult(JsonWriter& json, const Json& request, const MvccOpResult& result,
                   uint64_t revision) {
  json.BeginObject();
  switch (result.kind) {
    case MvccOp::Kind::kRead:
      json.Key("response_range").BeginObject();
      WriteInnerHeader(json, revision);
      WriteRange(json, ReadGatewayRange(*GatewayMember(request, "request_range")).value(),
                 result.read);
      break;
    case MvccOp::Kind::kPut:
      json.Key("response_put").BeginObject();
      WriteInnerHeader(json, revision);
      WritePrevious(json, result);
      break;
    case MvccOp::Kind::kDelete:
      json.Key("response_delete_range").BeginObject();
      WriteInnerHeader(json, revision);
      Put(json, "deleted", result.deleted);
      WritePrevious(json, result);
      break;
    case MvccOp::Kind::kTxn:
      json.Key("response_txn").BeginObject();
      WriteInnerHeader(json, 0);
      WriteResults(json, *GatewayMember(request, "request_txn"), result.succeeded, result.results,
                   revision);
      break;
  }
  json.EndObject().EndObject();
}

void WriteResults(JsonWriter& json, const Json& request, bool succeeded,
                  const std::vector<MvccOpResult>& results, uint64_t revision) {
  if (succeeded) json.Field("succeeded", true);
  if (results.empty()) return;
  const Json::Array& ops = *GatewayList(request, succeeded ? "success" : "failure").value();
  json.Key("responses").BeginArray();
  for (size_t index = 0; index < results.size(); ++index) {
    WriteOpResult(json, ops[index], results[index], revision);
  }
  json.EndArray();
}

template <typename Write>
Text Answer(const GatewayIdentity& identity, uint64_t revision, const Write& write) {
  Text text;
  JsonWriter json(text);
  json.BeginObject();
  WriteHeader(json, identity, revision);
  write(json);
  json.EndObject();
  return text;
}

void WriteEvent(JsonWriter& json, const MvccEvent& event, bool previous) {
  json.BeginObject();
  if (event.now->deleted()) json.Field("type", "DELETE");
  json.Key("kv");
  if (event.now->deleted()) {
    json.BeginObject().Field("key", Base64(event.now->key));
    json.Field("mod_revision", Decimal(event.now->mod_revision)).EndObject();
  } else {
    WriteEntry(json, *event.now, false);
  }
  if (previous && event.before != nullptr) {
    json.Key("prev_kv");
    WriteEntry(json, *event.before, false);
  }
  json.EndObject();
}

// ---- refusals

struct Told {
  int status;
  int code;
  std::string_view message;  // empty: that of the status
};

Told ToldFor(const Status& status) {
  switch (RefusalOf(status)) {
    case MvccRefusal::kEmptyKey:
      return {400, 3, "etcdserver: key is not provided"};
    case MvccRefusal::kKeyNotFound:
      return {400, 3, "etcdserver: key not found"};
    case MvccRefusal::kDuplicateKey:
      return {400, 3, "etcdserver: duplicate key given in txn request"};
    case MvccRefusal::kTooManyOps:
      return {400, 3, "etcdserver: too many operations in txn request"};
    case MvccRefusal::kTooLarge:
      return {400, 3, "etcdserver: request is too large"};
    case MvccRefusal::kCompacted:
      return {400, 11, "etcdserver: mvcc: required revision has been compacted"};
    case MvccRefusal::kFutureRevision:
      return {400, 11, "etcdserver: mvcc: required revision is a future revision"};
    case MvccRefusal::kLeaseNotFound:
      return {404, 5, "etcdserver: requested lease not found"};
    case MvccRefusal::kLeaseExists:
      return {412, 9, "etcdserver: lease already exists"};
    case MvccRefusal::kLeaseTtlTooLarge:
      return {400, 11, "etcdserver: too large lease TTL"};
    case MvccRefusal::kValueGiven:
      return {400, 3, "etcdserver: value is provided"};
    case MvccRefusal::kLeaseGiven:
      return {400, 3, "etcdserver: lease is provided"};
    case MvccRefusal::kNone:
      break;
  }
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return {400, 3, ""};
    case StatusCode::kNotFound:
      return {404, 5, ""};
    case StatusCode::kResourceExhausted:
      return {
          429, 8,
          DetailOf(status) == Detail::kDiskFull ? "etcdserver: mvcc: database space exceeded" : ""};
    case StatusCode::kFailedPrecondition:
      return {412, 9, ""};
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kUnavailable:
      return {503, 14,
              DetailOf(status) == Detail::kUnknownOutcome ? "etcdserver: request timed out" : ""};
    default:
      return {500, 13, ""};
  }
}

HttpResponse RefusalAs(const Told& told, const Status& status) {
  const std::string_view message = told.message.empty() ? Message(status) : told.message;
  HttpResponse response{
      .status = told.status, .headers = {{"Content-Type", "application/json"}}, .body = {}};
  JsonWriter(response.body)
      .BeginObject()
      .Field("error", message)
      .Field("message", message)
      .Field("code", told.code)
      .EndObject();
  return response;
}

}  // namespace

std::string GatewayHeader(const GatewayIdentity& identity, uint64_t revision) {
  return Answer(identity, revision, [](JsonWriter&) {});
}

std::string GatewayRangeAnswer(const GatewayIdentity& identity, uint64_t revision,
                               const GatewayRange& range, const MvccReadResult& read) {
  return Answer(identity, revision, [&](JsonWriter& json) { WriteRange(json, range, read); });
}

std::string GatewayPutAnswer(const GatewayIdentity& identity, const MvccTxnResult& result) {
  return Answer(identity, result.revision,
                [&](JsonWriter& json) { WritePrevious(json, result.results.front()); });
}

std::string GatewayDeleteAnswer(const GatewayIdentity& identity, const MvccTxnResult& result) {
  return Answer(identity, result.revision, [&](JsonWriter& json) {
    Put(json, "deleted", result.results.front().deleted);
    WritePrevious(json, result.results.front());
  });
}

std::string GatewayTxnAnswer(const GatewayIdentity& identity, const Json& request,
                             const MvccTxnResult& result) {
  return Answer(identity, result.revision, [&](JsonWriter& json) {
    WriteResults(json, request, result.succeeded, result.results, result.revision);
  });
}

std::string GatewayLeaseAnswer(const GatewayIdentity& identity, uint64_t revision,
                               const GatewayLease& lease) {
  return Answer(identity, revision, [&](JsonWriter& json) {
    json.Field("ID", Decimal(lease.id));
    if (lease.ttl_seconds != 0) json.Field("TTL", std::to_string(lease.ttl_seconds));
    if (lease.granted_seconds != 0) {
      json.Field("grantedTTL", std::to_string(lease.granted_seconds));
    }
    if (lease.keys.empty()) return;
    json.Key("keys").BeginArray();
    for (const std::string& key : lease.keys) json.Value(Base64(key));
    json.EndArray();
  });
}

std::string GatewayLeaseList(const GatewayIdentity& identity, uint64_t revision,
                             const std::vector<uint64_t>& leases) {
  return Answer(identity, revision, [&](JsonWriter& json) {
    if (leases.empty()) return;
    json.Key("leases").BeginArray();
    for (const uint64_t id : leases) json.BeginObject().Field("ID", Decimal(id)).EndObject();
    json.EndArray();
  });
}

std::string GatewayMemberList(const GatewayIdentity& identity, std::string_view name,
                              std::string_view url) {
  return Answer(identity, 0, [&](JsonWriter& json) {
    json.Key("members").BeginArray().BeginObject();
    json.Field("ID", Decimal(identity.member_id)).Field("name", name);
    json.Key("peerURLs").BeginArray().EndArray();
    json.Key("clientURLs").BeginArray().Value(url).EndArray();
    json.EndObject().EndArray();
  });
}

std::string GatewayServerStatus(const GatewayIdentity& identity, uint64_t revision,
                                std::string_view version) {
  return Answer(identity, revision, [&](JsonWriter& json) {
    json.Field("version", version).Field("leader", Decimal(identity.member_id));
    json.Field("raftIndex", Decimal(revision)).Field("raftTerm", "1");
    json.Field("raftAppliedIndex", Decimal(revision));
  });
}

std::string GatewayResultLine(std::string_view answer) {
  return fmt::format("{{\"result\":{}}}\n", answer);
}

std::string GatewayWatchLine(const GatewayIdentity& identity, uint64_t revision,
                             const GatewayWatchFrame& frame, const std::vector<MvccEvent>& events,
                             const GatewayWatchCreate& watch) {
  return GatewayResultLine(Answer(identity, revision, [&](JsonWriter& json) {
    if (frame.id != 0) json.Field("watch_id", std::to_string(frame.id));
    if (frame.created) json.Field("created", true);
    if (frame.canceled) json.Field("canceled", true);
    Put(json, "compact_revision", frame.compact_revision);
    if (!frame.cancel_reason.empty()) json.Field("cancel_reason", frame.cancel_reason);
    if (events.empty()) return;
    json.Key("events").BeginArray();
    for (const MvccEvent& event : events) WriteEvent(json, event, watch.previous);
    json.EndArray();
  }));
}

HttpResponse GatewayAnswer(std::string body) {
  return {
      .status = 200, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

HttpResponse GatewayRefusal(const Status& status) { return RefusalAs(ToldFor(status), status); }

HttpResponse GatewayStreamRefusal(const Status& status) {
  return RefusalAs({.status = 500, .code = 2, .message = {}}, status);
}

}  // namespace holdfast
