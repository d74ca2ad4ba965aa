// What clients may ask and how it is understood; that etcd understands the same is shown by
// gateway_parity_test.cc.
#include "meta/gateway_requests.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

Json Parsed(std::string_view text) { return ReadGatewayRequest(text).value(); }

TEST(GatewayRequestTest, ObjectsAreTakenOneAfterTheOther) {
  std::string_view body = " {\"a\":\"}\\\"{\"}\n{\"b\":[{}]} \n";
  EXPECT_NE((*TakeGatewayObject(body))->Find("a"), nullptr);
  EXPECT_NE((*TakeGatewayObject(body))->Find("b"), nullptr);
  EXPECT_FALSE(TakeGatewayObject(body)->has_value());
}

TEST(GatewayRequestTest, WhatIsNoObjectIsRefused) {
  for (const char* body : {"nope", "[]", "\"text\"", "1", "{\"a\":", "}", "{]", "{\"a\" 1}"}) {
    EXPECT_FAILS(ReadGatewayRequest(body), kInvalidArgument, kNone) << body;
  }
  EXPECT_OK(ReadGatewayRequest(""));
  EXPECT_OK(ReadGatewayRequest("{} and more"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{\"a\":";
  deep += "1" + std::string(100, '}');
  EXPECT_FAILS(ReadGatewayRequest(deep), kResourceExhausted, kLimit);
}

TEST(GatewayRequestTest, RangesAreKeysPrefixesAndEverything) {
  const auto range = [](const char* body) { return ReadGatewayRange(Parsed(body))->read.range; };
  EXPECT_EQ(range(R"({"key":"YQ=="})"), KeyRange::Only("a"));
  EXPECT_EQ(range(R"({"key":"YS8=","range_end":"YTA="})"), KeyRange::Prefix("a/"));
  EXPECT_EQ(range(R"({"key":"YQ==","rangeEnd":"AA=="})"), (KeyRange{.begin = "a", .end = ""}));
  EXPECT_FALSE(range(R"({"key":"Yg==","range_end":"YQ=="})").Holds("b"));
  EXPECT_EQ(RefusalOf(ReadGatewayRange(Parsed("{}")).status()), MvccRefusal::kEmptyKey);
}

TEST(GatewayRequestTest, WhatIsSortedIsReadWhole) {
  const GatewayRange sorted =
      *ReadGatewayRange(Parsed(R"({"key":"YQ==","limit":2,"sort_order":"DESCEND"})"));
  EXPECT_EQ(sorted.limit, 2u);
  EXPECT_EQ(sorted.read.limit, 0u);
  EXPECT_EQ(ReadGatewayRange(Parsed(R"({"key":"YQ==","limit":2})"))->read.limit, 2u);
}

TEST(GatewayRequestTest, MembersOfTheWrongKindAreRefused) {
  for (const char* body :
       {R"({"key":1})", R"({"key":"YQ"})", R"({"key":"YQ==","limit":"x"})",
        R"({"key":"YQ==","limit":1.5})", R"({"key":"YQ==","limit":"99999999999999999999"})",
        R"({"key":"YQ==","keys_only":"true"})", R"({"key":"YQ==","sort_order":"UP"})",
        R"({"key":"YQ==","sort_order":3})"}) {
    EXPECT_FAILS(ReadGatewayRange(Parsed(body)), kInvalidArgument, kNone) << body;
  }
  EXPECT_FALSE(ReadGatewayTxn(Parsed(R"({"success":{}})")).ok());
  EXPECT_FALSE(ReadGatewayTxn(Parsed(R"({"success":[{}]})")).ok());
  EXPECT_FALSE(ReadGatewayTxn(Parsed(R"({"compare":[1]})")).ok());
  EXPECT_FALSE(ReadGatewayWatch(Parsed(R"({"create_request":{"filters":["ALL"]}})")).ok());
}

TEST(GatewayRequestTest, APutKeepsIdsOf64Bits) {
  const MvccOp op = *ReadGatewayPut(Parsed(R"({"key":"YQ==","lease":"9223372036854775807"})"));
  EXPECT_EQ(op.lease, 9223372036854775807u);
  EXPECT_EQ(ReadGatewayPut(Parsed(R"({"key":"YQ==","lease":9007199254740993})"))->lease,
            9007199254740993u);
}

TEST(GatewayRequestTest, AWatchBodySaysOneThingAfterAnother) {
  const GatewayWatchRequest create =
      *ReadGatewayWatch(Parsed(R"({"create_request":{"key":"YQ==","start_revision":"5",)"
                               R"("watch_id":"7","prev_kv":true,"filters":["NOPUT",1]}})"));
  ASSERT_TRUE(create.create.has_value());
  EXPECT_EQ(create.create->id, 7);
  EXPECT_EQ(create.create->from, 5u);
  EXPECT_TRUE(create.create->previous && create.create->no_puts && create.create->no_deletes);
  EXPECT_EQ(ReadGatewayWatch(Parsed(R"({"cancel_request":{"watch_id":"7"}})"))->cancel, 7);
  EXPECT_TRUE(ReadGatewayWatch(Parsed(R"({"progress_request":{}})"))->progress);
  EXPECT_FALSE(ReadGatewayWatch(Parsed(R"({"create_request":{"key":"Yg==","range_end":"YQ=="}})"))
                   ->create->range.has_value());
}

}  // namespace
}  // namespace holdfast
