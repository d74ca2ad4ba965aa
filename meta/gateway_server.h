// GatewayServer: the embedded Meta server. What of etcd's v3 JSON gateway clients use, over the
// Meta of one node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "meta/gateway_answers.h"
#include "meta/gateway_watches.h"
#include "meta/http/server.h"
#include "meta/mvcc_meta.h"
#include "meta/request_pool.h"

namespace holdfast {

struct GatewayOptions {
  HttpServerOptions http;
  GatewayIdentity identity;
  std::string name = "holdfast";  // of the one member
  RequestPool::Limits pool;
  absl::Duration call_timeout = absl::Seconds(5);
  absl::Duration lease_ttl_min = absl::Seconds(2);           // a shorter one is granted as this
  absl::Duration watch_notify_interval = absl::Minutes(10);  // of watches with progress_notify
};

// An answer leaves when what it says is durable, and so does a watch event.
class GatewayServer {
 public:
  // Borrows `meta`, which outlives it. Errors: as HttpServer::Listen
  static StatusOr<std::unique_ptr<GatewayServer>> Start(MvccMeta& meta,
                                                        const GatewayOptions& options);
  ~GatewayServer() { Stop(absl::ZeroDuration()); }
  GatewayServer(const GatewayServer&) = delete;
  GatewayServer& operator=(const GatewayServer&) = delete;

  uint16_t port() const { return server_->port(); }
  // As HttpServer::Stop.
  void Stop(absl::Duration grace) {
    if (server_ != nullptr) server_->Stop(grace);
  }

 private:
  using ReplyPtr = std::shared_ptr<HttpReply>;
  // From a request's object to the text of its answer.
  using Call = StatusOr<std::string> (GatewayServer::*)(const Json& request);

  GatewayServer(MvccMeta& meta, const GatewayOptions& options)
      : meta_(meta),
        options_(options),
        watches_(meta, options.identity, options.watch_notify_interval),
        pool_(options.pool) {}

  std::vector<HttpRoute> Routes();
  void AddCall(std::string_view path, Call call, std::vector<HttpRoute>& routes);
  // Runs `work` where it may wait, and sends what it returns.
  void Later(ReplyPtr reply, std::function<HttpResponse()> work);

  StatusOr<std::string> Range(const Json& request);
  StatusOr<std::string> Put(const Json& request);
  StatusOr<std::string> DeleteRange(const Json& request);
  StatusOr<std::string> Txn(const Json& request);
  StatusOr<std::string> Compaction(const Json& request);
  StatusOr<std::string> LeaseGrant(const Json& request);
  StatusOr<std::string> LeaseRevoke(const Json& request);
  StatusOr<std::string> LeaseTimeToLive(const Json& request);
  StatusOr<std::string> LeaseList(const Json& request);
  StatusOr<std::string> MemberList(const Json& request);
  StatusOr<std::string> ServerStatus(const Json& request);
  StatusOr<std::string> Alarm(const Json& request);
  StatusOr<std::string> Authenticate(const Json& request);
  HttpResponse KeepAlive(std::string_view body);
  void Watch(const HttpRequest& request, HttpReply& reply);
  HttpResponse Metrics();

  MetaCall call() const { return {.timeout = options_.call_timeout}; }
  StatusOr<MvccTxnResult> ExecuteOne(MvccOp op);

  MvccMeta& meta_;
  const GatewayOptions options_;
  GatewayWatches watches_;
  std::unique_ptr<HttpServer> server_;
  RequestPool pool_;  // Goes first: what it still answers is heard by nobody.
};

}  // namespace holdfast
