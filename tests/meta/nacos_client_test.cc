#include "meta/nacos_client.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "tests/sim/sim_clock.h"
#include "tests/support/faulty_transport.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Result = FaultyTransport::Result;

HttpResponse Answer(int status, std::string body = "") {
  return {.status = status, .headers = {}, .body = std::move(body)};
}
HttpResponse Token(const std::string& token) {
  return Answer(200, R"({"accessToken":")" + token + R"(","tokenTtl":18000})");
}

class NacosClientTest : public testing::Test {
 protected:
  NacosClientTest() : network_(nullptr) {
    network_.before = [this](const HttpEndpoint& endpoint, const HttpRequest& request) {
      const bool login = request.target.find("/auth/") != std::string::npos;
      asked_ += login ? "login@" + endpoint.host + " " : endpoint.host + " ";
      if (login) return std::optional<Result>(login_);
      if (request.target.find("accessToken=old") != std::string::npos) {
        return std::optional<Result>(Answer(403));
      }
      return std::optional<Result>(answers_.at(endpoint.host));
    };
    options_.endpoints = {{.host = "a", .port = 1}, {.host = "b", .port = 1}};
    options_.place.api = NacosApi::kV1;
  }
  StatusOr<HttpResponse> Call(NacosClient::Kind kind) {
    if (!client_.has_value()) client_.emplace(network_, clock_, options_);
    return client_->Call({.target = "/x"}, kind, clock_.Now() + absl::Seconds(5));
  }
  StatusOr<HttpResponse> Read() { return Call(NacosClient::Kind::kRead); }
  StatusOr<HttpResponse> Write() { return Call(NacosClient::Kind::kWrite); }

  SimClock clock_;
  FaultyTransport network_;
  NacosOptions options_;
  std::optional<NacosClient> client_;
  std::map<std::string, Result> answers_{{"a", Answer(200, "of a")}, {"b", Answer(200, "of b")}};
  Result login_ = Token("new");
  std::string asked_;
};

TEST_F(NacosClientTest, WhoeverAnswersIsAskedAgain) {
  answers_.at("a") = FaultyTransport::NotSent();
  EXPECT_EQ(Write()->body, "of b");
  EXPECT_EQ(Read()->body, "of b");
  EXPECT_EQ(asked_, "a b b ");
}

// Proves: S3
TEST_F(NacosClientTest, AWriteThatMayHaveArrivedIsNotSentAgain) {
  answers_.at("a") = FaultyTransport::Lost();
  EXPECT_FAILS(Write(), kUnavailable, kUnknownOutcome);
  EXPECT_EQ(asked_, "a ");
}

TEST_F(NacosClientTest, AReadIsRepeatedElsewhereAndNothingAboutItIsUnknown) {
  answers_.at("a") = FaultyTransport::Lost();
  EXPECT_EQ(Read()->body, "of b");
  answers_.at("b") = Answer(503);
  EXPECT_FAILS(Read(), kUnavailable, kNone);
  EXPECT_EQ(asked_, "a b b a ");
}

TEST_F(NacosClientTest, TheAnswerOfAFailedServerToAWriteIsForTheReaderToJudge) {
  answers_.at("a") = Answer(500, "why");
  EXPECT_EQ(Write()->body, "why");
  EXPECT_EQ(asked_, "a ");
}

TEST_F(NacosClientTest, ATokenIsTakenOnceAndRenewedWhenItIsRefused) {
  options_.user = "u";
  login_ = Token("old");
  EXPECT_EQ(Write()->status, 403);
  EXPECT_EQ(asked_, "login@a a login@a a ");
  login_ = Token("new");
  asked_.clear();
  EXPECT_EQ(Write()->body, "of a");
  EXPECT_EQ(Read()->body, "of a");
  EXPECT_EQ(asked_, "a login@a a a ");
}

TEST_F(NacosClientTest, AUserThatItDoesNotKnowIsTold) {
  options_.user = "u";
  login_ = Answer(403, "unknown user!");
  EXPECT_FAILS(Write(), kPermissionDenied, kNone);
  EXPECT_EQ(asked_, "login@a ");
}

TEST_F(NacosClientTest, ALongPollIsAskedOnceAndItsSilenceAvoidsNobody) {
  answers_.at("a") = FaultyTransport::Lost();
  client_.emplace(network_, clock_, options_);
  EXPECT_FAILS(client_->Wait({.target = "/x"}, clock_.Now() + absl::Seconds(1)), kUnavailable,
               kNone);
  answers_.at("a") = Answer(200, "of a");
  EXPECT_EQ(Read()->body, "of a");
  EXPECT_EQ(asked_, "a a ");
}

TEST_F(NacosClientTest, WithoutTimeNothingIsSent) {
  client_.emplace(network_, clock_, options_);
  EXPECT_FAILS(client_->Call({.target = "/x"}, NacosClient::Kind::kWrite, clock_.Now()),
               kUnavailable, kNone);
  EXPECT_EQ(asked_, "");
}

}  // namespace
}  // namespace holdfast
