// EtcdMeta on the packaged etcd as clusters run it: over TLS, and only for clients with a
// certificate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "holdfast/store_factory.h"
#include "meta/etcd_meta.h"
#include "tests/meta/watch_log.h"
#include "tests/support/raw_socket.h"
#include "tests/support/real_etcd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/test_ca.h"

namespace holdfast {
namespace {

class EtcdTlsTest : public testing::Test {
 protected:
  EtcdTlsTest() {
    EXPECT_TRUE(etcd_.ready()) << "needs the package etcd-server";
    tls_.ca.path = ca_.path();
    tls_.cert.path = own_.cert;
    tls_.key.path = own_.key;
  }
  void Connect(std::vector<HttpEndpoint> endpoints) {
    meta_.reset();
    HttpClientOptions http;
    http.tls = tls_;
    EtcdOptions options;
    options.endpoints = std::move(endpoints);
    meta_ = *EtcdMeta::Create(NewHttpTransport(http).value(), RealClock(), options);
  }
  static HttpEndpoint At(uint16_t port) { return {.host = "127.0.0.1", .port = port, .tls = true}; }
  // What a start on this etcd says, with these files.
  Status Start(const SharedStoreOptions& files) {
    SharedStoreOptions options = files;
    options.backend = SharedBackend::kRemoteMeta;
    options.meta_endpoints = {EndpointUrl(etcd_.endpoint())};
    return MakeSharedStores(options, RealClock()).status();
  }

  TestCa ca_{"a test"};
  TestCa::Pair own_ = ca_.Issue({});
  RealEtcd etcd_{ca_.Issue({}), ca_.path()};
  TlsClientOptions tls_;
  std::unique_ptr<EtcdMeta> meta_;
};

TEST_F(EtcdTlsTest, ValuesLeasesAndWatchesPassAndOutliveARestartOfTheServer) {
  Connect({etcd_.endpoint()});
  WatchLog log(*meta_, "k", 1);
  ASSERT_OK_AND_ASSIGN(const uint64_t put, meta_->Put("k1", "1", {}));
  EXPECT_OK(meta_->CompareAndSet("k1", put, std::string(1'000'000, 'x'), {}));
  EXPECT_EQ(MetaResultOf(meta_->CompareAndSet("k1", put, "3", {}).status()), MetaResult::kConflict);
  ASSERT_OK_AND_ASSIGN(const MetaLease lease, meta_->GrantLease(absl::Seconds(60), {}));
  ASSERT_OK(meta_->Put("k2", "", {.lease = lease.id}));
  EXPECT_OK(meta_->KeepAlive(lease.id, {}));
  EXPECT_EQ(log.AwaitEvents(3).size(), 3u);
  etcd_.Kill();
  etcd_.Start();
  EXPECT_OK(meta_->RevokeLease(lease.id, {}));
  EXPECT_EQ(meta_->Get("k1", {})->value.size(), 1'000'000u);
  EXPECT_EQ(log.AwaitEvents(4).size(), 4u);
  EXPECT_FALSE(log.resynced());
}

TEST_F(EtcdTlsTest, AnotherEndpointTakesOver) {
  TcpProxy first(etcd_.endpoint().port), second(etcd_.endpoint().port);
  Connect({At(first.port()), At(second.port())});
  WatchLog log(*meta_, "k", 1);
  ASSERT_OK(meta_->Put("k1", "1", {}));
  log.AwaitEvents(1);
  first.Set(TcpProxy::Mode::kCut);
  // Refused in the handshake, it went nowhere; so did what a cut connection never took.
  EXPECT_EQ(meta_->Get("k1", {})->value, "1");
  ASSERT_OK(meta_->Put("k2", "2", {}));
  EXPECT_EQ(log.AwaitEvents(2).size(), 2u);
  log.Close();  // It goes before its Meta does.
  // One that is somebody else is passed over like one that is not there.
  RealEtcd stranger(TestCa("a stranger").Issue({}), ca_.path());
  Connect({stranger.endpoint(), etcd_.endpoint()});
  ASSERT_OK(meta_->Put("k3", "3", {}));
  EXPECT_EQ(meta_->Get("k3", {})->value, "3");
}

// Proves: S6
TEST_F(EtcdTlsTest, AStartThatCannotBeTrustedFailsAndSaysWhy) {
  const SharedStoreOptions good{
      .meta_ca_file = ca_.path(), .meta_cert_file = own_.cert, .meta_key_file = own_.key};
  EXPECT_OK(Start(good));
  const auto why = [&](const SharedStoreOptions& files) {
    const Status status = Start(files);
    EXPECT_FAILS(status, kUnavailable, kNone);
    EXPECT_THAT(Message(status), testing::StartsWith("shared.meta_endpoints: https://127.0.0.1:"));
    return std::string(Message(status));
  };
  TestCa stranger("a stranger");
  const TestCa::Pair unknown = stranger.Issue({});
  const TestCa::Pair old = ca_.Issue({.valid_from = -7200, .valid_to = -3600});
  EXPECT_THAT(why({.meta_ca_file = stranger.path()}),
              testing::HasSubstr("the server's certificate is of a CA that is not known here"));
  EXPECT_THAT(why({.meta_ca_file = ca_.path()}),
              testing::HasSubstr("the server refuses to go on without a certificate"));
  EXPECT_THAT(why({.meta_ca_file = ca_.path(),
                   .meta_cert_file = unknown.cert,
                   .meta_key_file = unknown.key}),
              testing::HasSubstr("the server refuses this certificate"));
  EXPECT_THAT(
      why({.meta_ca_file = ca_.path(), .meta_cert_file = old.cert, .meta_key_file = old.key}),
      testing::HasSubstr("the server refuses this certificate"));
}

}  // namespace
}  // namespace holdfast
