#include "meta/mvcc_state.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "journal/base/seeded_rng.h"
#include "meta/mvcc_plan.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

constexpr absl::Duration kNow = absl::Seconds(100);

// A state that is changed as a Meta changes it: planned, then applied.
class Driven {
 public:
  explicit Driven(const MvccHistoryLimits& limits = {}) : state(limits) {
    state.BeginServing(0, kNow);
  }

  uint64_t Execute(const MvccTxn& txn, absl::Duration now = kNow) {
    const StatusOr<MvccPlan> plan = PlanTxn(state, txn, {});
    EXPECT_OK(plan);
    for (const MvccChange& change : plan->changes) {
      state.Apply(change, now);
      changes.push_back(change);
    }
    EXPECT_EQ(state.revision(), plan->result.revision);
    return plan->result.revision;
  }
  uint64_t Put(const std::string& key, const std::string& value, uint64_t lease = 0,
               absl::Duration now = kNow) {
    MvccTxn txn;
    txn.success.push_back(MvccOp::Put(key, value, lease));
    return Execute(txn, now);
  }
  uint64_t Delete(const std::string& key) {
    MvccTxn txn;
    txn.success.push_back(MvccOp::Delete(KeyRange::Only(key)));
    return Execute(txn);
  }
  void Apply(const MvccChange& change) {
    state.Apply(change, kNow);
    changes.push_back(change);
  }

  MvccState state;
  std::vector<MvccChange> changes;  // all that were applied
};

// "key=value@revision" of all that is live, as of a revision.
std::string Text(const MvccState& state, uint64_t revision = 0) {
  const auto read = state.Read({.range = KeyRange::All(), .revision = revision});
  if (!read.ok()) return std::string(Message(read.status()));
  std::string text;
  for (const MvccEntryPtr& entry : read->entries) {
    text += fmt::format("{}={}@{} ", entry->key, entry->value, entry->mod_revision);
  }
  return text;
}

TEST(MvccStateTest, AnEmptyStoreIsAtRevisionOne) {
  const Driven driven;
  EXPECT_EQ(driven.state.revision(), 1u);
  EXPECT_EQ(driven.state.history_begin(), 1u);
  EXPECT_EQ(driven.state.Find("k"), nullptr);
}

TEST(MvccStateTest, EveryRevisionOfTheWindowCanBeRead) {
  Driven driven;
  driven.Put("a", "1");
  driven.Put("b", "1");
  driven.Put("a", "2");
  driven.Delete("b");
  driven.Put("b", "3");
  EXPECT_EQ(Text(driven.state, 2), "a=1@2 ");
  EXPECT_EQ(Text(driven.state, 3), "a=1@2 b=1@3 ");
  EXPECT_EQ(Text(driven.state, 4), "a=2@4 b=1@3 ");
  EXPECT_EQ(Text(driven.state, 5), "a=2@4 ");
  EXPECT_EQ(Text(driven.state), "a=2@4 b=3@6 ");
  EXPECT_EQ(RefusalOf(driven.state.Read({.revision = 7}).status()), MvccRefusal::kFutureRevision);
  const auto limited = driven.state.Read({.range = KeyRange::All(), .limit = 1});
  EXPECT_EQ(limited->entries.size(), 1u);
  EXPECT_EQ(limited->count, 2u);
  EXPECT_TRUE(limited->more);
  EXPECT_EQ(driven.state.Read({.range = KeyRange::All(), .count_only = true})->count, 2u);
}

TEST(MvccStateTest, ACompactedRevisionCanBeReadItselfButNothingBelow) {
  Driven driven;
  driven.Put("a", "1");  // 2
  driven.Put("b", "1");  // 3
  driven.Delete("b");    // 4
  driven.Put("a", "2");  // 5
  EXPECT_EQ(RefusalOf(driven.state.Compact(6)), MvccRefusal::kFutureRevision);
  ASSERT_OK(driven.state.Compact(4));
  EXPECT_EQ(RefusalOf(driven.state.Compact(4)), MvccRefusal::kCompacted);
  EXPECT_EQ(RefusalOf(driven.state.Read({.revision = 3}).status()), MvccRefusal::kCompacted);
  EXPECT_EQ(Text(driven.state, 4), "a=1@2 ");
  EXPECT_EQ(Text(driven.state), "a=2@5 ");
  const auto below = driven.state.ChangesOf(KeyRange::All(), 3, 5, 100);
  EXPECT_EQ(RefusalOf(below.status()), MvccRefusal::kCompacted);
  const auto changes = driven.state.ChangesOf(KeyRange::All(), 4, 5, 100);
  ASSERT_EQ(changes->events.size(), 2u);
  EXPECT_TRUE(changes->events[0].now->deleted());
  EXPECT_EQ(changes->events[0].before->value, "1");
  EXPECT_EQ(changes->events[1].before->value, "1");
  ASSERT_OK(driven.state.Compact(5));
  EXPECT_EQ(Text(driven.state, 5), "a=2@5 ");
}

