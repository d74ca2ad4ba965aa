#include "meta/mvcc_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class MvccPlanTest : public testing::Test {
 protected:
  MvccPlanTest() { state_.BeginServing(0, absl::ZeroDuration()); }

  StatusOr<MvccTxnResult> Execute(const MvccTxn& txn) {
    ASSIGN_OR_RETURN(MvccPlan plan, PlanTxn(state_, txn, {}));
    for (const MvccChange& change : plan.changes) state_.Apply(change, absl::ZeroDuration());
    return std::move(plan.result);
  }
  StatusOr<MvccTxnResult> Execute(std::vector<MvccOp> ops) {
    MvccTxn txn;
    txn.success = std::move(ops);
    return Execute(txn);
  }
  MvccRefusal Refused(std::vector<MvccOp> ops) {
    return RefusalOf(Execute(std::move(ops)).status());
  }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(Execute({MvccOp::Put(key, value)}));
  }
  bool Holds(MvccCompare compare) {
    MvccTxn txn;
    txn.compares.push_back(std::move(compare));
    return Execute(txn)->succeeded;
  }

  MvccState state_{{}};
};

MvccOp Nested(MvccTxn txn) {
  MvccOp op;
  op.kind = MvccOp::Kind::kTxn;
  op.branches.push_back(std::move(txn));
  return op;
}

TEST_F(MvccPlanTest, APutRaisesRevisionAndVersionAndKeepsItsBirth) {
  Put("k", "1");
  Put("k", "2");
  const MvccEntryPtr entry = state_.Find("k");
  EXPECT_EQ(
      *entry,
      (MvccEntry{.key = "k", .value = "2", .create_revision = 2, .mod_revision = 3, .version = 2}));
}

TEST_F(MvccPlanTest, AllChangesOfATransactionShareARevision) {
  const auto result = Execute({MvccOp::Put("a", "1"), MvccOp::Put("b", "1")});
  EXPECT_EQ(result->revision, 2u);
  EXPECT_EQ(state_.Find("a")->mod_revision, 2u);
  EXPECT_EQ(state_.Find("b")->mod_revision, 2u);
  // What changes nothing takes no revision.
  EXPECT_EQ(Execute({MvccOp::Delete(KeyRange::Only("never"))})->revision, 2u);
  EXPECT_EQ(state_.revision(), 2u);
}

TEST_F(MvccPlanTest, ComparesDecideWhichBranchRuns) {
  Put("k", "m");
  Put("k", "n");
  const KeyRange k = KeyRange::Only("k");
  using Target = MvccCompare::Target;
  using Op = MvccCompare::Op;
  EXPECT_TRUE(Holds({.range = k, .target = Target::kMod, .number = 3}));
  EXPECT_FALSE(Holds({.range = k, .target = Target::kMod, .number = 2}));
  EXPECT_TRUE(Holds({.range = k, .target = Target::kCreate, .op = Op::kLess, .number = 3}));
  EXPECT_TRUE(Holds({.range = k, .target = Target::kVersion, .op = Op::kGreater, .number = 1}));
  EXPECT_TRUE(Holds({.range = k, .target = Target::kLease, .op = Op::kNotEqual, .number = 5}));
  EXPECT_TRUE(Holds({.range = k, .target = Target::kValue, .value = "n"}));
  EXPECT_TRUE(Holds({.range = k, .target = Target::kValue, .op = Op::kLess, .value = "o"}));
  // A key that is not there is all zeros, and has no value.
  const KeyRange none = KeyRange::Only("none");
  EXPECT_TRUE(Holds({.range = none, .target = Target::kMod, .number = 0}));
  EXPECT_TRUE(Holds({.range = none, .target = Target::kMod, .op = Op::kNotEqual, .number = 7}));
  EXPECT_FALSE(Holds({.range = none, .target = Target::kValue, .value = ""}));
  // Over a range, for every key in it.
  Put("l", "x");
  const KeyRange both{.begin = "k", .end = "m"};
  EXPECT_TRUE(Holds({.range = both, .target = Target::kMod, .op = Op::kGreater, .number = 2}));
  EXPECT_FALSE(Holds({.range = both, .target = Target::kMod, .op = Op::kGreater, .number = 3}));
}

