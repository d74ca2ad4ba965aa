#include "meta/meta_terms.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

TEST(MetaTermsTest, TheRequestIdTravelsInTheValueAndComesOutOfIt) {
  MetaTransaction transaction;
  transaction.changes.push_back({.key = "k", .value = "v", .lease = 7});
  ASSERT_OK_AND_ASSIGN(const MvccTxn txn, ToMvccTxn(transaction, "r"));
  ASSERT_EQ(txn.success.size(), 1u);
  EXPECT_EQ(txn.success[0].lease, 7u);
  EXPECT_NE(txn.success[0].value, "v");
  const MetaEntry entry = ToMetaEntry({.key = "k", .value = txn.success[0].value});
  EXPECT_EQ(entry.value, "v");
  EXPECT_EQ(entry.request_id, "r");
}

TEST(MetaTermsTest, AConditionBecomesACompareOfRevisions) {
  using Must = MetaCondition::Must;
  MetaTransaction transaction;
  transaction.conditions = {{.key = "a", .must = Must::kBeAbsent},
                            {.key = "b", .must = Must::kExist},
                            {.key = "c", .must = Must::kStandAt, .revision = 9}};
  ASSERT_OK_AND_ASSIGN(const MvccTxn txn, ToMvccTxn(transaction, ""));
  ASSERT_EQ(txn.compares.size(), 3u);
  EXPECT_EQ(txn.compares[0].target, MvccCompare::Target::kCreate);
  EXPECT_EQ(txn.compares[0].op, MvccCompare::Op::kEqual);
  EXPECT_EQ(txn.compares[1].op, MvccCompare::Op::kGreater);
  EXPECT_EQ(txn.compares[2].target, MvccCompare::Target::kMod);
  EXPECT_EQ(txn.compares[2].number, 9);
  transaction.conditions = {{.key = "c", .must = Must::kStandAt, .revision = 0}};
  EXPECT_FAILS(ToMvccTxn(transaction, ""), kAborted, kConflict);
}

TEST(MetaTermsTest, ADeletionShowsOnlyKeyAndRevision) {
  const MetaEvent event = ToMetaEvent(
      {.now = std::make_shared<const MvccEntry>(MvccEntry{.key = "k", .mod_revision = 5}),
       .before = nullptr});
  EXPECT_EQ(event.kind, MetaEvent::Kind::kDelete);
  EXPECT_EQ(event.entry, (MetaEntry{.key = "k", .revision = 5}));
}

}  // namespace
}  // namespace holdfast