TEST(MvccStateTest, ChangesComeInWholeRevisionsAndOnlyThoseOfTheRange) {
  Driven driven;
  MvccTxn txn;
  for (const char* key : {"a", "b", "x"}) txn.success.push_back(MvccOp::Put(key, "1"));
  driven.Execute(txn);   // 2
  driven.Put("x", "2");  // 3
  driven.Put("a", "3");  // 4
  const KeyRange range{.begin = "a", .end = "c"};
  const auto first = driven.state.ChangesOf(range, 1, 4, 1);
  EXPECT_EQ(first->events.size(), 2u);
  EXPECT_EQ(first->next, 3u);
  const auto rest = driven.state.ChangesOf(range, first->next, 4, 100);
  ASSERT_EQ(rest->events.size(), 1u);
  EXPECT_EQ(rest->next, 5u);
  EXPECT_EQ(driven.state.ChangesOf(range, 1, 3, 100)->events.size(), 2u);
  EXPECT_EQ(driven.state.ChangesOf(range, 9, 4, 100)->next, 9u);
}

TEST(MvccStateTest, TheHistoryStaysWithinEachOfItsBounds) {
  Driven few({.revisions_max = 3});
  for (int i = 0; i < 10; ++i) few.Put("k", std::to_string(i));
  EXPECT_EQ(few.state.history_begin(), few.state.revision() - 2);
  EXPECT_EQ(few.state.compacted_revision(), few.state.revision() - 2);

  Driven small({.bytes_max = 1000});
  for (int i = 0; i < 10; ++i) small.Put("k", std::string(300, 'x'));
  EXPECT_GT(small.state.history_begin(), small.state.revision() - 4);

  Driven aging({.age_max = absl::Seconds(10)});
  for (int i = 0; i < 5; ++i) aging.Put("k", std::to_string(i), 0, kNow + i * absl::Seconds(4));
  aging.state.Age(kNow + absl::Seconds(16));
  EXPECT_EQ(aging.state.history_begin(), 4u);  // 2 and 3 are 12 and 16 s old
  aging.state.Age(kNow + absl::Hours(1));
  EXPECT_EQ(Text(aging.state), "k=4@6 ");
  EXPECT_EQ(aging.state.compacted_revision(), aging.state.revision());
}

TEST(MvccStateTest, ALeaseEndsWhenItsTimeIsOverUnlessItIsKeptAlive) {
  Driven driven;
  driven.Apply(MvccLeaseGrant{.id = 7, .ttl = absl::Seconds(10)});
  driven.Put("a", "1", 7);
  driven.Put("b", "1", 7);
  EXPECT_EQ(driven.state.EndedLease(kNow + absl::Seconds(9)), 0u);
  EXPECT_EQ(driven.state.NextLeaseEnd(), kNow + absl::Seconds(10));
  EXPECT_EQ(*driven.state.KeepAlive(7, kNow + absl::Seconds(9)), absl::Seconds(10));
  EXPECT_EQ(driven.state.EndedLease(kNow + absl::Seconds(18)), 0u);
  const auto info = driven.state.LeaseInfo(7, kNow + absl::Seconds(12));
  EXPECT_EQ(info->left, absl::Seconds(7));
  EXPECT_EQ(info->keys, (std::vector<std::string>{"a", "b"}));
  // Its time is over, whether somebody has ended it yet or not.
  EXPECT_EQ(driven.state.EndedLease(kNow + absl::Seconds(19)), 7u);
  EXPECT_EQ(RefusalOf(driven.state.KeepAlive(7, kNow + absl::Seconds(19)).status()),
            MvccRefusal::kLeaseNotFound);
}

