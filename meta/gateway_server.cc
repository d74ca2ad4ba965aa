#include "meta/gateway_server.h"

#include <algorithm>
#include <utility>

#include "meta/http/transport.h"

namespace holdfast {
namespace {

constexpr int64_t kTtlSecondsMax = 9'000'000'000;
// The version whose wire is spoken; what follows the plus is not compared.
constexpr char kVersion[] = "3.4.23+holdfast";
constexpr std::string_view kPrefixes[] = {"/v3", "/v3beta", "/v3alpha"};

HttpResponse PlainAnswer(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(body)};
}

HttpResponse AnswerOrRefusal(StatusOr<std::string> answer) {
  return answer.ok() ? GatewayAnswer(*std::move(answer)) : GatewayRefusal(answer.status());
}

int64_t WholeSeconds(absl::Duration time) {
  return std::max(int64_t{0}, absl::ToInt64Seconds(absl::Floor(time, absl::Seconds(1))));
}

}  // namespace

StatusOr<std::unique_ptr<GatewayServer>> GatewayServer::Start(MvccMeta& meta,
                                                              const GatewayOptions& options) {
  std::unique_ptr<GatewayServer> gateway(new GatewayServer(meta, options));
  ASSIGN_OR_RETURN(gateway->server_, HttpServer::Listen(options.http, gateway->Routes()));
  gateway->server_->Serve();
  return gateway;
}

std::vector<HttpRoute> GatewayServer::Routes() {
  std::vector<HttpRoute> routes;
  AddCall("/kv/range", &GatewayServer::Range, routes);
  AddCall("/kv/put", &GatewayServer::Put, routes);
  AddCall("/kv/deleterange", &GatewayServer::DeleteRange, routes);
  AddCall("/kv/txn", &GatewayServer::Txn, routes);
  AddCall("/kv/compaction", &GatewayServer::Compaction, routes);
  AddCall("/lease/grant", &GatewayServer::LeaseGrant, routes);
  for (const std::string parent : {"", "/kv"}) {
    AddCall(parent + "/lease/revoke", &GatewayServer::LeaseRevoke, routes);
    AddCall(parent + "/lease/timetolive", &GatewayServer::LeaseTimeToLive, routes);
    AddCall(parent + "/lease/leases", &GatewayServer::LeaseList, routes);
  }
  AddCall("/cluster/member/list", &GatewayServer::MemberList, routes);
  AddCall("/maintenance/status", &GatewayServer::ServerStatus, routes);
  AddCall("/maintenance/alarm", &GatewayServer::Alarm, routes);
  AddCall("/auth/authenticate", &GatewayServer::Authenticate, routes);
  for (const std::string_view prefix : kPrefixes) {
    routes.push_back({"POST", std::string(prefix) + "/lease/keepalive",
                      [this](const HttpRequest& request, ReplyPtr reply) {
                        Later(std::move(reply),
                              [this, body = request.body] { return KeepAlive(body); });
                      }});
    routes.push_back(
        {"POST", std::string(prefix) + "/watch",
         [this](const HttpRequest& request, const ReplyPtr& reply) { Watch(request, *reply); }});
  }
  routes.push_back(
      {"GET", "/health", [this](const HttpRequest&, ReplyPtr reply) {
         Later(std::move(reply), [this] {
           const bool healthy =
               meta_.Read({.range = KeyRange::Only("health"), .count_only = true}, call()).ok();
           return PlainAnswer(healthy ? 200 : 503,
                              healthy ? R"({"health":"true"})" : R"({"health":"false"})");
         });
       }});
  routes.push_back({"GET", "/version", [](const HttpRequest&, const ReplyPtr& reply) {
                      reply->Send(GatewayAnswer(
                          fmt::format(R"({{"etcdserver":"{}","etcdcluster":"3.4.0"}})", kVersion)));
                    }});
  routes.push_back({"GET", "/metrics",
                    [this](const HttpRequest&, const ReplyPtr& reply) { reply->Send(Metrics()); }});
  return routes;
}

