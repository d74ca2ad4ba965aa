#include "tests/meta/conformance.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/meta/watch_log.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using namespace std::string_literals;

std::vector<std::string> KeysOf(const MetaList& list) {
  std::vector<std::string> keys;
  for (const MetaEntry& entry : list.entries) keys.push_back(entry.key);
  return keys;
}

MetaChange PutChange(const std::string& key, const std::string& value, uint64_t lease = 0) {
  return {.kind = MetaChange::Kind::kPut, .key = key, .value = value, .lease = lease};
}
MetaChange DeleteChange(const std::string& key) {
  return {.kind = MetaChange::Kind::kDelete, .key = key};
}

std::vector<std::string> AwkwardKeys() {
  std::vector<std::string> keys = {"\0"s,        "\0\0"s,   "a"s,        "a\0"s,      "a\0b"s,
                                   "a/"s,        "a/b"s,    "a0"s,       "ab"s,       "a\xff"s,
                                   "a\xff\xff"s, "\x7f"s,   "\x80"s,     "\xc3\xa4"s, "\xfe"s,
                                   "\xff"s,      "\xff\0"s, "\xff\xff"s, "#|,"s,      " "s};
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Proves: S1
TEST_P(MetaConformanceTest, KeysAndValuesAreAnyBytesAndDistinctKeysStayDistinct) {
  const std::vector<std::string> keys = AwkwardKeys();
  for (const std::string& key : keys) {
    ASSERT_OK(store().PutIfAbsent(key, "\0v\xff"s + key, {.request_id = "r" + key})) << key;
  }
  for (const std::string& key : keys) {
    ASSERT_OK_AND_ASSIGN(const MetaEntry entry, store().Get(key, {}));
    EXPECT_EQ(entry.key, key);
    EXPECT_EQ(entry.value, "\0v\xff"s + key);
    EXPECT_EQ(entry.request_id, "r" + key);
  }
  ASSERT_OK_AND_ASSIGN(const MetaList all, store().List("", {}));
  EXPECT_EQ(KeysOf(all), keys);
  for (const std::string& prefix : keys) {
    std::vector<std::string> below;
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(below),
                 [&](const std::string& key) { return key.starts_with(prefix); });
    ASSERT_OK_AND_ASSIGN(const MetaList list, store().List(prefix, {}));
    EXPECT_EQ(KeysOf(list), below);
  }
}

TEST_P(MetaConformanceTest, WhatIsNoKeyOrNoRequestIdIsRefused) {
  const auto refused = [](const auto& result) {
    return FailsWith(result, StatusCode::kInvalidArgument, Detail::kNone);
  };
  EXPECT_TRUE(refused(store().Get("", {})));
  EXPECT_TRUE(refused(store().Put("", "v", {})));
  EXPECT_TRUE(refused(store().Delete("", {})));
  EXPECT_TRUE(refused(store().DeleteAt("", 1, {})));
  EXPECT_TRUE(refused(store().Put("k", "v", {.request_id = std::string(256, 'x')})));
  EXPECT_TRUE(
      refused(store().Transact({.changes = {PutChange("k", "1"), PutChange("k", "2")}}, {})));
  EXPECT_TRUE(refused(store().Transact({.changes = {PutChange("k", "1"), DeleteChange("k")}}, {})));
  EXPECT_FAILS(store().Get("k", {}), kNotFound, kNone);
}

TEST_P(MetaConformanceTest, WhatIsTooLargeIsRefusedAndNothingIsWritten) {
  const std::string large(1'400'000, 'x');
  ASSERT_OK(store().Put("large", large, {.request_id = "r"}));
  EXPECT_EQ(store().Get("large", {})->value, large);
  EXPECT_FAILS(store().Put("larger", std::string(kMetaWriteBytesMax + 1, 'x'), {}),
               kResourceExhausted, kLimit);
  EXPECT_FAILS(store().Put(std::string(kMetaKeyBytesMax + 1, 'k'), "v", {}), kResourceExhausted,
               kLimit);
  MetaTransaction many;
  for (size_t i = 0; i <= kMetaChangesMax; ++i) {
    many.changes.push_back(PutChange("many" + std::to_string(i), "v"));
  }
  EXPECT_FAILS(store().Transact(many, {}), kResourceExhausted, kLimit);
  many.changes.pop_back();
  if (Can(MetaAbility::kSeveralKeys)) {
    EXPECT_OK(store().Transact(many, {}));
    EXPECT_EQ(store().List("many", {})->entries.size(), kMetaChangesMax);
  } else {
    EXPECT_FAILS(store().Transact(many, {}), kUnimplemented, kNone);
    EXPECT_TRUE(store().List("many", {})->entries.empty());
  }
  EXPECT_FAILS(store().Get("larger", {}), kNotFound, kNone);
}

