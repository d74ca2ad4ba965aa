// What the writes of one key ask of Transact.
#include "meta/transacted_meta.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

// Keeps what it is asked for, and knows nothing else.
class AskedMeta final : public TransactedMeta {
 public:
  absl::StatusOr<uint64_t> Transact(const MetaTransaction& transaction,
                                    const MetaWrite& write) override {
    transactions.push_back(transaction);
    timeouts.push_back(write.timeout);
    return 7;
  }
  absl::StatusOr<MetaEntry> Get(std::string_view, const MetaCall&) override { return None(); }
  absl::StatusOr<MetaList> List(std::string_view, const MetaPage&) override { return None(); }
  absl::StatusOr<uint64_t> Delete(std::string_view, const MetaCall&) override { return None(); }
  absl::StatusOr<uint64_t> DeleteAt(std::string_view, uint64_t, const MetaCall&) override {
    return None();
  }
  absl::StatusOr<std::unique_ptr<MetaWatch>> Watch(std::string_view, uint64_t,
                                                   std::function<void(const MetaNotice&)>,
                                                   const MetaCall&) override {
    return None();
  }
  absl::StatusOr<MetaLease> GrantLease(absl::Duration, const MetaCall&) override { return None(); }
  absl::StatusOr<MetaLease> KeepAlive(uint64_t, const MetaCall&) override { return None(); }
  absl::Status RevokeLease(uint64_t, const MetaCall&) override { return None(); }

  std::vector<MetaTransaction> transactions;
  std::vector<absl::Duration> timeouts;

 private:
  static Status None() { return NotFound("not asked for here"); }
};

TEST(TransactedMetaTest, EachWriteIsOnePutWithItsCondition) {
  AskedMeta meta;
  const MetaWrite write{.request_id = "r", .lease = 3, .timeout = absl::Seconds(2)};
  EXPECT_EQ(*meta.Put("k", "v", write), 7u);
  EXPECT_EQ(*meta.PutIfAbsent("k", "v", write), 7u);
  EXPECT_EQ(*meta.CompareAndSet("k", 5, "v", write), 7u);
  ASSERT_EQ(meta.transactions.size(), 3u);
  for (const MetaTransaction& each : meta.transactions) {
    ASSERT_EQ(each.changes.size(), 1u);
    EXPECT_EQ(each.changes[0].kind, MetaChange::Kind::kPut);
    EXPECT_EQ(each.changes[0].key, "k");
    EXPECT_EQ(each.changes[0].value, "v");
    EXPECT_EQ(each.changes[0].lease, 3u);
  }
  EXPECT_EQ(meta.timeouts, std::vector<absl::Duration>(3, absl::Seconds(2)));
  EXPECT_TRUE(meta.transactions[0].conditions.empty());
  ASSERT_EQ(meta.transactions[1].conditions.size(), 1u);
  EXPECT_EQ(meta.transactions[1].conditions[0].key, "k");
  EXPECT_EQ(meta.transactions[1].conditions[0].must, MetaCondition::Must::kBeAbsent);
  ASSERT_EQ(meta.transactions[2].conditions.size(), 1u);
  EXPECT_EQ(meta.transactions[2].conditions[0].key, "k");
  EXPECT_EQ(meta.transactions[2].conditions[0].must, MetaCondition::Must::kStandAt);
  EXPECT_EQ(meta.transactions[2].conditions[0].revision, 5u);
}

}  // namespace
}  // namespace holdfast