void GatewayServer::AddCall(std::string_view path, Call call, std::vector<HttpRoute>& routes) {
  for (const std::string_view prefix : kPrefixes) {
    routes.push_back({"POST", std::string(prefix) + std::string(path),
                      [this, call](const HttpRequest& request, ReplyPtr reply) {
                        StatusOr<Json> json = ReadGatewayRequest(request.body);
                        if (!json.ok()) return reply->Send(GatewayRefusal(json.status()));
                        Later(std::move(reply), [this, call, json = *std::move(json)] {
                          return AnswerOrRefusal((this->*call)(json));
                        });
                      }});
  }
}

void GatewayServer::Later(ReplyPtr reply, std::function<HttpResponse()> work) {
  const bool taken = pool_.Run([reply, work = std::move(work)] { reply->Send(work()); });
  if (!taken) {
    reply->Send(GatewayRefusal(Exhausted(Detail::kNotWritten, "etcdserver: too many requests")));
  }
}

// ---- keys

StatusOr<std::string> GatewayServer::Range(const Json& request) {
  ASSIGN_OR_RETURN(const GatewayRange range, ReadGatewayRange(request));
  ASSIGN_OR_RETURN(const MvccMeta::ReadAnswer answer, meta_.Read(range.read, call()));
  return GatewayRangeAnswer(options_.identity, answer.revision, range, answer.read);
}

StatusOr<MvccTxnResult> GatewayServer::ExecuteOne(MvccOp op) {
  MvccTxn txn;
  txn.success.push_back(std::move(op));
  return meta_.Execute(txn, call());
}

StatusOr<std::string> GatewayServer::Put(const Json& request) {
  ASSIGN_OR_RETURN(MvccOp op, ReadGatewayPut(request));
  ASSIGN_OR_RETURN(const MvccTxnResult result, ExecuteOne(std::move(op)));
  return GatewayPutAnswer(options_.identity, result);
}

StatusOr<std::string> GatewayServer::DeleteRange(const Json& request) {
  ASSIGN_OR_RETURN(MvccOp op, ReadGatewayDelete(request));
  ASSIGN_OR_RETURN(const MvccTxnResult result, ExecuteOne(std::move(op)));
  return GatewayDeleteAnswer(options_.identity, result);
}

StatusOr<std::string> GatewayServer::Txn(const Json& request) {
  ASSIGN_OR_RETURN(const MvccTxn txn, ReadGatewayTxn(request));
  ASSIGN_OR_RETURN(const MvccTxnResult result, meta_.Execute(txn, call()));
  return GatewayTxnAnswer(options_.identity, request, result);
}

StatusOr<std::string> GatewayServer::Compaction(const Json& request) {
  ASSIGN_OR_RETURN(const int64_t revision, ReadGatewayNumber(request, "revision"));
  RETURN_IF_ERROR(meta_.Compact(static_cast<uint64_t>(std::max(int64_t{0}, revision)), call()));
  return GatewayHeader(options_.identity, meta_.published_revision());
}

// ---- leases

StatusOr<std::string> GatewayServer::LeaseGrant(const Json& request) {
  ASSIGN_OR_RETURN(const int64_t id, ReadGatewayNumber(request, "ID"));
  ASSIGN_OR_RETURN(const int64_t asked, ReadGatewayNumber(request, "TTL"));
  if (asked > kTtlSecondsMax) return Refuse(MvccRefusal::kLeaseTtlTooLarge);
  const absl::Duration ttl = std::max(absl::Seconds(asked), options_.lease_ttl_min);
  ASSIGN_OR_RETURN(const uint64_t granted,
                   meta_.GrantLeaseAs(static_cast<uint64_t>(id), ttl, call()));
  return GatewayLeaseAnswer(options_.identity, meta_.published_revision(),
                            {.id = granted, .ttl_seconds = WholeSeconds(ttl)});
}

StatusOr<std::string> GatewayServer::LeaseRevoke(const Json& request) {
  ASSIGN_OR_RETURN(const int64_t id, ReadGatewayNumber(request, "ID"));
  RETURN_IF_ERROR(meta_.RevokeLease(static_cast<uint64_t>(id), call()));
  return GatewayHeader(options_.identity, meta_.published_revision());
}