TEST_F(MvccPlanTest, ReadsSeeWhatTheOperationsBeforeThemDid) {
  Put("a", "1");
  Put("b", "1");
  const MvccRead all{.range = KeyRange::All()};
  const auto result =
      Execute({MvccOp::Read(all), MvccOp::Put("c", "2"), MvccOp::Delete(KeyRange::Only("a")),
               MvccOp::Read(all), MvccOp::Read({.range = KeyRange::All(), .limit = 1}),
               MvccOp::Read({.range = KeyRange::All(), .count_only = true})});
  ASSERT_OK(result);
  const auto& results = result->results;
  EXPECT_EQ(results[0].read.count, 2u);
  EXPECT_EQ(results[2].deleted, 1u);
  ASSERT_EQ(results[3].read.entries.size(), 2u);
  EXPECT_EQ(results[3].read.entries[1]->key, "c");
  EXPECT_EQ(results[3].read.entries[1]->mod_revision, result->revision);
  EXPECT_TRUE(results[4].read.more);
  EXPECT_EQ(results[5].read.count, 2u);
  EXPECT_TRUE(results[5].read.entries.empty());
}

TEST_F(MvccPlanTest, WhatWasThereIsAnsweredWhereItIsAskedFor) {
  MvccOp put = MvccOp::Put("k", "1");
  put.previous = true;
  EXPECT_TRUE(Execute({put})->results[0].previous.empty());
  EXPECT_EQ(Execute({put})->results[0].previous.at(0)->version, 1u);
  MvccOp erase = MvccOp::Delete(KeyRange::Prefix("k"));
  erase.previous = true;
  EXPECT_EQ(Execute({erase})->results[0].previous.at(0)->version, 2u);
}

TEST_F(MvccPlanTest, APutMayKeepValueOrLease) {
  state_.Apply(MvccLeaseGrant{.id = 7, .ttl = absl::Seconds(1)}, absl::ZeroDuration());
  ASSERT_OK(Execute({MvccOp::Put("k", "v", 7)}));
  MvccOp keep_lease = MvccOp::Put("k", "w");
  keep_lease.keep_lease = true;
  ASSERT_OK(Execute({keep_lease}));
  EXPECT_EQ(state_.Find("k")->lease, 7u);
  MvccOp keep_value = MvccOp::Put("k", "");
  keep_value.keep_value = true;
  ASSERT_OK(Execute({keep_value}));
  EXPECT_EQ(state_.Find("k")->value, "w");
  EXPECT_EQ(state_.Find("k")->lease, 0u);
  keep_value.value = "given";
  EXPECT_EQ(Refused({keep_value}), MvccRefusal::kValueGiven);
  keep_lease.lease = 7;
  EXPECT_EQ(Refused({keep_lease}), MvccRefusal::kLeaseGiven);
  MvccOp nothing_there = MvccOp::Put("none", "");
  nothing_there.keep_value = true;
  EXPECT_EQ(Refused({nothing_there}), MvccRefusal::kKeyNotFound);
  EXPECT_EQ(Refused({MvccOp::Put("k", "v", 8)}), MvccRefusal::kLeaseNotFound);
}

TEST_F(MvccPlanTest, NestedTransactionsCompareWithTheStateBefore) {
  MvccTxn inner;
  inner.compares.push_back(
      {.range = KeyRange::Only("a"), .target = MvccCompare::Target::kVersion, .number = 0});
  inner.success.push_back(MvccOp::Put("b", "absent"));
  inner.failure.push_back(MvccOp::Put("b", "there"));
  const auto result = Execute({MvccOp::Put("a", "1"), Nested(inner)});
  ASSERT_OK(result);
  EXPECT_TRUE(result->results[1].succeeded);
  EXPECT_EQ(state_.Find("b")->value, "absent");
  EXPECT_EQ(state_.Find("b")->mod_revision, state_.Find("a")->mod_revision);
  EXPECT_FALSE(Execute({Nested(inner)})->results[0].succeeded);
  EXPECT_EQ(state_.Find("b")->value, "there");
}

