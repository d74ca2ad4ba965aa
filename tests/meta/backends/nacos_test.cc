// Requests and answers as the sources of Nacos 2 (v1) and Nacos 3 (v3 admin) have them.
#include "meta/backends/nacos.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

const NacosPlace kV1Place{.api = NacosApi::kV1};
const NacosPlace kV3Place{.api = NacosApi::kV3};
const NacosPlace kV1Space{.api = NacosApi::kV1, .context = "/n", .space = "s-1", .group = "g"};
const NacosPlace kV3Space{.api = NacosApi::kV3, .context = "", .space = "s-1", .group = "g"};

HttpResponse Answer(int status, std::string body) {
  return {.status = status, .headers = {}, .body = std::move(body)};
}
std::string Header(const HttpRequest& request, std::string_view name) {
  const std::string* const value = FindHeader(request.headers, name);
  return value == nullptr ? "" : *value;
}

TEST(NacosRequestTest, AReadGoesToTheDatabase) {
  EXPECT_EQ(NacosGet(kV1Place, "k:a").target,
            "/nacos/v1/cs/configs?dataId=k%3Aa&group=holdfast&show=all");
  EXPECT_EQ(NacosGet(kV1Space, "k").target,
            "/n/v1/cs/configs?dataId=k&group=g&tenant=s-1&show=all");
  EXPECT_EQ(NacosGet(kV3Place, "k:a").target,
            "/nacos/v3/admin/cs/config?dataId=k%3Aa&groupName=holdfast");
  EXPECT_EQ(NacosGet(kV3Space, "k").target,
            "/v3/admin/cs/config?dataId=k&groupName=g&namespaceId=s-1");
}

TEST(NacosRequestTest, APublicationComparesByAHeader) {
  for (const NacosPlace& place : {kV1Place, kV3Place}) {
    const HttpRequest request = NacosPublish(place, "k:a", "holdfast 1 .ab-_", "0123");
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(Header(request, "casMd5"), "0123");
    EXPECT_EQ(Header(request, "Content-Type"), "application/x-www-form-urlencoded");
    EXPECT_EQ(request.body, std::string("dataId=k%3Aa&") +
                                (place.api == NacosApi::kV1 ? "group" : "groupName") +
                                "=holdfast&type=text&content=holdfast%201%20.ab-_");
  }
  EXPECT_EQ(NacosPublish(kV1Place, "k", "c", "0").target, "/nacos/v1/cs/configs");
  EXPECT_EQ(NacosPublish(kV3Place, "k", "c", "0").target, "/nacos/v3/admin/cs/config");
}

TEST(NacosRequestTest, ASearchIsByPrefixAndPage) {
  EXPECT_EQ(NacosSearch(kV1Place, "k:a", {.page = 2, .entries = 50}).target,
            "/nacos/v1/cs/configs?dataId=k%3Aa%2A&group=holdfast&search=blur&pageNo=2&pageSize=50");
  EXPECT_EQ(NacosSearch(kV3Space, "k", {}).target,
            "/v3/admin/cs/config/list?dataId=k%2A&groupName=g&namespaceId=s-1&search=blur&pageNo=1"
            "&pageSize=100");
}

TEST(NacosRequestTest, ALongPollNamesEachConfigWithWhatIsKnownOfIt) {
  const HttpRequest request =
      NacosListen(kV1Place, {{"k:a", "0a"}, {"k:b", "0b"}}, absl::Milliseconds(1500));
  EXPECT_EQ(request.target, "/nacos/v1/cs/configs/listener");
  EXPECT_EQ(Header(request, "Long-Pulling-Timeout"), "1500");
  EXPECT_EQ(request.body, "Listening-Configs=k%3Aa%02holdfast%020a%01k%3Ab%02holdfast%020b%01");
  EXPECT_EQ(NacosListen(kV1Space, {{"k", "0"}}, absl::Seconds(1)).body,
            "tenant=s-1&Listening-Configs=k%02g%020%02s-1%01");
}

