// Requests and answers as etcd 3.4 was recorded, and the shapes of 3.5 and 3.6.
#include "meta/backends/etcd.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr char kHeader[] = R"("header":{"cluster_id":"14841639068965178418",)"
                           R"("member_id":"10276657743932975437","revision":"15","raft_term":"2"})";

StatusOr<Json> Answer(int status, const std::string& body) {
  return EtcdAnswer({.status = status, .headers = {}, .body = body});
}
Json Parsed(const std::string& body) { return Answer(200, body).value(); }

TEST(EtcdRequestTest, ARangeNamesItsKeysAsEtcdDoes) {
  EXPECT_EQ(EtcdRange({.range = KeyRange::Only("a/1")}).body, R"({"key":"YS8x"})");
  EXPECT_EQ(EtcdRange({.range = KeyRange::Prefix("a/")}).body,
            R"({"key":"YS8=","range_end":"YTA="})");
  // No key is empty, and "\0" as the end means that there is none.
  EXPECT_EQ(EtcdRange({.range = KeyRange::All()}).body, R"({"key":"AA==","range_end":"AA=="})");
  EXPECT_EQ(EtcdRange({.range = KeyRange::Prefix("\xff")}).body,
            R"({"key":"/w==","range_end":"AA=="})");
  EXPECT_EQ(EtcdRange({.range = KeyRange::Only("a"),
                       .revision = 9007199254740993,
                       .limit = 2,
                       .count_only = true})
                .body,
            R"({"key":"YQ==","revision":"9007199254740993","limit":"2","count_only":true})");
}

TEST(EtcdRequestTest, ATransactionCarriesItsComparesAndBothBranches) {
  MvccTxn txn;
  txn.compares.push_back(
      {.range = KeyRange::Only("m/leader"), .target = MvccCompare::Target::kMod, .number = 14});
  txn.compares.push_back({.range = KeyRange::Only("k"),
                          .target = MvccCompare::Target::kValue,
                          .op = MvccCompare::Op::kNotEqual,
                          .value = "v"});
  txn.success.push_back(MvccOp::Put("k", "v", uint64_t{1} << 63));
  txn.success.push_back(MvccOp::Delete(KeyRange::Only("d")));
  txn.failure.push_back(MvccOp::Read({.range = KeyRange::Only("k")}));
  EXPECT_EQ(EtcdTxn(txn).path, "/kv/txn");
  EXPECT_EQ(
      EtcdTxn(txn).body,
      R"({"compare":[{"key":"bS9sZWFkZXI=","target":"MOD","result":"EQUAL","mod_revision":"14"},)"
      R"({"key":"aw==","target":"VALUE","result":"NOT_EQUAL","value":"dg=="}],)"
      R"("success":[{"request_put":{"key":"aw==","value":"dg==","lease":"9223372036854775808"}},)"
      R"({"request_delete_range":{"key":"ZA=="}}],)"
      R"("failure":[{"request_range":{"key":"aw=="}}]})");
}

TEST(EtcdRequestTest, LeasesTokensAndWatches) {
  EXPECT_EQ(EtcdLeaseGrant(30).body, R"({"TTL":"30"})");
  EXPECT_EQ(EtcdLeaseKeepAlive(7587).body, R"({"ID":"7587"})");
  EXPECT_EQ(EtcdLeaseRevoke(7587).path, "/lease/revoke");
  EXPECT_EQ(EtcdAuthenticate("a\"b", "p").body, R"({"name":"a\"b","password":"p"})");
  EXPECT_EQ(
      EtcdWatchBody({{.id = 7, .range = KeyRange::Prefix("w/"), .from = 28},
                     {.id = 9, .range = KeyRange::Only("k"), .from = 1}}),
      R"({"create_request":{"key":"dy8=","range_end":"dzA=","start_revision":"28","watch_id":"7"}})"
      R"({"create_request":{"key":"aw==","start_revision":"1","watch_id":"9"}})"
      R"({"progress_request":{}})");
}

TEST(EtcdAnswerTest, NumbersComeAsTextOrNumberOrNotAtAll) {
  const Json answer = Parsed(std::string("{") + kHeader +
                             R"(,"kvs":[{"key":"YS8x","create_revision":"2","mod_revision":6,)"
                             R"("version":"4","value":"dg==","lease":"9041998971458465584"},)"
                             R"({"key":"YS9lbXB0eQ==","create_revision":"5","mod_revision":"5",)"
                             R"("version":"1"}],"more":true,"count":"5"})");
  ASSERT_OK_AND_ASSIGN(const EtcdHeader header, ReadEtcdHeader(answer));
  EXPECT_EQ(header.cluster_id, 14841639068965178418u);
  EXPECT_EQ(header.revision, 15u);
  ASSERT_OK_AND_ASSIGN(const MvccReadResult read, ReadEtcdRange(answer));
  ASSERT_EQ(read.entries.size(), 2u);
  EXPECT_EQ(*read.entries[0], (MvccEntry{.key = "a/1",
                                         .value = "v",
                                         .create_revision = 2,
                                         .mod_revision = 6,
                                         .version = 4,
                                         .lease = 9041998971458465584u}));
  EXPECT_EQ(read.entries[1]->value, "");
  EXPECT_EQ(read.count, 5u);
  EXPECT_TRUE(read.more);
  ASSERT_OK_AND_ASSIGN(const MvccReadResult none, ReadEtcdRange(Parsed(R"({"header":{}})")));
  EXPECT_EQ(none.count, 0u);
  EXPECT_FALSE(none.more);
}

