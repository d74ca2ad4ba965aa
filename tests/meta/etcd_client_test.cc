// Where a call goes, how often, and what it comes to: with answers that are made up here.
#include "meta/etcd_client.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/sim/sim_clock.h"
#include "tests/support/faulty_transport.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

HttpResponse Answer(int revision, int cluster = 1) {
  return {.status = 200,
          .headers = {},
          .body = fmt::format(R"({{"header":{{"cluster_id":"{}","revision":"{}"}}}})", cluster,
                              revision)};
}
HttpResponse Refusal(int status, int code, std::string_view message) {
  return {.status = status,
          .headers = {},
          .body = fmt::format(R"({{"message":"{}","code":{}}})", message, code)};
}

class EtcdClientTest : public testing::Test {
 protected:
  EtcdClientTest() {
    options_.endpoints = {{"a", 1}, {"b", 2}, {"c", 3}};
    network_.before = [this](const HttpEndpoint& endpoint,
                             const HttpRequest& request) -> std::optional<FaultyTransport::Result> {
      if (request.target == "/v3/auth/authenticate") return auth_answer_;
      return answers_.at(endpoint.host);
    };
  }
  StatusOr<Json> Call(EtcdClient::Kind kind) {
    if (client_ == nullptr) client_ = std::make_unique<EtcdClient>(network_, clock_, options_);
    return client_->Call({"/kv/range", "{}"}, kind, clock_.Now() + absl::Seconds(9));
  }
  StatusOr<Json> Read() { return Call(EtcdClient::Kind::kRead); }
  StatusOr<Json> Write() { return Call(EtcdClient::Kind::kWrite); }
  // The hosts that were asked since the last call of this.
  std::string Asked() {
    std::string hosts;
    const auto sent = network_.sent();
    for (; seen_ < sent.size(); ++seen_) hosts += sent[seen_].endpoint.host;
    return hosts;
  }

  SimClock clock_;
  FaultyTransport network_{nullptr};
  EtcdOptions options_;
  std::map<std::string, FaultyTransport::Result> answers_ = {
      {"a", Answer(5)}, {"b", Answer(5)}, {"c", Answer(5)}};
  FaultyTransport::Result auth_answer_ =
      HttpResponse{.status = 200, .headers = {}, .body = R"({"token":"t1"})"};
  std::unique_ptr<EtcdClient> client_;
  size_t seen_ = 0;
};

TEST_F(EtcdClientTest, StaysWithTheEndpointThatAnswers) {
  EXPECT_OK(Read());
  EXPECT_OK(Write());
  EXPECT_EQ(Asked(), "aa");
}

TEST_F(EtcdClientTest, AReadGoesOnUntilSomebodyAnswers) {
  answers_.at("a") = FaultyTransport::NotSent();
  answers_.at("b") = FaultyTransport::Lost();
  EXPECT_OK(Read());
  EXPECT_EQ(Asked(), "abc");
  EXPECT_OK(Read());
  EXPECT_EQ(Asked(), "c");
}

// Proves: S3
TEST_F(EtcdClientTest, AWriteGoesOnOnlyWhereItWasNeverSent) {
  answers_.at("a") = FaultyTransport::NotSent();
  answers_.at("b") = FaultyTransport::Lost();
  EXPECT_FAILS(Write(), kUnavailable, kUnknownOutcome);
  EXPECT_EQ(Asked(), "ab");
  // The next call goes elsewhere.
  EXPECT_OK(Write());
  EXPECT_EQ(Asked(), "c");
}

// Proves: S2
TEST_F(EtcdClientTest, WhenNobodyCanBeReachedNothingHappenedAndThatIsTold) {
  for (auto& [host, answer] : answers_) answer = FaultyTransport::NotSent();
  EXPECT_FAILS(Write(), kUnavailable, kNone);
  EXPECT_EQ(Asked(), "abc");
  for (auto& [host, answer] : answers_) answer = FaultyTransport::Lost();
  EXPECT_FAILS(Read(), kUnavailable, kNone);
  EXPECT_EQ(Asked(), "abc");
}

TEST_F(EtcdClientTest, AServerErrorAfterAWriteIsUnknownAndARefusalIsNot) {
  answers_.at("a") = Refusal(503, 14, "etcdserver: request timed out");
  EXPECT_FAILS(Write(), kUnavailable, kUnknownOutcome);
  answers_.at("b") = HttpResponse{.status = 502, .headers = {}, .body = "<html>"};
  EXPECT_FAILS(Write(), kUnavailable, kUnknownOutcome);
  answers_.at("c") = Refusal(429, 8, "etcdserver: mvcc: database space exceeded");
  EXPECT_FAILS(Write(), kResourceExhausted, kNotWritten);
  EXPECT_EQ(Asked(), "abc");
}

TEST_F(EtcdClientTest, TheTokenGoesBareAndIsRenewedOnceWhenItIsRefused) {
  options_.user = "app";
  EXPECT_OK(Write());
  const HttpRequest request = network_.sent().back().request;
  EXPECT_EQ(*FindHeader(request.headers, "Authorization"), "t1");
  answers_.at("a") = Refusal(401, 16, "etcdserver: invalid auth token");
  auth_answer_ = HttpResponse{.status = 200, .headers = {}, .body = R"({"token":"t2"})"};
  EXPECT_FAILS(Write(), kUnauthenticated, kNone);
  EXPECT_EQ(network_.CountSent("/v3/auth/authenticate"), 2u);
  EXPECT_EQ(*FindHeader(network_.sent().back().request.headers, "Authorization"), "t2");
}

TEST_F(EtcdClientTest, AServerWithoutUsersIsUsedWithoutAToken) {
  options_.user = "app";
  auth_answer_ = Refusal(412, 9, "etcdserver: authentication is not enabled");
  EXPECT_OK(Write());
  EXPECT_OK(Write());
  EXPECT_EQ(network_.CountSent("/v3/auth/authenticate"), 1u);
  EXPECT_EQ(FindHeader(network_.sent().back().request.headers, "Authorization"), nullptr);
}

TEST_F(EtcdClientTest, AWrongPasswordIsToldAndNotTriedElsewhere) {
  options_.user = "app";
  auth_answer_ = Refusal(400, 3, "etcdserver: authentication failed, invalid user ID or password");
  EXPECT_FAILS(Write(), kInvalidArgument, kNone);
  EXPECT_EQ(Asked(), "a");
}

TEST_F(EtcdClientTest, AnAnswerFromThePastOrOfAnotherClusterIsNotTaken) {
  EXPECT_OK(Read());
  answers_.at("a") = Answer(4);
  EXPECT_FAILS(Read(), kFailedPrecondition, kForeign);
  EXPECT_FAILS(Write(), kUnavailable, kUnknownOutcome);
  answers_.at("a") = Answer(6, 2);
  EXPECT_FAILS(Read(), kFailedPrecondition, kForeign);
  answers_.at("a") = Answer(5);
  EXPECT_OK(Read());
}

TEST_F(EtcdClientTest, WithoutTimeNothingIsSent) {
  EtcdClient client(network_, clock_, options_);
  EXPECT_FAILS(client.Call({"/kv/txn", "{}"}, EtcdClient::Kind::kWrite, clock_.Now()), kUnavailable,
               kNone);
  EXPECT_EQ(Asked(), "");
}

}  // namespace
}  // namespace holdfast