TEST_P(MetaConformanceTest, RevisionsRiseWithEveryChangeAndVersionsCount) {
  ASSERT_OK_AND_ASSIGN(const uint64_t made, store().Put("k", "1", {.request_id = "a"}));
  ASSERT_OK_AND_ASSIGN(const uint64_t other, store().Put("other", "", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t changed, store().Put("k", "2", {}));
  EXPECT_LT(made, other);
  EXPECT_LT(other, changed);
  ASSERT_OK_AND_ASSIGN(const MetaEntry entry, store().Get("k", {}));
  EXPECT_EQ(
      entry,
      (MetaEntry{
          .key = "k", .value = "2", .create_revision = made, .revision = changed, .version = 2}));
  EXPECT_EQ(store().Get("other", {})->value, "");
  ASSERT_OK_AND_ASSIGN(const uint64_t deleted, store().Delete("k", {}));
  EXPECT_LT(changed, deleted);
  ASSERT_OK_AND_ASSIGN(const uint64_t again, store().Put("k", "3", {}));
  EXPECT_EQ(store().Get("k", {})->create_revision, again);
  EXPECT_EQ(store().Get("k", {})->version, 1u);
}

TEST_P(MetaConformanceTest, AConditionThatDoesNotHoldIsAConflictAndChangesNothing) {
  EXPECT_FAILS(store().CompareAndSet("k", 1, "v", {}), kAborted, kConflict);
  EXPECT_FAILS(store().CompareAndSet("k", 0, "v", {}), kAborted, kConflict);
  EXPECT_FAILS(store().DeleteAt("k", 1, {}), kNotFound, kNone);
  EXPECT_FAILS(store().DeleteAt("k", 0, {}), kNotFound, kNone);
  EXPECT_FAILS(store().Delete("k", {}), kNotFound, kNone);
  ASSERT_OK_AND_ASSIGN(const uint64_t first, store().PutIfAbsent("k", "1", {}));
  EXPECT_FAILS(store().PutIfAbsent("k", "2", {}), kAborted, kConflict);
  ASSERT_OK_AND_ASSIGN(const uint64_t second, store().CompareAndSet("k", first, "2", {}));
  EXPECT_FAILS(store().CompareAndSet("k", first, "3", {}), kAborted, kConflict);
  EXPECT_FAILS(store().DeleteAt("k", first, {}), kAborted, kConflict);
  EXPECT_FAILS(store().DeleteAt("k", 0, {}), kAborted, kConflict);
  EXPECT_EQ(store().Get("k", {})->value, "2");
  EXPECT_EQ(store().Get("k", {})->revision, second);
  ASSERT_OK(store().DeleteAt("k", second, {}));
  EXPECT_FAILS(store().Get("k", {}), kNotFound, kNone);
  EXPECT_FAILS(store().DeleteAt("k", second, {}), kNotFound, kNone);
}

// Proves: S1, S2
TEST_P(MetaConformanceTest, ATransactionHappensWholeAtOneRevisionOrNotAtAll) {
  if (!Can(MetaAbility::kSeveralKeys)) {
    EXPECT_FAILS(store().Transact({.changes = {PutChange("a", "1"), PutChange("b", "2")}}, {}),
                 kUnimplemented, kNone);
    EXPECT_FAILS(
        store().Transact({.conditions = {{.key = "a", .must = MetaCondition::Must::kExist}},
                          .changes = {PutChange("b", "2")}},
                         {}),
        kUnimplemented, kNone);
    EXPECT_TRUE(store().List("", {})->entries.empty());
    GTEST_SKIP() << "this backend changes one key at a time";
  }
  ASSERT_OK_AND_ASSIGN(const uint64_t old, store().Put("old", "o", {}));
  const auto commit = [&](std::vector<MetaCondition> conditions) {
    return store().Transact({.conditions = std::move(conditions),
                             .changes = {PutChange("a", "1"), PutChange("b", "2"),
                                         DeleteChange("old"), DeleteChange("never")}},
                            {.request_id = "txn"});
  };
  using Must = MetaCondition::Must;
  for (const MetaCondition& wrong :
       {MetaCondition{.key = "old", .must = Must::kBeAbsent},
        MetaCondition{.key = "never", .must = Must::kExist},
        MetaCondition{.key = "old", .must = Must::kStandAt, .revision = old + 1},
        MetaCondition{.key = "old", .must = Must::kStandAt, .revision = 0},
        MetaCondition{.key = "never", .must = Must::kStandAt, .revision = old}}) {
    EXPECT_FAILS(commit({{.key = "never", .must = Must::kBeAbsent}, wrong}), kAborted, kConflict);
    EXPECT_EQ(KeysOf(*store().List("", {})), std::vector<std::string>{"old"});
  }
  ASSERT_OK_AND_ASSIGN(const uint64_t revision,
                       commit({{.key = "never", .must = Must::kBeAbsent},
                               {.key = "old", .must = Must::kExist},
                               {.key = "old", .must = Must::kStandAt, .revision = old}}));
  ASSERT_OK_AND_ASSIGN(const MetaList list, store().List("", {}));
  EXPECT_EQ(KeysOf(list), (std::vector<std::string>{"a", "b"}));
  for (const MetaEntry& entry : list.entries) {
    EXPECT_EQ(entry.revision, revision);
    EXPECT_EQ(entry.request_id, "txn");
  }
  EXPECT_EQ(list.revision, revision);
  EXPECT_EQ(*store().Transact({.changes = {DeleteChange("never")}}, {}), revision);
}

// Proves: S1, S5
TEST_P(MetaConformanceTest, OfRacingThreadsExactlyOnePutsIfAbsent) {
  for (int round = 0; round < 20; ++round) {
    const std::string key = "lead" + std::to_string(round);
    std::atomic<int> winners{0}, losers{0};
    std::atomic<int> winner{-1};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto put = store().PutIfAbsent(key, std::to_string(i), {});
        if (put.ok()) {
          ++winners;
          winner = i;
        } else {
          EXPECT_FAILS(put, kAborted, kConflict);
          ++losers;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(losers, 3);
    EXPECT_EQ(store().Get(key, {})->value, std::to_string(winner));
  }
}

// Proves: S1
TEST_P(MetaConformanceTest, NoIncrementByCompareAndSetIsLost) {
  constexpr int kThreads = 4, kEach = 25;
  ASSERT_OK(store().Put("counter", "0", {}));
  std::vector<std::thread> threads;
  std::atomic<bool> went_back{false};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      uint64_t newest = 0;
      for (int done = 0; done < kEach;) {
        const auto entry = store().Get("counter", {});
        ASSERT_OK(entry);
        if (entry->revision < newest) went_back = true;
        newest = entry->revision;
        const auto set = store().CompareAndSet("counter", entry->revision,
                                               std::to_string(std::stoi(entry->value) + 1), {});
        if (set.ok()) {
          ++done;
          newest = *set;  // a read after it is never older
        } else {
          ASSERT_FAILS(set, kAborted, kConflict);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store().Get("counter", {})->value, std::to_string(kThreads * kEach));
  EXPECT_EQ(store().Get("counter", {})->version, uint64_t{kThreads * kEach + 1});
  EXPECT_FALSE(went_back);
}

// Proves: S1
TEST_P(MetaConformanceTest, PagesAreOneSnapshotWithoutGapOrRepeat) {
  std::vector<std::string> keys;
  for (int i = 0; i < 23; ++i) keys.push_back("p/" + std::string(1, static_cast<char>('a' + i)));
  for (const std::string& key : keys) ASSERT_OK(store().Put(key, "old", {}));
  ASSERT_OK(store().Put("q", "beside", {}));
  ASSERT_OK_AND_ASSIGN(MetaList page, store().List("p/", {.limit = 5}));
  const uint64_t revision = page.revision;
  std::vector<std::string> seen = KeysOf(page);
  // What happens between the pages is not in them.
  ASSERT_OK(store().Delete("p/w", {}));
  ASSERT_OK(store().Put("p/v", "new", {}));
  ASSERT_OK(store().Put("p/zz", "new", {}));
  while (page.more) {
    ASSERT_OK_AND_ASSIGN(
        page, store().List("p/", {.limit = 5, .after = seen.back(), .revision = revision}));
    EXPECT_LE(page.entries.size(), 5u);
    EXPECT_EQ(page.revision, revision);
    for (const MetaEntry& entry : page.entries) {
      EXPECT_EQ(entry.value, "old");
      seen.push_back(entry.key);
    }
  }
  EXPECT_EQ(seen, keys);
  EXPECT_EQ(store().List("p/", {})->entries.size(), 23u);
  EXPECT_EQ(KeysOf(*store().List("p/", {.after = "p/v"})), std::vector<std::string>{"p/zz"});
  EXPECT_FAILS(store().List("p/", {.revision = revision + 1000}), kAborted, kConflict);
}

// Proves: S1
TEST_P(MetaConformanceTest, AWatchFromThePastShowsEveryChangeInOrder) {
  if (!Can(MetaAbility::kEveryChange)) GTEST_SKIP() << "this backend shows the newest only";
  ASSERT_OK(store().Put("w/a", "0", {}));
  ASSERT_OK_AND_ASSIGN(const MetaList list, store().List("w/", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t put, store().Put("w/a", "1", {.request_id = "r"}));
  ASSERT_OK(store().Put("x", "beside", {}));
  ASSERT_OK_AND_ASSIGN(
      const uint64_t txn,
      store().Transact(
          {.changes = {PutChange("w/b", "2"), DeleteChange("w/a"), PutChange("x", "3")}}, {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t again, store().Put("w/a", "4", {}));
  WatchLog log(store(), "w/", list.revision + 1);
  const std::vector<MetaEvent> events = log.AwaitEvents(4);
  ASSERT_EQ(events.size(), 4u);
  using Kind = MetaEvent::Kind;
  EXPECT_EQ(events[0].kind, Kind::kPut);
  EXPECT_EQ(events[0].entry.value, "1");
  EXPECT_EQ(events[0].entry.request_id, "r");
  EXPECT_EQ(events[0].entry.revision, put);
  EXPECT_EQ(events[0].entry.version, 2u);
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(events[i].entry.revision, txn);
    EXPECT_EQ(events[i].kind, events[i].entry.key == "w/a" ? Kind::kDelete : Kind::kPut);
  }
  EXPECT_NE(events[1].entry.key, events[2].entry.key);
  EXPECT_EQ(events[3].entry.revision, again);
  EXPECT_EQ(events[3].entry.create_revision, again);
  EXPECT_FALSE(log.resynced());
}

// Proves: S1
TEST_P(MetaConformanceTest, AListAndAWatchFromBehindItMakeUpTheState) {
  constexpr int kThreads = 3, kEach = 60;
  std::vector<std::thread> threads;
  std::atomic<int> changes{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < kEach; ++j) {
        const std::string key = "m/" + std::to_string((i + j) % 7);
        if (j % 3 == 2) {
          if (store().Delete(key, {}).ok()) ++changes;
        } else {
          EXPECT_OK(store().Put(key, std::to_string(i) + ":" + std::to_string(j), {}));
          ++changes;
        }
      }
    });
  }
  // Somewhere in the middle of it.
  ASSERT_OK_AND_ASSIGN(const MetaList list, store().List("m/", {}));
  WatchLog log(store(), "m/", list.revision + 1);
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(store().Put("m/end", "", {}));
  std::map<std::string, MetaEntry> state;
  for (const MetaEntry& entry : list.entries) state[entry.key] = entry;
  uint64_t newest = list.revision;
  size_t count = 1;
  while (!state.contains("m/end")) {
    const std::vector<MetaEvent> events = log.AwaitEvents(count);
    ASSERT_FALSE(log.resynced());
    for (size_t i = count - 1; i < events.size(); ++i) {
      EXPECT_GT(events[i].entry.revision, newest);  // every change is a revision of its own here
      newest = events[i].entry.revision;
      if (events[i].kind == MetaEvent::Kind::kDelete) {
        const size_t erased = state.erase(events[i].entry.key);
        EXPECT_TRUE(erased == 1 || !Can(MetaAbility::kEveryChange));
      } else {
        state[events[i].entry.key] = events[i].entry;
      }
    }
    count = events.size() + 1;
  }
  ASSERT_OK_AND_ASSIGN(const MetaList end, store().List("m/", {}));
  std::map<std::string, MetaEntry> truth;
  for (const MetaEntry& entry : end.entries) truth[entry.key] = entry;
  EXPECT_EQ(state, truth);
}

TEST_P(MetaConformanceTest, AWatchThatWasEndedSaysNothingAnyMore) {
  std::atomic<bool> ended{false}, late{false};
  ASSERT_OK_AND_ASSIGN(auto watch, store().Watch("e/", 1,
                                                 [&](const MetaNotice&) {
                                                   if (ended) late = true;
                                                 },
                                                 {}));
  WatchLog other(store(), "e/", store().List("", {})->revision + 1);
  ASSERT_OK(store().Put("e/1", "", {}));
  other.AwaitEvents(1);
  watch.reset();
  ended = true;
  ASSERT_OK(store().Put("e/2", "", {}));
  other.AwaitEvents(2);
  EXPECT_FALSE(late);
}

TEST_P(MetaConformanceTest, AWatchOfTheFutureWaitsForIt) {
  if (!Can(MetaAbility::kEveryChange)) GTEST_SKIP() << "this backend shows the newest only";
  ASSERT_OK_AND_ASSIGN(const uint64_t now, store().Put("f", "0", {}));
  WatchLog log(store(), "f", now + 3);
  for (const char* value : {"1", "2", "3", "4"}) ASSERT_OK(store().Put("f", value, {}));
  const std::vector<MetaEvent> events = log.AwaitEvents(2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].entry.value, "3");
  EXPECT_EQ(events[1].entry.value, "4");
}

// Proves: S1
TEST_P(MetaConformanceTest, AWatchFromForgottenHistoryIsToldToListAgain) {
  ASSERT_OK_AND_ASSIGN(const uint64_t old, store().Put("h", "1", {}));
  for (const char* value : {"2", "3", "4"}) ASSERT_OK(store().Put("h", value, {}));
  if (!fixture_->ForgetHistory()) GTEST_SKIP() << "this backend is not asked to forget";
  WatchLog log(store(), "h", old);
  const MetaNotice resync = log.AwaitResync();
  EXPECT_TRUE(log.events().empty());
  EXPECT_FALSE(resync.reason.ok());
  ASSERT_OK_AND_ASSIGN(const MetaList list, store().List("h", {}));
  EXPECT_FAILS(store().List("h", {.revision = old}), kAborted, kConflict);
  EXPECT_EQ(list.entries.at(0).value, "4");
  WatchLog again(store(), "h", list.revision + 1);
  ASSERT_OK(store().Put("h", "5", {}));
  EXPECT_EQ(again.AwaitEvents(1).at(0).entry.value, "5");
}

// Proves: S1
TEST_P(MetaConformanceTest, ALeaseThatEndedIsSeenAsEnded) {
  if (!Can(MetaAbility::kLeases)) {
    EXPECT_FAILS(store().GrantLease(absl::Seconds(60), {}), kUnimplemented, kNone);
    EXPECT_FAILS(store().Put("l", "", {.lease = 1}), kUnimplemented, kNone);
    EXPECT_FAILS(store().KeepAlive(1, {}), kUnimplemented, kNone);
    EXPECT_FAILS(store().RevokeLease(1, {}), kUnimplemented, kNone);
    EXPECT_FAILS(store().Get("l", {}), kNotFound, kNone);
    GTEST_SKIP() << "this backend keeps no leases";
  }
  ASSERT_OK_AND_ASSIGN(const MetaLease lease, store().GrantLease(fixture_->lease_min(), {}));
  EXPECT_NE(lease.id, 0u);
  EXPECT_GE(lease.ttl, fixture_->lease_min());
  ASSERT_OK(store().Put("l/1", "", {.lease = lease.id}));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, store().Put("l/2", "", {.lease = lease.id}));
  ASSERT_OK(store().Put("l/kept", "", {}));
  EXPECT_EQ(store().Get("l/1", {})->lease, lease.id);
  WatchLog log(store(), "l/", last + 2);
  fixture_->PassTime(lease.ttl);
  const std::vector<MetaEvent> events = log.AwaitEvents(2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, MetaEvent::Kind::kDelete);
  EXPECT_EQ(events[1].kind, MetaEvent::Kind::kDelete);
  EXPECT_EQ(events[0].entry.revision, events[1].entry.revision);
  EXPECT_EQ(KeysOf(*store().List("l/", {})), std::vector<std::string>{"l/kept"});
  EXPECT_FAILS(store().KeepAlive(lease.id, {}), kNotFound, kNone);
  EXPECT_FAILS(store().RevokeLease(lease.id, {}), kNotFound, kNone);
  EXPECT_FAILS(store().Put("l/3", "", {.lease = lease.id}), kNotFound, kNone);
  EXPECT_FAILS(store().Get("l/3", {}), kNotFound, kNone);
}