TEST(EtcdAnswerTest, ATransactionIsReadByTheBranchThatRan) {
  MvccTxn txn;
  txn.success = {MvccOp::Put("k", "v"), MvccOp::Delete(KeyRange::Only("d"))};
  txn.failure = {MvccOp::Read({.range = KeyRange::Only("k")})};
  const std::string header = std::string("{") + kHeader;
  ASSERT_OK_AND_ASSIGN(
      const MvccTxnResult done,
      ReadEtcdTxn(
          Parsed(header +
                 R"(,"succeeded":true,)"
                 R"("responses":[{"response_put":{"header":{"revision":"15"}}},)"
                 R"({"response_delete_range":{"header":{"revision":"15"},"deleted":"1"}}]})"),
          txn));
  EXPECT_TRUE(done.succeeded);
  EXPECT_EQ(done.revision, 15u);
  EXPECT_EQ(done.results[1].deleted, 1u);
  ASSERT_OK_AND_ASSIGN(
      const MvccTxnResult not_done,
      ReadEtcdTxn(
          Parsed(header + R"(,"responses":[{"response_range":{"header":{"revision":"15"},)"
                          R"("kvs":[{"key":"aw==","create_revision":"1","mod_revision":"2",)"
                          R"("version":"2"}],"count":"1"}}]})"),
          txn));
  EXPECT_FALSE(not_done.succeeded);
  EXPECT_EQ(not_done.results[0].read.entries[0]->mod_revision, 2u);
  // Fewer results than operations: not an answer to this transaction.
  EXPECT_FAILS(ReadEtcdTxn(Parsed(header + R"(,"succeeded":true,"responses":[]})"), txn),
               kUnavailable, kUnknownOutcome);
}

TEST(EtcdAnswerTest, LeasesThatEndedHaveNoTtl) {
  EXPECT_EQ(ReadEtcdLease(Parsed(R"({"ID":"7588","TTL":"2"})"))->ttl_seconds, 2);
  EXPECT_EQ(ReadEtcdKeptLease(Parsed(R"({"result":{"ID":"7587","TTL":"5"}})"))->ttl_seconds, 5);
  EXPECT_EQ(ReadEtcdKeptLease(Parsed(R"({"result":{"ID":"999"}})"))->ttl_seconds, 0);
  EXPECT_EQ(ReadEtcdLease(Parsed(R"({"ID":"999","TTL":"-1"})"))->ttl_seconds, 0);
  EXPECT_FAILS(ReadEtcdLease(Parsed("{}")), kUnavailable, kUnknownOutcome);
}

// Status and shape of a refusal differ between versions; its code and text do not.
TEST(EtcdAnswerTest, RefusalsAreTheSameInEveryVersion) {
  const auto refusal = [](int status, const std::string& body) {
    return RefusalOf(Answer(status, body).status());
  };
  for (const char* members :
       {R"("error":"TEXT","message":"TEXT","code":CODE)", R"("error":"TEXT","code":CODE)",
        R"("code":CODE,"message":"TEXT","details":[])"}) {
    const auto body = [&](const std::string& text, int code) {
      std::string filled = "{" + std::string(members) + "}";
      for (size_t at; (at = filled.find("TEXT")) != std::string::npos;) filled.replace(at, 4, text);
      return filled.replace(filled.find("CODE"), 4, std::to_string(code));
    };
    EXPECT_EQ(refusal(400, body("etcdserver: mvcc: required revision has been compacted", 11)),
              MvccRefusal::kCompacted);
    EXPECT_EQ(refusal(404, body("etcdserver: requested lease not found", 5)),
              MvccRefusal::kLeaseNotFound);
    EXPECT_EQ(refusal(400, body("etcdserver: request is too large", 3)), MvccRefusal::kTooLarge);
    EXPECT_EQ(refusal(429, body("grpc: received message larger than max (1 vs. 0)", 8)),
              MvccRefusal::kTooLarge);
    for (const int status : {412, 400}) {
      EXPECT_EQ(refusal(status, body("etcdserver: lease already exists", 9)),
                MvccRefusal::kLeaseExists);
      EXPECT_TRUE(SaysAuthIsOff(
          Answer(status, body("etcdserver: authentication is not enabled", 9)).status()));
    }
    EXPECT_FAILS(Answer(429, body("etcdserver: mvcc: database space exceeded", 8)),
                 kResourceExhausted, kNotWritten);
    EXPECT_FAILS(Answer(401, body("etcdserver: invalid auth token", 16)), kUnauthenticated, kNone);
    EXPECT_FAILS(Answer(400, body("etcdserver: user name is empty", 3)), kUnauthenticated, kNone);
    EXPECT_FAILS(Answer(403, body("etcdserver: permission denied", 7)), kPermissionDenied, kNone);
    EXPECT_FAILS(Answer(503, body("etcdserver: request timed out", 14)), kUnavailable,
                 kUnknownOutcome);
    EXPECT_FAILS(Answer(504, body("context deadline exceeded", 4)), kUnavailable, kUnknownOutcome);
    EXPECT_FAILS(Answer(500, body("something", 2)), kUnavailable, kUnknownOutcome);
  }
}

