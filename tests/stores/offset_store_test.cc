#include "stores/offset_store.h"

#include <gtest/gtest.h>

#include "stores/store_limits.h"
#include "tests/stores/backends.h"
#include "tests/stores/fake_stores.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

class OffsetStoreTest : public testing::TestWithParam<Backend> {
 protected:
  StoreUnderTest store_{GetParam()};
  OffsetStore& offsets() { return store_->offsets(); }
};
INSTANTIATE_TEST_SUITE_P(Backends, OffsetStoreTest, testing::ValuesIn(kBackends), BackendName);

// Proves: O1
TEST_P(OffsetStoreTest, PositionsOnlyRiseAndSayWhetherTheyDid) {
  const OffsetKey key{"orders", "billing", 3};
  EXPECT_TRUE(offsets().Write(key, 5).changed());
  EXPECT_FALSE(offsets().Write(key, 5).changed());
  const Commit lower = offsets().Write(key, 4);
  EXPECT_OK(lower.Wait());
  EXPECT_FALSE(lower.changed());
  EXPECT_EQ(offsets().Read(key)->position, OffsetPosition(5));
  EXPECT_TRUE(offsets().Write(key, OffsetPosition(0, 1)).changed());  // numbering began again
  EXPECT_FALSE(offsets().Write(key, OffsetPosition(99, 0)).changed());
  EXPECT_TRUE(offsets().Write(key, OffsetPosition(kOffsetMax, 1)).changed());
  ASSERT_OK(offsets().Flush());
  store_.CutPower();
  EXPECT_EQ(offsets().Read(key)->position, OffsetPosition(kOffsetMax, 1));
}

// Proves: O2
TEST_P(OffsetStoreTest, NoOffsetYetIsItsOwnAnswer) {
  EXPECT_FAILS(offsets().Read({"orders", "billing", 3}), kNotFound, kNone);
  ASSERT_OK(offsets().Write({"orders", "billing", 3}, 0).Wait());
  EXPECT_EQ(offsets().Read({"orders", "billing", 3})->position, OffsetPosition(0));
  EXPECT_FAILS(offsets().Read({"orders", "billing", 4}), kNotFound, kNone);
}

// Proves: O3
TEST_P(OffsetStoreTest, KeysAreBytesAndNeverCollide) {
  const std::string nul(1, '\0');
  std::vector<OffsetKey> keys;
  const std::vector<std::string> names{
      "",    "a",   "b",        "ab",      "#",
      "/",   "|",   nul,        nul + nul, "a/b",
      "a|b", "a#b", "\xff\xfe", "ü",       std::string(kNameBytesMax, 'n')};
  for (const std::string& topic : names) {
    for (const std::string& client : names) {
      for (const uint64_t partition : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
        keys.push_back({topic, client, partition});
      }
    }
  }
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(offsets().Write(keys[i], i).changed());
  }
  ASSERT_OK(offsets().Flush());
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(offsets().Read(keys[i])->position, OffsetPosition(i));
    }
    const std::vector<StoredOffset> all = offsets().ReadAll();
    ASSERT_EQ(all.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(all[i].key, keys[i]);
    EXPECT_EQ(offsets().ReadTopic("a|b").size(), names.size() * 3);
    EXPECT_EQ(offsets().Topics().size(), names.size());
    store_.Reopen();
  }
}

// Proves: O5
TEST_P(OffsetStoreTest, ProgressAfterARestartIsSeenAfterTheNext) {
  const OffsetKey key{"orders", "billing", 3};
  for (uint64_t boot = 1; boot <= 5; ++boot) {
    ASSERT_OK(offsets().Write(key, boot * 10).Wait());
    if (boot % 2 == 0) {
      store_.Kill(boot);
    } else {
      store_.CutPower();
    }
    ASSERT_EQ(offsets().Read(key)->position, OffsetPosition(boot * 10));
  }
}

TEST_P(OffsetStoreTest, AForgottenKeyStartsAnew) {
  const OffsetKey key{"orders", "billing", 3};
  ASSERT_OK(offsets().Write(key, 9).Wait());
  EXPECT_TRUE(offsets().Forget(key).changed());
  EXPECT_FALSE(offsets().Forget(key).changed());
  EXPECT_FAILS(offsets().Read(key), kNotFound, kNone);
  EXPECT_TRUE(offsets().Topics().empty());
  ASSERT_OK(offsets().Flush());
  store_.Kill();
  EXPECT_FAILS(offsets().Read(key), kNotFound, kNone);
  EXPECT_TRUE(offsets().Write(key, 1).changed());
  EXPECT_EQ(offsets().Read(key)->position, OffsetPosition(1));
}

TEST_P(OffsetStoreTest, BadKeysAndOffsetsAreRefused) {
  EXPECT_FAILS(offsets().Write({"t", "c", 0}, kOffsetMax + 1).Wait(), kInvalidArgument, kNone);
  EXPECT_FAILS(offsets().Write({"t", "c", 0}, UINT64_MAX).Wait(), kInvalidArgument, kNone);
  const std::string too_long(kNameBytesMax + 1, 'x');
  EXPECT_FAILS(offsets().Write({too_long, "c", 0}, 1).Wait(), kInvalidArgument, kNone);
  EXPECT_FAILS(offsets().Forget({"t", too_long, 0}).Wait(), kInvalidArgument, kNone);
  EXPECT_TRUE(offsets().ReadAll().empty());
}