TEST_P(MetaConformanceTest, ALeaseThatIsKeptAliveGoesOn) {
  if (!Can(MetaAbility::kLeases)) GTEST_SKIP() << "this backend keeps no leases";
  ASSERT_OK_AND_ASSIGN(const MetaLease lease, store().GrantLease(fixture_->lease_min(), {}));
  ASSERT_OK(store().Put("k", "", {.lease = lease.id}));
  for (int i = 0; i < 4; ++i) {
    fixture_->PassTime(lease.ttl / 2);
    ASSERT_OK_AND_ASSIGN(const MetaLease kept, store().KeepAlive(lease.id, {}));
    EXPECT_EQ(kept.id, lease.id);
    EXPECT_GT(kept.ttl, absl::ZeroDuration());
  }
  EXPECT_OK(store().Get("k", {}));
}

TEST_P(MetaConformanceTest, ARevokedLeaseTakesItsKeysAtOneRevision) {
  if (!Can(MetaAbility::kLeases)) GTEST_SKIP() << "this backend keeps no leases";
  ASSERT_OK_AND_ASSIGN(const MetaLease lease, store().GrantLease(absl::Seconds(60), {}));
  ASSERT_OK_AND_ASSIGN(const MetaLease other, store().GrantLease(absl::Seconds(60), {}));
  EXPECT_NE(lease.id, other.id);
  ASSERT_OK(store().Transact(
      {.changes = {PutChange("r/1", "", lease.id), PutChange("r/2", "", lease.id),
                   PutChange("r/moved", "", lease.id), PutChange("r/freed", "", lease.id),
                   PutChange("r/other", "", other.id)}},
      {}));
  ASSERT_OK(store().Put("r/moved", "", {.lease = other.id}));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, store().Put("r/freed", "", {}));
  ASSERT_OK(store().RevokeLease(lease.id, {}));
  EXPECT_EQ(KeysOf(*store().List("r/", {})),
            (std::vector<std::string>{"r/freed", "r/moved", "r/other"}));
  WatchLog log(store(), "r/", last + 1);
  const std::vector<MetaEvent> events = log.AwaitEvents(2);
  EXPECT_EQ(events.at(0).entry.revision, last + 1);
  EXPECT_EQ(events.at(1).entry.revision, last + 1);
  EXPECT_FAILS(store().RevokeLease(lease.id, {}), kNotFound, kNone);
  EXPECT_FAILS(store().KeepAlive(lease.id, {}), kNotFound, kNone);
  EXPECT_FAILS(store().KeepAlive(1, {}), kNotFound, kNone);
  EXPECT_OK(store().RevokeLease(other.id, {}));
  EXPECT_EQ(KeysOf(*store().List("r/", {})), std::vector<std::string>{"r/freed"});
}