TEST(MvccStateTest, AfterARestartEveryLeaseHasItsFullTtlAgain) {
  MvccState state({});
  state.Apply(MvccPut{std::make_shared<const MvccEntry>(MvccEntry{
                  .key = "k", .create_revision = 4, .mod_revision = 4, .version = 1, .lease = 7})},
              absl::ZeroDuration());
  state.Apply(MvccLeaseGrant{.id = 7, .ttl = absl::Seconds(10)}, absl::ZeroDuration());
  state.BeginServing(0, kNow);
  EXPECT_EQ(state.NextLeaseEnd(), kNow + absl::Seconds(10));
  EXPECT_EQ(state.KeysOf(7).size(), 1u);
  EXPECT_EQ(state.history_begin(), 5u);
  EXPECT_EQ(RefusalOf(state.ChangesOf(KeyRange::All(), 4, 4, 1).status()), MvccRefusal::kCompacted);
}

TEST(MvccStateTest, WhatIsSkippedIsNeverARevision) {
  MvccState state({});
  state.Apply(MvccRevision{.revision = 40}, absl::ZeroDuration());
  state.BeginServing(1000, kNow);
  EXPECT_EQ(state.revision(), 1040u);
  EXPECT_EQ(state.history_begin(), 1041u);
}

// Whatever is applied twice, or again after what came later, changes nothing: as a replay over a
// checkpoint does.
TEST(MvccStateTest, ReplayingAnyTailOverTheStateChangesNothing) {
  for (const uint64_t seed : Seeds(50)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    Driven driven({.revisions_max = 1 + rng.Below(20)});
    for (uint64_t id = 1; id <= 3; ++id) {
      driven.Apply(MvccLeaseGrant{.id = id, .ttl = absl::Seconds(id)});
    }
    for (int step = 0; step < 60; ++step) {
      const std::string key(1, static_cast<char>('a' + rng.Below(6)));
      if (rng.OneIn(3)) {
        driven.Delete(key);
      } else {
        driven.Put(key, std::to_string(step), rng.Below(4));
      }
    }
    const std::string text = Text(driven.state);
    MvccState replayed({});
    const auto replay = [&](size_t from) {
      for (size_t i = from; i < driven.changes.size(); ++i) {
        replayed.Apply(driven.changes[i], absl::ZeroDuration());
      }
    };
    replay(0);
    replay(rng.Below(driven.changes.size()));
    EXPECT_EQ(Text(replayed), text);
    EXPECT_EQ(replayed.revision(), driven.state.revision());
    EXPECT_EQ(replayed.key_count(), driven.state.key_count());
    for (uint64_t id = 1; id <= 3; ++id) {
      EXPECT_EQ(replayed.KeysOf(id), driven.state.KeysOf(id));
    }
  }
}

// Compaction forgets what is old, and nothing else.
TEST(MvccStateTest, CompactionAtAnyRevisionLeavesEveryLaterReadAsItWas) {
  for (const uint64_t seed : Seeds(50)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    Driven driven;
    std::map<uint64_t, std::string> texts;
    for (int step = 0; step < 40; ++step) {
      const std::string key(1, static_cast<char>('a' + rng.Below(5)));
      if (rng.OneIn(3)) {
        driven.Delete(key);
      } else {
        driven.Put(key, std::to_string(step));
      }
      texts[driven.state.revision()] = Text(driven.state);
    }
    uint64_t at = 1;
    while ((at += 1 + rng.Below(10)) <= driven.state.revision()) {
      ASSERT_OK(driven.state.Compact(at));
      for (uint64_t revision = at; revision <= driven.state.revision(); ++revision) {
        EXPECT_EQ(Text(driven.state, revision), texts[revision]);
      }
    }
  }
}

TEST(MvccStateTest, ForgettingEverythingStartsAgain) {
  Driven driven;
  driven.Apply(MvccLeaseGrant{.id = 7, .ttl = absl::Seconds(10)});
  driven.Put("a", "1", 7);
  driven.state.Reset();
  EXPECT_EQ(driven.state.revision(), 1u);
  EXPECT_EQ(driven.state.key_count(), 0u);
  EXPECT_TRUE(driven.state.Leases().empty());
  EXPECT_EQ(driven.state.NextLeaseEnd(), absl::InfiniteDuration());
}

}  // namespace
}  // namespace holdfast
