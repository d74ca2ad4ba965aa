// The embedded Meta server over a Meta in memory: the conformance suite through EtcdMeta, and the
// recorded requests answered as the packaged etcd answers them.
#include "meta/gateway_server.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "meta/etcd_meta.h"
#include "meta/memory_meta.h"
#include "tests/meta/conformance.h"
#include "tests/meta/watch_log.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/raw_socket.h"
#include "tests/support/real_etcd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_ca.h"

namespace holdfast {
namespace {

constexpr GatewayIdentity kIdentity{.cluster_id = 0xc1, .member_id = 0xd2};

class GatewayFixture final : public MetaFixture {
 public:
  explicit GatewayFixture(bool tls) {
    GatewayOptions server{.identity = kIdentity};
    HttpClientOptions client;
    if (tls) {
      const TestCa::Pair own = ca_.Issue({}), clients = ca_.Issue({});
      server.http.tls.emplace();
      server.http.tls->cert.path = own.cert;
      server.http.tls->key.path = own.key;
      server.http.tls->client_ca.path = ca_.path();
      client.tls.emplace();
      client.tls->ca.path = ca_.path();
      client.tls->cert.path = clients.cert;
      client.tls->key.path = clients.key;
    }
    gateway_ = *GatewayServer::Start(meta_, server);
    transport_ = NewHttpTransport(client).value();
    EtcdOptions options;
    options.endpoints = {{.host = "127.0.0.1", .port = gateway_->port(), .tls = tls}};
    store_ = *EtcdMeta::Create(*transport_, RealClock(), options);
  }
  MetaStore& store() override { return *store_; }
  void PassTime(absl::Duration by) override { clock_.Advance(by); }
  absl::Duration lease_min() const override { return absl::Seconds(2); }
  bool ForgetHistory() override {
    EXPECT_OK(meta_.Compact(meta_.published_revision(), {}));
    return true;
  }
  bool Restart() override { return false; }

 private:
  TestCa ca_{"a test"};
  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  std::unique_ptr<GatewayServer> gateway_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<EtcdMeta> store_;
};

INSTANTIATE_TEST_SUITE_P(
    Gateway, MetaConformanceTest,
    testing::Values(MetaBackend{"Gateway", [] { return std::make_unique<GatewayFixture>(false); }},
                    MetaBackend{"GatewayOverTls",
                                [] { return std::make_unique<GatewayFixture>(true); }}),
    BackendName);

class GatewayServerTest : public testing::Test {
 protected:
  void Start(GatewayOptions options = {}) {
    options.identity = kIdentity;
    auto gateway = GatewayServer::Start(meta_, options);
    ASSERT_OK(gateway);
    gateway_ = *std::move(gateway);
  }
  HttpResponse Send(const std::string& method, const std::string& target, const std::string& body) {
    auto response = transport_->Send(
        {.host = "127.0.0.1", .port = gateway_->port()},
        {.method = method, .target = target, .headers = {}, .body = body}, absl::Seconds(20));
    EXPECT_OK(response);
    return response.ok() ? *response : HttpResponse{.status = 0};
  }
  std::string Post(const std::string& path, const std::string& body) {
    return Send("POST", "/v3/" + path, body).body;
  }
  // A stream that was asked for with `body`, behind its head.
  RawSocket Watch(const std::string& body) {
    RawSocket client = RawSocket::Connect(gateway_->port());
    client.Send(fmt::format("POST /v3/watch HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}",
                            body.size(), body));
    client.ReadUntil("\r\n\r\n");
    return client;
  }