// Proves: S1
TEST_P(MetaConformanceTest, ARestartKeepsEverythingAndGoesOnCounting) {
  MetaLease lease;
  if (Can(MetaAbility::kLeases)) {
    ASSERT_OK_AND_ASSIGN(lease, store().GrantLease(absl::Seconds(60), {}));
  }
  for (const std::string& key : AwkwardKeys()) {
    ASSERT_OK(store().Put(key, "v" + key, {.request_id = "r", .lease = lease.id}));
  }
  ASSERT_OK(store().Put("dead", "", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t deleted, store().Delete("dead", {}));
  ASSERT_OK_AND_ASSIGN(const MetaList before, store().List("", {}));
  if (!fixture_->Restart()) GTEST_SKIP() << "this backend keeps nothing";
  ASSERT_OK_AND_ASSIGN(const MetaList after, store().List("", {}));
  EXPECT_EQ(after.entries, before.entries);
  EXPECT_GE(after.revision, deleted);
  ASSERT_OK_AND_ASSIGN(const uint64_t next, store().Put("next", "", {}));
  EXPECT_GT(next, deleted);
  if (!Can(MetaAbility::kLeases)) return;
  ASSERT_OK(store().RevokeLease(lease.id, {}));
  EXPECT_EQ(KeysOf(*store().List("", {})), std::vector<std::string>{"next"});
}

}  // namespace
}  // namespace holdfast
