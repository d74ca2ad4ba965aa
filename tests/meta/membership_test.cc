#include "meta/membership.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "journal/base/seeded_rng.h"
#include "meta/memory_meta.h"
#include "tests/meta/faulty_meta.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/seeds.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Fault = FaultyMeta::Fault;

const SourceKey kPartition{"orders", 1, 7};
const SourceKey kOther{std::string("a/b\0", 4), 2, 0};

class MembershipTest : public testing::Test {
 protected:
  static MembershipOptions Named(const std::string& instance) {
    return {.instance = instance, .address = "10.0.0.1:80", .thread = false};
  }
  std::unique_ptr<Membership> Join(const std::string& instance) {
    auto joined = Membership::Join(meta_, nonces_++, clock_, Named(instance));
    EXPECT_OK(joined);
    return joined.ok() ? *std::move(joined) : nullptr;
  }

  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta faulty_{meta_};
  uint64_t nonces_ = 1;
};

TEST_F(MembershipTest, InstancesSeeEachOther) {
  const auto one = Join("one");
  auto two = Join("two/3");
  ASSERT_OK_AND_ASSIGN(const auto both, one->Instances());
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].id, "one");
  EXPECT_EQ(both[1].id, "two/3");
  EXPECT_EQ(both[1].address, "10.0.0.1:80");
  two.reset();  // it leaves at once
  EXPECT_EQ(one->Instances()->size(), 1u);
}

TEST_F(MembershipTest, AnIdThatLivesIsNotGivenTwice) {
  auto one = Join("one");
  EXPECT_FAILS(Membership::Join(meta_, 9, clock_, Named("one")), kAlreadyExists, kNone);
  EXPECT_EQ(one->Instances()->size(), 1u);
  clock_.Advance(absl::Seconds(11));
  EXPECT_OK(Membership::Join(meta_, 9, clock_, Named("one")));
}

// Proves: S6
TEST_F(MembershipTest, WrongOptionsAreRefusedByName) {
  for (const auto& [name, options] :
       {std::pair<std::string, MembershipOptions>{"instance", {.instance = ""}},
        {"lease_ttl", {.instance = "i", .lease_ttl = absl::Milliseconds(999)}},
        {"lease_ttl", {.instance = "i", .lease_ttl = absl::InfiniteDuration()}},
        {"margin", {.instance = "i", .margin = absl::Seconds(6)}},
        {"margin", {.instance = "i", .margin = -absl::Seconds(1)}}}) {
    const auto refused = Membership::Join(meta_, 9, clock_, options);
    EXPECT_FAILS(refused, kInvalidArgument, kNone);
    EXPECT_TRUE(Message(refused.status()).starts_with(name)) << refused.status();
  }
}

// Proves: S5
TEST_F(MembershipTest, APartitionHasOneOwnerAndTokensRise) {
  auto one = Join("one");
  const auto two = Join("two");
  ASSERT_OK_AND_ASSIGN(const uint64_t first, one->Acquire(kPartition));
  EXPECT_EQ(*one->Acquire(kPartition), first);
  EXPECT_TRUE(one->Owns(kPartition));
  EXPECT_FALSE(one->Owns(kOther));
  EXPECT_FAILS(two->Acquire(kPartition), kAborted, kConflict);
  EXPECT_FALSE(two->Owns(kPartition));
  EXPECT_FAILS(two->Fence(kPartition), kPermissionDenied, kStaleOwner);
  ASSERT_OK(two->Acquire(kOther));
  ASSERT_OK(one->Release(kPartition));
  EXPECT_FALSE(one->Owns(kPartition));
  ASSERT_OK_AND_ASSIGN(const uint64_t second, two->Acquire(kPartition));
  EXPECT_GT(second, first);
  ASSERT_OK_AND_ASSIGN(const Roster roster, one->ReadRoster());
  const std::vector<Assignment>& assignments = roster.assignments;
  ASSERT_EQ(assignments.size(), 2u);
  for (const Assignment& assignment : assignments) {
    EXPECT_EQ(assignment.instance, "two");
    EXPECT_TRUE(assignment.alive);
    EXPECT_TRUE(assignment.partition == kPartition || assignment.partition == kOther);
  }
}

