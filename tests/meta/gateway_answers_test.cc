// The exact text of answers; that etcd answers the same is shown by gateway_parity_test.cc.
#include "meta/gateway_answers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr GatewayIdentity kWho{.cluster_id = 14841639068965178418u, .member_id = 2};
constexpr char kHeader5[] = R"({"header":{"cluster_id":"14841639068965178418","member_id":"2",)"
                            R"("revision":"5","raft_term":"1"})";

MvccEntryPtr Entry(std::string key, std::string value, uint64_t revision) {
  return std::make_shared<const MvccEntry>(MvccEntry{.key = std::move(key),
                                                     .value = std::move(value),
                                                     .create_revision = 2,
                                                     .mod_revision = revision,
                                                     .version = 1});
}

TEST(GatewayAnswerTest, ZerosAreLeftOutAndNumbersAreText) {
  MvccReadResult read{.entries = {Entry("a/1", "v", 4), Entry("a/2", "", 5)}, .count = 2};
  EXPECT_EQ(
      GatewayRangeAnswer(kWho, 5, {}, read),
      std::string(kHeader5) +
          R"(,"kvs":[{"key":"YS8x","create_revision":"2","mod_revision":"4",)"
          R"("version":"1","value":"dg=="},)"
          R"({"key":"YS8y","create_revision":"2","mod_revision":"5","version":"1"}],"count":"2"})");
  EXPECT_EQ(GatewayRangeAnswer(kWho, 5, {}, {}), std::string(kHeader5) + "}");
}

TEST(GatewayAnswerTest, SortingAndSiftingComeBeforeTheLimit) {
  MvccReadResult read{.entries = {Entry("a", "", 7), Entry("b", "", 9), Entry("c", "", 8)},
                      .count = 3};
  const GatewayRange range{.keys_only = true,
                           .limit = 1,
                           .order = GatewayRange::Order::kDescend,
                           .target = GatewayRange::Target::kMod,
                           .mod_max = 8};
  EXPECT_EQ(GatewayRangeAnswer(kWho, 5, range, read),
            std::string(kHeader5) +
                R"(,"kvs":[{"key":"Yw==","create_revision":"2","mod_revision":"8","version":"1"}],)"
                R"("more":true,"count":"3"})");
}

TEST(GatewayAnswerTest, AWatchLineSaysWhatHappenedAndWhatWasThereBefore) {
  const auto gone = std::make_shared<const MvccEntry>(MvccEntry{.key = "k", .mod_revision = 5});
  EXPECT_EQ(
      GatewayWatchLine(kWho, 5, {.id = 7}, {{.now = gone, .before = Entry("k", "v", 4)}},
                       {.previous = true}),
      "{\"result\":" + std::string(kHeader5) +
          R"(,"watch_id":"7","events":[{"type":"DELETE","kv":{"key":"aw==","mod_revision":"5"},)"
          R"("prev_kv":{"key":"aw==","create_revision":"2",)"
          R"("mod_revision":"4","version":"1","value":"dg=="}}]}})"
          "\n");
}

TEST(GatewayAnswerTest, RefusalsCarryEtcdsCodeAndWords) {
  const HttpResponse refusal = GatewayRefusal(Refuse(MvccRefusal::kCompacted));
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(refusal.body,
            R"({"error":"etcdserver: mvcc: required revision has been compacted",)"
            R"("message":"etcdserver: mvcc: required revision has been compacted","code":11})");
  EXPECT_EQ(GatewayRefusal(Refuse(MvccRefusal::kLeaseNotFound)).status, 404);
  EXPECT_EQ(GatewayRefusal(Refuse(MvccRefusal::kLeaseExists)).status, 412);
  const HttpResponse full = GatewayRefusal(Exhausted(Detail::kDiskFull, "no space"));
  EXPECT_EQ(full.status, 429);
  EXPECT_NE(full.body.find("etcdserver: mvcc: database space exceeded"), std::string::npos);
  // A client must be able to tell that it may have happened.
  EXPECT_EQ(GatewayRefusal(Unavailable(Detail::kUnknownOutcome, "x")).status, 503);
  EXPECT_EQ(GatewayRefusal(Unavailable(Detail::kPoisoned, "x")).status, 503);
  EXPECT_EQ(GatewayStreamRefusal(Invalid("x")).status, 500);
}

}  // namespace
}  // namespace holdfast