TEST(EtcdAnswerTest, WhatIsNoAnswerOfEtcdIsUnknownUnlessItCannotHaveHappened) {
  EXPECT_FAILS(Answer(200, "<html>"), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(Answer(200, "[]"), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(Answer(200, R"({"kvs":)"), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(Answer(502, "bad gateway"), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(Answer(404, "Not Found"), kFailedPrecondition, kNone);
  EXPECT_FAILS(ReadEtcdRange(Parsed(R"({"kvs":{}})")), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(ReadEtcdRange(Parsed(R"({"kvs":[{"key":"***"}]})")), kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(ReadEtcdRange(Parsed(R"({"kvs":[{"key":"YQ==","version":"1x"}]})")), kUnavailable,
               kUnknownOutcome);
  EXPECT_FAILS(ReadEtcdRange(Parsed(R"({"count":1.5})")), kUnavailable, kUnknownOutcome);
}

TEST(EtcdWatchTest, FramesAsRecorded) {
  const auto frame = [](const std::string& result) {
    return ReadEtcdWatchFrame(R"({"result":{"header":{"revision":"31"})" + result + "}}").value();
  };
  EXPECT_TRUE(frame(R"(,"watch_id":"7","created":true)").created);
  EXPECT_EQ(frame(R"(,"watch_id":"7","created":true)").id, 7u);
  const EtcdWatchFrame events =
      frame(R"(,"watch_id":"7","events":[{"kv":{"key":"dy8x","create_revision":"28",)"
            R"("mod_revision":"28","version":"1","value":"QQ=="}},)"
            R"({"type":"DELETE","kv":{"key":"dy8x","mod_revision":"30"}},)"
            R"({"type":1,"kv":{"key":"dy8y","mod_revision":"31"}}])");
  ASSERT_EQ(events.events.size(), 3u);
  EXPECT_EQ(events.events[0].now->value, "A");
  EXPECT_FALSE(events.events[0].now->deleted());
  EXPECT_TRUE(events.events[1].now->deleted());
  EXPECT_TRUE(events.events[2].now->deleted());
  const EtcdWatchFrame compacted =
      frame(R"(,"watch_id":"7","canceled":true,"compact_revision":"20")");
  EXPECT_TRUE(compacted.canceled);
  EXPECT_EQ(compacted.compact_revision, 20u);
  const EtcdWatchFrame refused =
      frame(R"(,"watch_id":"-1","created":true,"canceled":true,"cancel_reason":"why")");
  EXPECT_EQ(refused.id, std::nullopt);
  EXPECT_EQ(refused.cancel_reason, "why");
  EXPECT_FALSE(refused.progress);
  EXPECT_TRUE(frame(R"(,"watch_id":"-1")").progress);
  EXPECT_FALSE(frame(R"(,"watch_id":"7")").progress);
}

TEST(EtcdWatchTest, ErrorsInsideTheStreamOfBothShapes) {
  EXPECT_FAILS(
      ReadEtcdWatchFrame(
          R"({"error":{"grpc_code":1,"http_code":408,"message":"grpc: the client connection is closing","http_status":"Request Timeout"}})"),
      kUnavailable, kUnknownOutcome);
  EXPECT_FAILS(
      ReadEtcdWatchFrame(
          R"({"error":{"code":16,"message":"etcdserver: invalid auth token","details":[]}})"),
      kUnauthenticated, kNone);
  EXPECT_FALSE(ReadEtcdWatchFrame(R"({"result":)").ok());
  EXPECT_FALSE(ReadEtcdWatchFrame("{}").ok());
  EXPECT_FALSE(ReadEtcdWatchFrame(R"({"result":{"events":[{"type":"DELETE"}]}})").ok());
  EXPECT_FALSE(
      ReadEtcdWatchFrame(R"({"result":{"events":[{"kv":{"key":"YQ==","mod_revision":"3"}}]}})")
          .ok());
}

}  // namespace
}  // namespace holdfast