// The lease of the first ends while it is not looking; the second takes over, and nothing that the
// first still believes has an effect.
// Proves: S5
TEST_F(MembershipTest, AnOwnerThatWasReplacedIsRefusedWhateverItBelieves) {
  const auto one = Join("one");
  const auto two = Join("two");
  ASSERT_OK_AND_ASSIGN(const uint64_t first, one->Acquire(kPartition));
  ASSERT_OK_AND_ASSIGN(const MetaCondition fence, one->Fence(kPartition));
  const auto write = [&](const MetaCondition& under) {
    return meta_.Transact(
        {.conditions = {under}, .changes = {{.key = "/em/offsets/x", .value = "1", .lease = 0}}},
        {});
  };
  ASSERT_OK(write(fence));
  clock_.Advance(absl::Seconds(5));
  two->Beat();
  clock_.Advance(absl::Seconds(4));
  EXPECT_FALSE(one->Owns(kPartition)) << "its own deadline comes before the end of the lease";
  EXPECT_FAILS(two->Acquire(kPartition), kAborted, kConflict);
  clock_.Advance(absl::Seconds(1));
  ASSERT_OK_AND_ASSIGN(const uint64_t second, two->Acquire(kPartition));
  EXPECT_GT(second, first);
  EXPECT_FAILS(write(fence), kAborted, kConflict);
  // It notices, joins again, and does not own what it owned.
  one->Beat();
  EXPECT_FAILS(one->Acquire(kPartition), kFailedPrecondition, kNotReady);
  one->Beat();
  EXPECT_FALSE(one->Owns(kPartition));
  EXPECT_FAILS(one->Fence(kPartition), kPermissionDenied, kStaleOwner);
  EXPECT_FAILS(one->Acquire(kPartition), kAborted, kConflict);
  EXPECT_OK(write(*two->Fence(kPartition)));
}

// The Meta is away for less than a lease, or comes back before anybody took anything.
// Proves: S9
TEST_F(MembershipTest, OwnershipThatNobodyTookStays) {
  ASSERT_OK_AND_ASSIGN(const auto one, Membership::Join(faulty_, 5, clock_, Named("one")));
  ASSERT_OK_AND_ASSIGN(const uint64_t token, one->Acquire(kPartition));
  faulty_.SetFaults([](FaultyMeta::Call) { return Fault::kUnreachable; });
  clock_.Advance(absl::Seconds(8));
  one->Beat();
  EXPECT_TRUE(one->Owns(kPartition));
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(one->Owns(kPartition)) << "it cannot know any more";
  faulty_.Heal();
  one->Beat();  // the lease had a second left
  EXPECT_TRUE(one->Owns(kPartition));
  EXPECT_EQ(*one->Acquire(kPartition), token);
}

// Proves: S3, S5
TEST_F(MembershipTest, LostAnswersMakeNoSecondOwner) {
  ASSERT_OK_AND_ASSIGN(const auto one, Membership::Join(faulty_, 5, clock_, Named("one")));
  const auto two = Join("two");
  faulty_.SetFaults([](FaultyMeta::Call call) {
    return call == FaultyMeta::Call::kWrite ? Fault::kUnanswered : Fault::kNone;
  });
  ASSERT_OK_AND_ASSIGN(const uint64_t token, one->Acquire(kPartition));  // found by reading back
  faulty_.SetFaults([](FaultyMeta::Call call) {
    return call == FaultyMeta::Call::kWrite ? Fault::kLost : Fault::kNone;
  });
  EXPECT_FAILS(one->Acquire(kOther), kUnavailable, kUnknownOutcome);
  EXPECT_FALSE(one->Owns(kOther));
  faulty_.Heal();
  EXPECT_OK(two->Acquire(kOther));
  EXPECT_FAILS(one->Acquire(kOther), kAborted, kConflict);
  EXPECT_TRUE(one->Owns(kPartition));
  EXPECT_EQ(one->Fence(kPartition)->revision, token);
}