TEST(NacosRequestTest, AUserLogsInAndShowsHisToken) {
  const HttpRequest v1 = NacosLogin(kV1Place, {.name = "u&", .password = "p="});
  EXPECT_EQ(v1.target, "/nacos/v1/auth/login");
  EXPECT_EQ(v1.body, "username=u%26&password=p%3D");
  EXPECT_EQ(NacosLogin(kV3Place, {}).target, "/nacos/v3/auth/user/login");
  HttpRequest get = NacosGet(kV1Place, "k"), publish = NacosPublish(kV1Place, "k", "c", "0"),
              admin = NacosGet(kV3Place, "k");
  AddNacosToken(NacosApi::kV1, "t+", get);
  AddNacosToken(NacosApi::kV1, "t+", publish);
  AddNacosToken(NacosApi::kV3, "t+", admin);
  EXPECT_TRUE(get.target.ends_with("&accessToken=t%2B"));
  EXPECT_TRUE(publish.target.ends_with("?accessToken=t%2B"));
  EXPECT_EQ(Header(admin, "accessToken"), "t+");
  EXPECT_EQ(*ReadNacosToken(Answer(200, R"({"accessToken":"t","tokenTtl":18000,)"
                                        R"("globalAdmin":true,"username":"nacos"})")),
            "t");
  EXPECT_FAILS(ReadNacosToken(Answer(403, "unknown user!")), kPermissionDenied, kNone);
}

TEST(NacosAnswerTest, AConfigOrNone) {
  const auto v1 = ReadNacosConfig(
      NacosApi::kV1,
      Answer(200, R"({"id":"7","dataId":"k:a","group":"g","content":"c","md5":"4a","tenant":"",)"
                  R"("appName":null,"type":"text","createTime":1,"modifyTime":2,"desc":null})"));
  const auto v3 = ReadNacosConfig(
      NacosApi::kV3,
      Answer(200, R"({"code":0,"message":"success","data":{"id":"7","namespaceId":"public",)"
                  R"("groupName":"g","dataId":"k:a","md5":"4a","type":"text","content":"c"}})"));
  for (const auto& config : {v1, v3}) {
    ASSERT_OK(config);
    ASSERT_TRUE(config->has_value());
    EXPECT_EQ((*config)->data_id, "k:a");
    EXPECT_EQ((*config)->md5, "4a");
    EXPECT_EQ((*config)->content, "c");
  }
  EXPECT_EQ(*ReadNacosConfig(NacosApi::kV1, Answer(200, "")), std::nullopt);
  EXPECT_EQ(*ReadNacosConfig(
                NacosApi::kV3,
                Answer(404, R"({"code":20004,"message":"resource not found","data":"Config not )"
                            R"(exist, please publish Config first."})")),
            std::nullopt);
}

TEST(NacosAnswerTest, APathThatIsNotThereIsNoAbsentConfig) {
  const std::string html = "<html>Not Found</html>";
  EXPECT_FAILS(ReadNacosConfig(NacosApi::kV1, Answer(404, html)), kFailedPrecondition, kNone);
  EXPECT_FAILS(ReadNacosConfig(NacosApi::kV3, Answer(404, html)), kFailedPrecondition, kNone);
  EXPECT_FAILS(ReadNacosPage(NacosApi::kV3, Answer(404, html)), kFailedPrecondition, kNone);
  EXPECT_FAILS(ReadNacosPublished(NacosApi::kV1, Answer(404, html)), kFailedPrecondition, kNone);
}