StatusOr<std::string> GatewayServer::LeaseTimeToLive(const Json& request) {
  ASSIGN_OR_RETURN(const int64_t id, ReadGatewayNumber(request, "ID"));
  ASSIGN_OR_RETURN(const bool keys, ReadGatewayFlag(request, "keys"));
  GatewayLease lease{.id = static_cast<uint64_t>(id), .ttl_seconds = -1};
  const StatusOr<MvccLeaseInfo> info = meta_.LeaseInfo(lease.id, call());
  if (!info.ok() && RefusalOf(info.status()) != MvccRefusal::kLeaseNotFound) return info.status();
  if (info.ok()) {
    lease.ttl_seconds = WholeSeconds(info->left);
    lease.granted_seconds = WholeSeconds(info->granted);
    if (keys) lease.keys = info->keys;
  }
  return GatewayLeaseAnswer(options_.identity, meta_.published_revision(), lease);
}

StatusOr<std::string> GatewayServer::LeaseList(const Json&) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> leases, meta_.Leases(call()));
  return GatewayLeaseList(options_.identity, meta_.published_revision(), leases);
}

HttpResponse GatewayServer::KeepAlive(std::string_view body) {
  HttpResponse response = GatewayAnswer("");
  while (true) {
    const StatusOr<std::optional<Json>> json = TakeGatewayObject(body);
    // Behind a good one nonsense is ignored.
    if (!json.ok()) return response.body.empty() ? GatewayStreamRefusal(json.status()) : response;
    if (!json->has_value()) return response;
    const StatusOr<int64_t> id = ReadGatewayNumber(**json, "ID");
    if (!id.ok()) return GatewayStreamRefusal(id.status());
    GatewayLease lease{.id = static_cast<uint64_t>(*id)};
    const StatusOr<MetaLease> kept = meta_.KeepAlive(lease.id, call());
    if (kept.ok()) {
      lease.ttl_seconds = WholeSeconds(kept->ttl);
    } else if (!absl::IsNotFound(kept.status())) {
      return GatewayRefusal(kept.status());
    }
    response.body +=
        GatewayResultLine(GatewayLeaseAnswer(options_.identity, meta_.published_revision(), lease));
  }
}

// ---- watches

void GatewayServer::Watch(const HttpRequest& request, HttpReply& reply) {
  std::vector<GatewayWatchRequest> requests;
  std::string_view body = request.body;
  while (true) {
    const StatusOr<std::optional<Json>> json = TakeGatewayObject(body);
    if (json.ok() && !json->has_value()) break;
    const StatusOr<GatewayWatchRequest> one =
        json.ok() ? ReadGatewayWatch(**json) : StatusOr<GatewayWatchRequest>(json.status());
    if (!one.ok() && requests.empty()) return reply.Send(GatewayStreamRefusal(one.status()));
    if (!one.ok()) break;
    requests.push_back(*one);
  }
  watches_.Serve(requests, reply);
}

// ---- the rest

StatusOr<std::string> GatewayServer::MemberList(const Json&) {
  const HttpServerOptions& http = options_.http;
  return GatewayMemberList(
      options_.identity, options_.name,
      EndpointUrl({.host = http.address, .port = server_->port(), .tls = http.tls.has_value()}));
}

StatusOr<std::string> GatewayServer::ServerStatus(const Json&) {
  return GatewayServerStatus(options_.identity, meta_.published_revision(), kVersion);
}

// There are none.
StatusOr<std::string> GatewayServer::Alarm(const Json&) { return std::string("{}"); }

StatusOr<std::string> GatewayServer::Authenticate(const Json&) {
  return WrongState(Detail::kNone, "etcdserver: authentication is not enabled");
}

HttpResponse GatewayServer::Metrics() {
  const HttpServerStats stats = server_->Stats();
  std::string text;
  const auto add = [&](std::string_view name, std::string_view kind, uint64_t value) {
    fmt::format_to(std::back_inserter(text),
                   "# TYPE holdfast_meta_{0} {1}\nholdfast_meta_{0} {2}\n", name, kind, value);
  };
  add("revision", "gauge", meta_.published_revision());
  add("history_begin_revision", "gauge", meta_.history_begin());
  add("watch_streams", "gauge", watches_.stream_count());
  add("http_connections", "gauge", stats.connections);
  add("http_requests_total", "counter", stats.requests);
  add("http_refused_total", "counter", stats.refused);
  add("http_slow_readers_total", "counter", stats.slow_readers);
  HttpResponse response = PlainAnswer(200, std::move(text));
  response.headers.front().value = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

}  // namespace holdfast
