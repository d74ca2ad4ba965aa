#include "stores/memory_subscription_store.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Names = std::vector<std::string>;

EventAttributes Attributes(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string_view> {
    const auto found = values.find(std::string(name));
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

// Proves: S7
TEST(MemorySubscriptionStoreTest, TopicsAreThoseWithASubscriber) {
  MemorySubscriptionStore store;
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
TEST(MemorySubscriptionStoreTest, AClientIsFoundOnAllItsInstances) {
  MemorySubscriptionStore store;
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

TEST(MemorySubscriptionStoreTest, EpochsRiseWithEveryChange) {
  MemorySubscriptionStore store;
  const uint64_t first = *store.Put("a", "c", {.instance = "i"});
  EXPECT_GT(first, 0u);
  EXPECT_EQ(*store.Put("a", "c", {.instance = "i"}), first);
  const uint64_t changed = *store.Put("a", "c", {.instance = "i", .mode = DispatchMode::kPull});
  EXPECT_GT(changed, first);
  ASSERT_OK(store.Remove({"a", "c", "i"}));
  EXPECT_GT(*store.Put("a", "c", {.instance = "i", .mode = DispatchMode::kPull}), changed);
}

TEST(MemorySubscriptionStoreTest, AllFiltersOfASubscriptionMustHold) {
  using Match = EventFilter::Match;
  MemorySubscriptionStore store;
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

TEST(MemorySubscriptionStoreTest, BadNamesAreRefused) {
  MemorySubscriptionStore store;
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

}  // namespace
}  // namespace holdfast