  MemoryMeta meta_{RealClock(), 1};
  std::unique_ptr<GatewayServer> gateway_;
  std::unique_ptr<HttpTransport> transport_ = NewHttpTransport({}).value();
};

TEST_F(GatewayServerTest, AnswersUnderEveryPrefixThatClientsUse) {
  Start();
  for (const std::string prefix : {"/v3", "/v3beta", "/v3alpha"}) {
    EXPECT_EQ(Send("POST", prefix + "/kv/put", R"({"key":"YQ==","value":"dg=="})").status, 200);
    EXPECT_EQ(Send("POST", prefix + "/lease/keepalive", "").status, 200);
  }
  EXPECT_EQ(Send("GET", "/v3/kv/put", "").status, 405);
  EXPECT_EQ(Send("POST", "/v3/kv/nope", "{}").status, 404);
  EXPECT_EQ(Send("GET", "/health", "").body, R"({"health":"true"})");
  EXPECT_NE(Send("GET", "/version", "").body.find("3.4."), std::string::npos);
}

// Proves: G14
TEST_F(GatewayServerTest, NoErrorSaysWhatCame) {
  Start();
  const std::string mark = "QxZ7";
  for (const char* path : {"kv/range", "kv/put", "kv/txn", "lease/grant", "lease/keepalive"}) {
    for (const std::string& body :
         {mark, "{\"" + mark, "[\"" + mark + "\"]", R"({"key":")" + mark + R"(*"})",
          R"({"key":{")" + mark + R"(":1}})",
          R"({"TTL":")" + mark + R"(","ID":")" + mark + "\"}"}) {
      const HttpResponse answer = Send("POST", std::string("/v3/") + path, body);
      EXPECT_EQ(answer.body.find(mark), std::string::npos) << path << body << answer.body;
    }
  }
}

TEST_F(GatewayServerTest, MetricsSayWhatItDoes) {
  Start();
  Post("kv/put", R"({"key":"YQ=="})");
  RawSocket watch = Watch(R"({"create_request":{"key":"YQ=="}})");
  const std::string text = Send("GET", "/metrics", "").body;
  EXPECT_NE(text.find("holdfast_meta_revision 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("holdfast_meta_watch_streams 1\n"), std::string::npos) << text;
}

TEST_F(GatewayServerTest, AUserIsToldThatThereAreNone) {
  Start();
  EtcdOptions options;
  options.endpoints = {{.host = "127.0.0.1", .port = gateway_->port()}};
  options.user = "app";
  ASSERT_OK_AND_ASSIGN(const auto store, EtcdMeta::Create(*transport_, RealClock(), options));
  EXPECT_OK(store->Put("k", "v", {}));
}

TEST_F(GatewayServerTest, MoreRequestsThanMayWaitAreRefused) {
  Start({.pool = {.threads = 1, .waiting_max = 0}});
  EXPECT_EQ(Send("POST", "/v3/kv/range", R"({"key":"YQ=="})").status, 429);
}

// More than the buffers of both kernels and the server take together.
constexpr int kManyPuts = 150;
constexpr size_t kLargeValue = 100'000;

// A reader that is slow costs nothing but its place in the history.
TEST_F(GatewayServerTest, ASlowWatcherSeesEverythingThatTheHistoryStillHas) {
  Start();
  RawSocket slow = Watch(R"({"create_request":{"key":"cw==","start_revision":"1"}})");
  slow.SetReceiveBuffer(64 << 10);
  for (int i = 0; i < kManyPuts; ++i) ASSERT_OK(meta_.Put("s", std::string(kLargeValue, 'x'), {}));
  const std::string all = slow.ReadUntil(fmt::format(R"("version":"{}")", kManyPuts));
  EXPECT_GT(all.size(), kManyPuts * kLargeValue);
  for (int i = 1; i <= kManyPuts; ++i) {
    EXPECT_NE(all.find(fmt::format(R"("version":"{}")", i)), std::string::npos) << i;
  }
  EXPECT_NE(Send("GET", "/metrics", "").body.find("slow_readers_total 0\n"), std::string::npos);
}

TEST_F(GatewayServerTest, ASlowWatcherIsToldWhenItsPlaceInTheHistoryIsGone) {
  Start();
  RawSocket slow = Watch(R"({"create_request":{"key":"cw==","start_revision":"1"}})");
  slow.SetReceiveBuffer(64 << 10);
  for (int i = 0; i < kManyPuts; ++i) ASSERT_OK(meta_.Put("s", std::string(kLargeValue, 'x'), {}));
  const uint64_t newest = meta_.published_revision();
  ASSERT_OK(meta_.Compact(newest, {}));
  const std::string all = slow.ReadUntil("compact_revision\":");
  EXPECT_TRUE(slow.ReadUntil("}").starts_with(fmt::format("\"{}\"", newest)));
  EXPECT_NE(all.find(R"("canceled":true)"), std::string::npos);
}

TEST_F(GatewayServerTest, AStopEndsWatchesAndAnswersWhatCame) {
  Start();
  RawSocket watch = Watch(R"({"create_request":{"key":"YQ=="}})");
  watch.ReadUntil("\"created\":true}}\n");
  gateway_->Stop(absl::Seconds(20));
  EXPECT_TRUE(watch.ReadToEnd().ends_with("0\r\n\r\n"));
}

TEST_F(GatewayServerTest, AReaderThatGoesIsForgotten) {
  Start();
  {
    RawSocket watch = Watch(R"({"create_request":{"key":"YQ=="}})");
    watch.ReadUntil("\n");
  }
  while (Send("GET", "/metrics", "").body.find("holdfast_meta_watch_streams 0\n") ==
         std::string::npos) {
  }
}

}  // namespace
}  // namespace holdfast
