#include "stores/subscription_store.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Names = std::vector<std::string>;

struct Meta {
  SimClock clock;
  MemoryMeta meta{clock, 1};
  FaultyMeta faulty{meta};
  MetaSubscriptionStore store{faulty, 1, clock};
};

EventAttributes Attributes(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string_view> {
    const auto found = values.find(std::string(name));
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

// Proves: S7
TEST(SubscriptionStoreTest, TopicsAreThoseWithASubscriber) {
  Meta meta;
  SubscriptionStore& store = meta.store;
  EXPECT_EQ(*store.Topics(), Names());
  ASSERT_OK(store.Put("b", "c1", {.instance = "i1"}));
  ASSERT_OK(store.Put("a", "c1", {.instance = "i1"}));
  ASSERT_OK(store.Put("a", "c1", {.instance = "i2"}));
  EXPECT_EQ(*store.Topics(), (Names{"a", "b"}));
  ASSERT_OK(store.Remove({"a", "c1", "i1"}));
  EXPECT_EQ(*store.Topics(), (Names{"a", "b"}));
  ASSERT_OK(store.Remove({"a", "c1", "i2"}));
  EXPECT_EQ(*store.Topics(), Names{"b"});
  EXPECT_FAILS(store.Remove({"a", "c1", "i2"}), kNotFound, kNone);
}

// Proves: S7
TEST(SubscriptionStoreTest, AClientIsFoundOnAllItsInstances) {
  Meta meta;
  SubscriptionStore& store = meta.store;
  ASSERT_OK(store.Put("a", "c", {.instance = "i2"}));
  ASSERT_OK(store.Put("a", "c", {.instance = "i1"}));
  ASSERT_OK(store.Put("b", "c", {.instance = "i3"}));
  ASSERT_OK(store.Put("b", "c", {.instance = "i1"}));
  ASSERT_OK(store.Put("b", "other", {.instance = "i9"}));
  EXPECT_EQ(*store.InstancesOf("c"), (Names{"i1", "i2", "i3"}));
  const auto targets = store.TargetsFor("a", Attributes({}));
  ASSERT_OK(targets);
  ASSERT_EQ(targets->size(), 1u);  // one delivery, over any of them
  EXPECT_EQ((*targets)[0].subscriptions.size(), 2u);
  EXPECT_EQ(*store.RemoveInstance("i1"), 2u);
  EXPECT_EQ(*store.InstancesOf("c"), (Names{"i2", "i3"}));
  EXPECT_EQ(*store.RemoveInstance("i1"), 0u);
}

TEST(SubscriptionStoreTest, EpochsRiseWithEveryChange) {
  Meta meta;
  SubscriptionStore& store = meta.store;
  const uint64_t first = *store.Put("a", "c", {.instance = "i"});
  EXPECT_GT(first, 0u);
  EXPECT_EQ(*store.Put("a", "c", {.instance = "i"}), first);
  const uint64_t changed = *store.Put("a", "c", {.instance = "i", .mode = DispatchMode::kPull});
  EXPECT_GT(changed, first);
  ASSERT_OK(store.Remove({"a", "c", "i"}));
  EXPECT_GT(*store.Put("a", "c", {.instance = "i", .mode = DispatchMode::kPull}), changed);
}

TEST(SubscriptionStoreTest, AllFiltersOfASubscriptionMustHold) {
  using Match = EventFilter::Match;
  Meta meta;
  SubscriptionStore& store = meta.store;
  ASSERT_OK(store.Put("a", "all", {.instance = "i"}));
  ASSERT_OK(store.Put(
      "a", "both",
      {.instance = "i",
       .filters = {{"type", Match::kPrefix, "com.github."}, {"subject", Match::kSuffix, ".cc"}}}));
  ASSERT_OK(
      store.Put("a", "exact", {.instance = "i", .filters = {{"type", Match::kExact, "push"}}}));
  const auto clients = [&](const EventAttributes& attributes) {
    Names names;
    const auto targets = store.TargetsFor("a", attributes);
    EXPECT_OK(targets);
    for (const SubscriptionTarget& target : *targets) names.push_back(target.client);
    return names;
  };
  EXPECT_EQ(clients(Attributes({{"type", "com.github.push"}, {"subject", "a.cc"}})),
            (Names{"all", "both"}));
  EXPECT_EQ(clients(Attributes({{"type", "com.github.push"}})), Names{"all"});
  EXPECT_EQ(clients(Attributes({{"type", "push"}, {"subject", "a.cc"}})), (Names{"all", "exact"}));
  EXPECT_TRUE(store.TargetsFor("other", Attributes({}))->empty());
}

TEST(SubscriptionStoreTest, BadNamesAreRefused) {
  Meta meta;
  SubscriptionStore& store = meta.store;
  const std::string too_long(65'536, 'x');
  EXPECT_FAILS(store.Put("a", "c", {.instance = ""}), kInvalidArgument, kNone);
  EXPECT_FAILS(store.Put(too_long, "c", {.instance = "i"}), kInvalidArgument, kNone);
  EXPECT_FAILS(store.Put("a", too_long, {.instance = "i"}), kInvalidArgument, kNone);
  EXPECT_FAILS(store.Put("a", "c", {.instance = "i", .filters = {{.attribute = ""}}}),
               kInvalidArgument, kNone);
  EXPECT_TRUE(store.Topics()->empty());
  const std::string odd("\0#/|", 4);
  ASSERT_OK(store.Put(odd, odd, {.instance = odd}));
  EXPECT_EQ(*store.Topics(), Names{odd});
}

// Proves: S4, S8
TEST(SubscriptionStoreTest, InstancesSeeEachOther) {
  Meta meta;
  MetaSubscriptionStore other(meta.meta, 2, meta.clock);
  EXPECT_EQ(*other.Topics(), Names());
  ASSERT_OK_AND_ASSIGN(const uint64_t epoch, meta.store.Put("a", "c", {.instance = "i"}));
  EXPECT_EQ(*meta.store.Topics(), Names{"a"});  // its own: at once
  while (other.Topics()->empty()) std::this_thread::yield();
  EXPECT_EQ(*other.Put("a", "c", {.instance = "i"}), epoch);
  ASSERT_OK_AND_ASSIGN(const uint64_t higher,
                       other.Put("a", "c", {.instance = "i", .mode = DispatchMode::kPull}));
  EXPECT_GT(higher, epoch);
  while (meta.store.TargetsFor("a", Attributes({}))->front().epoch != higher) {
    std::this_thread::yield();
  }
  ASSERT_OK(other.Remove({"a", "c", "i"}));
  EXPECT_EQ(*other.Topics(), Names());
  while (!meta.store.Topics()->empty()) std::this_thread::yield();
}

// The watch has come further than the entry that is removed: it is gone here at once all the same.
// Proves: S4
TEST(SubscriptionStoreTest, AnOldSubscriptionThatIsRemovedIsGoneAtOnce) {
  Meta meta;
  MetaSubscriptionStore other(meta.meta, 2, meta.clock);
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK(meta.store.Put("a", "c", {.instance = "old"}));
    ASSERT_OK(other.Put("a", "c", {.instance = "new"}));
    while (meta.store.InstancesOf("c")->size() < 2) std::this_thread::yield();
    ASSERT_OK(meta.store.Remove({"a", "c", "old"}));
    ASSERT_EQ(*meta.store.InstancesOf("c"), Names{"new"});
    ASSERT_OK(meta.store.Remove({"a", "c", "new"}));
    ASSERT_EQ(*meta.store.InstancesOf("c"), Names());
  }
}

// Proves: S2
TEST(SubscriptionStoreTest, AnOutageIsToldByEveryWriteWhileReadsGoOn) {
  Meta meta;
  ASSERT_OK(meta.store.Put("a", "c", {.instance = "i"}));
  meta.faulty.SetFaults([](FaultyMeta::Call) { return FaultyMeta::Fault::kUnreachable; });
  EXPECT_FAILS(meta.store.Put("b", "c", {.instance = "i"}), kUnavailable, kIo);
  EXPECT_FAILS(meta.store.Remove({"a", "c", "i"}), kUnavailable, kIo);
  EXPECT_FAILS(meta.store.RemoveInstance("i"), kUnavailable, kIo);
  EXPECT_EQ(*meta.store.Topics(), Names{"a"});
  // One that has never seen the Meta knows nothing, which is not "no topics".
  MetaSubscriptionStore blind(meta.faulty, 2, meta.clock);
  EXPECT_FAILS(blind.Topics(), kUnavailable, kIo);
  meta.faulty.Heal();
  EXPECT_EQ(*blind.Topics(), Names{"a"});
}

}  // namespace
}  // namespace holdfast