// Proves: O4
TEST_P(OffsetStoreTest, TheFirstStartOfAnIncarnationHolds) {
  const OffsetKey key{"orders", "billing", 2};
  const auto start = [&](OffsetPosition at) {
    return store_->Transact([&](Transaction& t) { t.WriteStart(key, at); });
  };
  EXPECT_FAILS(offsets().ReadStart(key), kNotFound, kNone);
  EXPECT_TRUE(start({7, 1}).changed());
  EXPECT_FALSE(start({3, 1}).changed());
  EXPECT_FALSE(start({9, 1}).changed());
  EXPECT_FALSE(start({1, 0}).changed());
  EXPECT_EQ(*offsets().ReadStart(key), OffsetPosition(7, 1));
  EXPECT_FAILS(offsets().Read(key), kNotFound, kNone);  // a start is no position
  EXPECT_TRUE(start({0, 2}).changed());
  EXPECT_FAILS(start({kOffsetMax + 1, 3}).Wait(), kInvalidArgument, kNone);
  EXPECT_TRUE(offsets().Write(key, {4, 2}).changed());
  ASSERT_OK(offsets().Flush());
  store_.Kill();
  EXPECT_EQ(*offsets().ReadStart(key), OffsetPosition(0, 2));
  EXPECT_FAILS(offsets().ReadStart({"orders", "billing", 3}), kNotFound, kNone);
  store_.Reopen();
  EXPECT_EQ(*offsets().ReadStart(key), OffsetPosition(0, 2));
  ASSERT_OK(offsets().Forget(key).Wait());
  EXPECT_FAILS(offsets().ReadStart(key), kNotFound, kNone);
  EXPECT_FALSE(offsets().Forget(key).changed());
  store_.CutPower();
  EXPECT_FAILS(offsets().ReadStart(key), kNotFound, kNone);
  EXPECT_TRUE(start({5, 2}).changed());
  EXPECT_TRUE(offsets().Forget(key).changed());  // there is a start, and no position
}

TEST_P(OffsetStoreTest, AStartIsJudgedWithItsTransaction) {
  const OffsetKey key{"orders", "billing", 2};
  ASSERT_OK(store_
                ->Transact([&](Transaction& t) {
                  t.WriteStart(key, 7);
                  t.WriteStart(key, 8);
                  t.ForgetOffset(key);
                  t.WriteStart(key, 9);
                  t.WriteStart(key, 10);
                })
                .Wait());
  EXPECT_EQ(*offsets().ReadStart(key), OffsetPosition(9));
  ASSERT_OK(store_
                ->Transact([&](Transaction& t) {
                  t.WriteOffset(key, 9);
                  t.WriteOffset({"orders", "audit", 2}, 1);
                  t.ForgetOffset(key);
                })
                .Wait());
  EXPECT_FAILS(offsets().ReadStart(key), kNotFound, kNone);
  store_.CutPower();
  EXPECT_FAILS(offsets().ReadStart(key), kNotFound, kNone);
}

TEST_P(OffsetStoreTest, BothMarksOfASourceOnlyRise) {
  const SourceKey key{"orders", 1, 2};
  EXPECT_FAILS(offsets().ReadSource(key), kNotFound, kNone);
  const auto seen = [&](uint64_t through) {
    return store_->Transact([&](Transaction& t) { t.SourceSeen(key, through); });
  };
  const auto cursor = [&](uint64_t at) {
    return store_->Transact([&](Transaction& t) { t.SourceCursor(key, at); });
  };
  EXPECT_TRUE(seen(0).changed());
  EXPECT_TRUE(offsets().ReadSource(key)->has_seen);
  EXPECT_FALSE(offsets().ReadSource(key)->has_cursor);
  EXPECT_FALSE(seen(0).changed());
  EXPECT_TRUE(seen(7).changed());
  EXPECT_TRUE(cursor(3).changed());
  EXPECT_FALSE(cursor(2).changed());
  EXPECT_FAILS(cursor(kOffsetMax + 1).Wait(), kInvalidArgument, kNone);
  EXPECT_FAILS(offsets().ReadSource({"orders", 2, 2}), kNotFound, kNone);
  ASSERT_OK(offsets().Flush());
  ASSERT_OK(store_->Flush());
  store_.Kill();
  const auto progress = offsets().ReadSource(key);
  ASSERT_OK(progress);
  EXPECT_EQ(progress->seen, 7u);
  EXPECT_EQ(progress->cursor, 3u);
  EXPECT_TRUE(progress->has_cursor);
}

// --- The journal alone

TEST(JournalOffsetStoreTest, ReadsTellWhatIsDurable) {
  FakeStores fake;
  const OffsetKey key{"t", "c", 0};
  const Commit write = fake.offsets().Write(key, 1);
  EXPECT_FALSE(fake.offsets().Read(key)->durable);
  EXPECT_FALSE(fake.offsets().ReadAll()[0].durable);
  EXPECT_OK(fake.offsets().Flush());
  EXPECT_TRUE(write.confirmed());
  EXPECT_TRUE(fake.offsets().Read(key)->durable);
  EXPECT_TRUE(fake.offsets().ReadAll()[0].durable);
}

TEST(JournalOffsetStoreTest, AnOlderRecordDoesNotUndoANewerOne) {
  FakeStores fake;
  const OffsetKey key{"t", "c", 0};
  Accept(fake.offsets().Write(key, 5));
  Accept(fake.offsets().Write(key, 9));
  fake.sink.Replay(fake.stores.machines());
  EXPECT_EQ(fake.offsets().Read(key)->position, OffsetPosition(9));
  EXPECT_EQ(fake.offsets().Read(key)->lsn, 2u);
}

}  // namespace
}  // namespace holdfast