// An instance that comes back under its id is a new one: what it owned before is to be had.
TEST_F(MembershipTest, AnInstanceThatComesBackOwnsNothing) {
  auto one = Join("one");
  ASSERT_OK(one->Acquire(kPartition));
  one.reset();
  const auto again = Join("one");
  EXPECT_FALSE(again->Owns(kPartition));
  EXPECT_FALSE(again->ReadRoster()->assignments.front().alive);
  const auto two = Join("two");
  ASSERT_OK(two->Acquire(kPartition));
  EXPECT_FAILS(again->Acquire(kPartition), kAborted, kConflict);
}

// Proves: S5
TEST_F(MembershipTest, OfRacingInstancesOneGetsIt) {
  for (uint64_t round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<Membership>> members;
    for (int i = 0; i < 4; ++i) members.push_back(Join(std::to_string(i)));
    const SourceKey partition{"t", 1, round};
    std::atomic<int> owners = 0;
    std::vector<std::thread> threads;
    for (const auto& member : members) {
      threads.emplace_back([&] {
        const auto taken = member->Acquire(partition);
        if (taken.ok()) ++owners;
        EXPECT_TRUE(taken.ok() || DetailOf(taken.status()) == Detail::kConflict) << taken.status();
        EXPECT_EQ(member->Owns(partition), taken.ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(owners, 1);
  }
}

// Instances that sleep, lose their connection, leave and come back: at no moment do two hold a
// fence that the Meta would take, and tokens of a partition only rise. Proves: S5
TEST_F(MembershipTest, NoTwoOwnersWhateverHappens) {
  constexpr size_t kMembers = 3;
  for (const uint64_t seed : Seeds(30)) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::vector<std::unique_ptr<Membership>> members(kMembers);
    std::vector<std::optional<MetaCondition>> fences(kMembers);
    uint64_t newest = 0;
    for (int step = 0; step < 300; ++step) {
      const size_t at = rng.Below(kMembers);
      auto& member = members[at];
      if (member == nullptr) {
        auto joined = Membership::Join(faulty_, seed * 1'000 + nonces_++, clock_,
                                       Named("i" + std::to_string(at)));
        if (joined.ok()) member = *std::move(joined);
        continue;
      }
      switch (rng.Below(8)) {
        case 0:
          member.reset();
          break;
        case 1:
        case 2:
          member->Beat();
          break;
        case 3:
          clock_.Advance(absl::Seconds(rng.Below(6)));
          break;
        case 4:
          faulty_.SetFaults([fault = static_cast<Fault>(rng.Below(4))](FaultyMeta::Call call) {
            return call == FaultyMeta::Call::kWrite || call == FaultyMeta::Call::kLease
                       ? fault
                       : Fault::kNone;
          });
          break;
        case 5:
          faulty_.Heal();
          break;
        default:
          if (const auto token = member->Acquire(kPartition); token.ok()) {
            const auto fence = member->Fence(kPartition);
            if (fence.ok()) fences[at] = *fence;
            newest = std::max(newest, *token);
          }
      }
      // Whoever holds a fence from some time ago tries to write under it.
      std::set<uint64_t> revisions;
      for (const auto& fence : fences) {
        if (!fence.has_value()) continue;
        if (meta_.Transact({.conditions = {*fence}, .changes = {}}, {}).ok()) {
          revisions.insert(fence->revision);
          EXPECT_EQ(fence->revision, newest);
        }
      }
      ASSERT_LE(revisions.size(), 1u);
      size_t sure = 0;
      for (const auto& each : members) sure += each != nullptr && each->Owns(kPartition) ? 1 : 0;
      ASSERT_LE(sure, 1u);
    }
    faulty_.Heal();
    members.clear();
    clock_.Advance(absl::Seconds(30));
  }
}

}  // namespace
}  // namespace holdfast