TEST_F(MvccPlanTest, AKeyIsChangedOnceInABranchWhicheverNestedOnesRun) {
  MvccTxn puts_k, deletes_k;
  puts_k.success.push_back(MvccOp::Put("k", "1"));
  puts_k.failure.push_back(MvccOp::Put("k", "2"));
  deletes_k.failure.push_back(MvccOp::Delete(KeyRange::Prefix("k")));
  EXPECT_EQ(Refused({MvccOp::Put("k", "1"), MvccOp::Put("k", "2")}), MvccRefusal::kDuplicateKey);
  EXPECT_EQ(Refused({MvccOp::Put("k", "1"), MvccOp::Delete(KeyRange::All())}),
            MvccRefusal::kDuplicateKey);
  EXPECT_EQ(Refused({MvccOp::Put("k", "1"), Nested(puts_k)}), MvccRefusal::kDuplicateKey);
  EXPECT_EQ(Refused({Nested(puts_k), Nested(puts_k)}), MvccRefusal::kDuplicateKey);
  EXPECT_EQ(Refused({MvccOp::Put("kk", "1"), Nested(deletes_k)}), MvccRefusal::kDuplicateKey);
  EXPECT_OK(Execute({Nested(puts_k)}));
  EXPECT_OK(Execute({MvccOp::Put("j", "1"), Nested(deletes_k)}));
  // Deleting twice over each other counts each key once.
  Put("k", "1");
  const auto twice =
      Execute({MvccOp::Delete(KeyRange::Only("k")), MvccOp::Delete(KeyRange::All())});
  EXPECT_EQ(twice->results[0].deleted, 1u);
  EXPECT_EQ(twice->results[1].deleted, 1u);
}

TEST_F(MvccPlanTest, WhatIsOverALimitOrHasNoKeyIsRefused) {
  EXPECT_EQ(Refused({MvccOp::Put("", "v")}), MvccRefusal::kEmptyKey);
  EXPECT_EQ(Refused({MvccOp::Read({.range = KeyRange::Only("")})}), MvccRefusal::kEmptyKey);
  EXPECT_EQ(Refused({MvccOp::Delete(KeyRange::Only(""))}), MvccRefusal::kEmptyKey);
  EXPECT_EQ(Refused({MvccOp::Put(std::string(65'537, 'k'), "")}), MvccRefusal::kTooLarge);
  EXPECT_EQ(Refused({MvccOp::Put("k", std::string(1536 * 1024, 'x'))}), MvccRefusal::kTooLarge);
  std::vector<MvccOp> many;
  for (int i = 0; i < 129; ++i) many.push_back(MvccOp::Put(std::to_string(i), ""));
  EXPECT_EQ(Refused(many), MvccRefusal::kTooManyOps);
  many.pop_back();
  EXPECT_OK(Execute(many));
}

TEST_F(MvccPlanTest, GrantsAreCheckedAndEndsTakeTheKeysWithThem) {
  EXPECT_EQ(RefusalOf(PlanGrant(state_, 7, absl::ZeroDuration()).status()),
            MvccRefusal::kLeaseTtlTooLarge);
  EXPECT_EQ(RefusalOf(PlanGrant(state_, 7, absl::Seconds(9'000'000'001)).status()),
            MvccRefusal::kLeaseTtlTooLarge);
  ASSERT_OK_AND_ASSIGN(const MvccChange grant, PlanGrant(state_, 7, absl::Seconds(9)));
  state_.Apply(grant, absl::ZeroDuration());
  EXPECT_EQ(RefusalOf(PlanGrant(state_, 7, absl::Seconds(9)).status()), MvccRefusal::kLeaseExists);
  for (const char* key : {"a", "b", "c"}) ASSERT_OK(Execute({MvccOp::Put(key, "", 7)}));
  // In parts where it has too many; it ends with the last.
  ASSERT_OK_AND_ASSIGN(MvccPlan part, PlanLeaseEnd(state_, 7, {.keys_max = 2}));
  EXPECT_EQ(part.changes.size(), 2u);
  for (const MvccChange& change : part.changes) state_.Apply(change, absl::ZeroDuration());
  EXPECT_TRUE(state_.HasLease(7));
  EXPECT_EQ(PlanLeaseEnd(state_, 7, {.bytes_max = 1})->changes.size(), 2u);  // the last, and it
  ASSERT_OK_AND_ASSIGN(part, PlanLeaseEnd(state_, 7, {.keys_max = 2}));
  EXPECT_EQ(part.result.revision, state_.revision() + 1);
  for (const MvccChange& change : part.changes) state_.Apply(change, absl::ZeroDuration());
  EXPECT_FALSE(state_.HasLease(7));
  EXPECT_EQ(state_.key_count(), 0u);
  EXPECT_EQ(RefusalOf(PlanLeaseEnd(state_, 7, {.keys_max = 2}).status()),
            MvccRefusal::kLeaseNotFound);
}

}  // namespace
}  // namespace holdfast
