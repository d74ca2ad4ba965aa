// What the calls of MetaStore ask for, and what they make of the answers.
#include "meta/txn_meta.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Keeps what it is asked for and answers what it is told.
class ToldMeta final : public TxnMeta {
 public:
  StatusOr<ReadAnswer> Read(const MvccRead& read, const MetaCall& call) override {
    reads.push_back(read);
    timeouts.push_back(call.timeout);
    return answer;
  }
  StatusOr<MvccTxnResult> Execute(const MvccTxn& txn, const MetaCall& call) override {
    txns.push_back(txn);
    timeouts.push_back(call.timeout);
    return result;
  }
  absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(std::string_view, uint64_t,
                                                   std::function<void(const MetaNotice&)>,
                                                   const MetaCall&) override {
    return NotFound("no watches");
  }
  absl::StatusOr<MetaLease> GrantLease(absl::Duration, const MetaCall&) override {
    return NotFound("no leases");
  }
  absl::StatusOr<MetaLease> KeepAlive(uint64_t, const MetaCall&) override {
    return NotFound("no leases");
  }
  absl::Status RevokeLease(uint64_t, const MetaCall&) override { return NotFound("no leases"); }

  ReadAnswer answer;
  MvccTxnResult result;
  std::vector<MvccRead> reads;
  std::vector<MvccTxn> txns;
  std::vector<absl::Duration> timeouts;
};

TEST(TxnMetaTest, APageBeginsBehindTheLastKeyOfTheOneBefore) {
  ToldMeta meta;
  meta.answer.revision = 9;
  EXPECT_EQ(meta.List("k", {})->revision, 9u);
  EXPECT_EQ(meta.List("k", {.limit = 5, .after = "k7", .revision = 4})->revision, 4u)
      << "all pages are as of the first";
  ASSERT_OK(meta.List("k", {.after = "a"}));  // before the prefix
  ASSERT_EQ(meta.reads.size(), 3u);
  EXPECT_EQ(meta.reads[0].range.begin, "k");
  EXPECT_EQ(meta.reads[1].range.begin, std::string("k7\0", 3));
  EXPECT_EQ(meta.reads[1].limit, 5u);
  EXPECT_EQ(meta.reads[1].revision, 4u);
  EXPECT_EQ(meta.reads[2].range.begin, "k");
  EXPECT_EQ(meta.reads[0].range.end, meta.reads[1].range.end);
}

TEST(TxnMetaTest, WritesAreOneTransactionEachWithItsCondition) {
  ToldMeta meta;
  meta.result.succeeded = true;
  meta.result.revision = 7;
  const MetaWrite write{.request_id = "r", .lease = 3, .timeout = absl::Seconds(2)};
  EXPECT_EQ(*meta.Put("k", "v", write), 7u);
  EXPECT_EQ(*meta.PutIfAbsent("k", "v", write), 7u);
  EXPECT_EQ(*meta.CompareAndSet("k", 5, "v", write), 7u);
  ASSERT_EQ(meta.txns.size(), 3u);
  const std::vector<size_t> compares = {0, 1, 1};
  for (size_t i = 0; i < meta.txns.size(); ++i) {
    EXPECT_EQ(meta.txns[i].compares.size(), compares[i]);
    ASSERT_EQ(meta.txns[i].success.size(), 1u);
    EXPECT_EQ(meta.txns[i].success[0].lease, 3u);
    EXPECT_EQ(meta.timeouts[i], absl::Seconds(2));
  }
  meta.result.succeeded = false;
  EXPECT_FAILS(meta.PutIfAbsent("k", "v", write), kAborted, kConflict);
  EXPECT_FAILS(meta.CompareAndSet("k", 5, "v", write), kAborted, kConflict);
}

TEST(TxnMetaTest, ADeleteTellsAConflictFromAKeyThatIsNotThere) {
  ToldMeta meta;
  meta.result = {.succeeded = true, .results = {{.deleted = 1}}, .revision = 7};
  EXPECT_EQ(*meta.Delete("k", {}), 7u);
  EXPECT_EQ(*meta.DeleteAt("k", 5, {}), 7u);
  meta.result.results = {{.deleted = 0}};
  EXPECT_FAILS(meta.Delete("k", {}), kNotFound, kNone);
  EXPECT_FAILS(meta.DeleteAt("k", 0, {}), kNotFound, kNone);
  meta.result = {.succeeded = false, .results = {{.read = {.count = 1}}}, .revision = 7};
  EXPECT_FAILS(meta.DeleteAt("k", 5, {}), kAborted, kConflict);
  meta.result.results = {{.read = {.count = 0}}};
  EXPECT_FAILS(meta.DeleteAt("k", 5, {}), kNotFound, kNone);
}

TEST(TxnMetaTest, WhatIsNoKeyIsNotAskedFor) {
  ToldMeta meta;
  EXPECT_FAILS(meta.Get("", {}), kInvalidArgument, kNone);
  EXPECT_FAILS(meta.Delete("", {}), kInvalidArgument, kNone);
  EXPECT_FAILS(meta.DeleteAt("", 1, {}), kInvalidArgument, kNone);
  EXPECT_FAILS(meta.Put("", "v", {}), kInvalidArgument, kNone);
  EXPECT_TRUE(meta.reads.empty() && meta.txns.empty());
}

}  // namespace
}  // namespace holdfast