TEST(NacosAnswerTest, APublicationHappenedOrFoundAnotherContentOrNobodyKnows) {
  EXPECT_OK(ReadNacosPublished(NacosApi::kV1, Answer(200, "true")));
  EXPECT_OK(ReadNacosPublished(NacosApi::kV3,
                               Answer(200, R"({"code":0,"message":"success","data":true})")));
  EXPECT_FAILS(
      ReadNacosPublished(NacosApi::kV1,
                         Answer(500, "caused: Cas publish fail,server md5 may have changed.;")),
      kAborted, kConflict);
  EXPECT_FAILS(ReadNacosPublished(
                   NacosApi::kV3,
                   Answer(500, R"({"code":20005,"message":"resource conflict",)"
                               R"("data":"Cas publish fail, server md5 may have changed."})")),
               kAborted, kConflict);
  EXPECT_FAILS(ReadNacosPublished(NacosApi::kV1, Answer(200, "false")), kUnavailable,
               kUnknownOutcome);
  EXPECT_FAILS(ReadNacosPublished(NacosApi::kV1, Answer(500, "caused: PreparedStatementCallback")),
               kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(ReadNacosPublished(NacosApi::kV3, Answer(200, "true")), kUnavailable,
               kUnknownOutcome);
  EXPECT_FAILS(
      ReadNacosPublished(NacosApi::kV3,
                         Answer(200, R"({"code":30000,"message":"server error","data":null})")),
      kUnavailable, kUnknownOutcome);
}

TEST(NacosAnswerTest, ARefusalSaysWhatToDo) {
  const auto v1 = [](int status) { return ReadNacosPublished(NacosApi::kV1, Answer(status, "")); };
  EXPECT_FAILS(v1(400), kInvalidArgument, kNone);
  EXPECT_FAILS(v1(401), kUnauthenticated, kNone);
  EXPECT_FAILS(v1(403), kPermissionDenied, kNone);
  EXPECT_FAILS(v1(413), kResourceExhausted, kLimit);
  EXPECT_FAILS(v1(429), kResourceExhausted, kNotWritten);
  EXPECT_FAILS(v1(503), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(
      ReadNacosPublished(NacosApi::kV3,
                         Answer(500, R"({"code":5031,"message":"cluster capacity reach quota"})")),
      kResourceExhausted, kNotWritten);
  EXPECT_FAILS(
      ReadNacosPublished(NacosApi::kV3, Answer(403, R"({"code":10001,"message":"access denied"})")),
      kPermissionDenied, kNone);
  EXPECT_FAILS(
      ReadNacosPublished(NacosApi::kV3, Answer(400, R"({"code":20002,"message":"parameter"})")),
      kInvalidArgument, kNone);
}

TEST(NacosAnswerTest, APageTellsHowManyThereAre) {
  ASSERT_OK_AND_ASSIGN(
      const NacosPage v1,
      ReadNacosPage(NacosApi::kV1,
                    Answer(200, R"({"totalCount":3,"pageNumber":1,"pagesAvailable":2,"pageItems":)"
                                R"([{"id":"1","dataId":"k:a","group":"g","content":"c",)"
                                R"("md5":null,"tenant":"","appName":"","type":null},)"
                                R"({"id":"2","dataId":"k:b","group":"g","content":"d"}]})")));
  EXPECT_EQ(v1.total, 3u);
  ASSERT_EQ(v1.configs.size(), 2u);
  EXPECT_EQ(v1.configs[0].content, "c");
  EXPECT_EQ(v1.configs[0].md5, "");
  ASSERT_OK_AND_ASSIGN(
      const NacosPage v3,
      ReadNacosPage(NacosApi::kV3,
                    Answer(200, R"({"code":0,"message":"success","data":{"totalCount":1,)"
                                R"("pageNumber":1,"pagesAvailable":1,"pageItems":[{"id":"1",)"
                                R"("namespaceId":"public","groupName":"g","dataId":"k:a",)"
                                R"("md5":"4a"}]}})")));
  ASSERT_EQ(v3.configs.size(), 1u);
  EXPECT_EQ(v3.configs[0].content, std::nullopt);
  EXPECT_EQ(v3.configs[0].md5, "4a");
  for (const char* body : {"", "[]", "{}", R"({"totalCount":-1,"pageItems":[]})",
                           R"({"totalCount":1})", R"({"totalCount":1,"pageItems":[{}]})"}) {
    EXPECT_FAILS(ReadNacosPage(NacosApi::kV1, Answer(200, body)), kUnavailable, kUnknownOutcome)
        << body;
  }
}

TEST(NacosAnswerTest, ALongPollNamesWhatHasChanged) {
  const auto names = [](const char* body) { return ReadNacosListened(Answer(200, body)); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(*names(""), Names());
  EXPECT_EQ(*names("k%3Aa%02g%01\r\n"), Names{"k:a"});
  EXPECT_EQ(*names("k%3Aa%02g%02s-1%01k%3ab%02g%02s-1%01\n"), (Names{"k:a", "k:b"}));
  EXPECT_FAILS(names("k%01"), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(names("k%0"), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(names("k%0x%01"), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(ReadNacosListened(Answer(503, "")), kUnavailable, kUnknownOutcome);
}

}  // namespace
}  // namespace holdfast
