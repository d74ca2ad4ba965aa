// Every byte of a small store flipped, one at a time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "journal/format/frame.h"
#include "journal/mark.h"
#include "recovery/survey.h"
#include "tests/mutation/built_store.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// `byte` is what stands there.
SimDisk Flipped(const BuiltStore& store, const std::string& name, uint64_t at, char byte,
                uint8_t bits) {
  SimDisk damaged = store.disk;
  const char flipped = static_cast<char>(byte ^ bits);
  damaged.Damage(name, at, AsBytes({&flipped, 1}));
  return damaged;
}

const GroupPlace* GroupAt(const BuiltStore& store, const std::string& name, uint64_t at) {
  const auto file = store.groups.find(name);
  if (file == store.groups.end()) return nullptr;
  for (const GroupPlace& group : file->second) {
    if (at >= group.offset && at < group.offset + group.bytes) return &group;
  }
  return nullptr;
}

bool InBatch(const GroupPlace* group, uint64_t at) {
  return group != nullptr &&
         std::any_of(group->batches.begin(), group->batches.end(), [&](const auto& batch) {
           return at >= batch.first && at < batch.first + batch.second;
         });
}

// Where the padding of a group begins.
uint64_t PaddingOf(const GroupPlace& group) {
  return group.batches.empty()
             ? group.offset + group.bytes
             : AlignUp(group.batches.back().first + group.batches.back().second, 8);
}

// One bit, or all of them. Nine seeds in a row flip a place in all nine ways.
uint8_t BitsFor(uint64_t at, uint64_t seed) {
  const uint64_t way = (at * 7 + seed) % 9;
  return way == 8 ? 0xff : static_cast<uint8_t>(1u << way);
}

class QuietVisitor : public SurveyVisitor {
 public:
  void OnDamage(const Damage& damage) override {
    ++damages;
    refusing += damage.refuses_open;
  }
  size_t damages = 0, refusing = 0;
};

void ExpectEveryFlipToldAfterACleanStop(uint64_t seed, const std::vector<size_t>& boots) {
  const BuiltStore store = BuildStore({.seed = seed, .boots = boots});
  ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  size_t told = 0, opened = 0;
  for (const std::string& name : store.disk.Names()) {
    const std::string bytes = store.disk.Contents(name);
    for (uint64_t at = FirstOf(seed); at < bytes.size(); at += OneIn()) {
      const Verdict verdict = OpenDamaged(
          store, Flipped(store, name, at, bytes[at], BitsFor(at, seed)), store.history.begun());
      ASSERT_EQ(verdict.complaint, "") << "seed " << seed << ", " << name << " byte " << at;
      const GroupPlace* group = GroupAt(store, name, at);
      if (InBatch(group, at)) {
        ASSERT_TRUE(verdict.told) << "seed " << seed << ", " << name << " byte " << at
                                  << " is in a confirmed batch and nobody said so";
      } else if (group != nullptr && at >= PaddingOf(*group)) {
        ASSERT_TRUE(verdict.opened)
            << "seed " << seed << ", " << name << " byte " << at << " is padding";
      }
      told += verdict.told;
      opened += verdict.opened;
    }
  }
  EXPECT_GT(told * OneIn(), 3000u);
  EXPECT_GT(opened * OneIn(), 100'000u);
}

// After a clean stop every flipped byte of a confirmed batch refuses the open, and a flip elsewhere
// costs nothing: it is told, or the whole state is there. Padding, the zeros behind the end and
// segments made ahead of need are flipped like all else. Proves: G4, G5, G6
TEST(ByteFlipTest, AfterACleanStopEveryDamagedBatchIsTold) {
  for (const uint64_t seed : Seeds(1)) {
    for (const auto& boots : {kFewCalls, kOneRotation}) {
      ExpectEveryFlipToldAfterACleanStop(seed, boots);
      if (HasFatalFailure()) return;
    }
  }
}

// After a kill the same holds for all that a later mark covers; the groups behind the last mark may
// be cut, and nothing in the middle is ever missing. Proves: G4, G5, G6, G2
TEST(ByteFlipTest, AfterAKillAllThatALaterMarkCoversIsTold) {
  for (const uint64_t seed : Seeds(1)) {
    const BuiltStore store = BuildStore({.seed = seed, .clean = false, .boots = kFewCalls});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (const std::string& name : store.disk.Names()) {
      const std::string bytes = store.disk.Contents(name);
      for (uint64_t at = FirstOf(seed); at < bytes.size(); at += OneIn()) {
        const GroupPlace* hit = GroupAt(store, name, at);
        uint64_t proved = 0;
        for (const auto& [segment, groups] : store.groups) {
          for (const GroupPlace& group : groups) {
            if (&group != hit) proved = std::max(proved, group.synced);
          }
        }
        const Verdict verdict =
            OpenDamaged(store, Flipped(store, name, at, bytes[at], BitsFor(at, seed)),
                        store.history.CountThrough(proved));
        ASSERT_EQ(verdict.complaint, "")
            << "seed " << seed << ", " << name << " byte " << at << ", proved " << proved;
      }
    }
  }
}

// Padding carries nothing: replay ignores a flip there, verify tells it.
// Proves: G5
TEST(ByteFlipTest, AFlipInPaddingLosesNothingAndVerifyTellsIt) {
  const BuiltStore store = BuildStore({.boots = kFewCalls});
  ASSERT_FALSE(HasFailure());
  size_t flips = 0, told = 0;
  for (const auto& [name, groups] : store.groups) {
    const std::string bytes = store.disk.Contents(name);
    for (const GroupPlace& group : groups) {
      for (uint64_t at = PaddingOf(group); at < group.offset + group.bytes; at += OneIn()) {
        SimStorage storage(Flipped(store, name, at, bytes[at], BitsFor(at, 1)));
        QuietVisitor visitor;
        const auto report = Survey(storage, visitor, {});
        ASSERT_TRUE(report.ok()) << report.status();
        ASSERT_TRUE(report->open_status.ok()) << name << " byte " << at;
        // Behind the end that a successor recorded nothing is padding any more: it is dead.
        const bool last = &group == &groups.back();
        ASSERT_LE(visitor.damages, 1u) << name << " byte " << at;
        ASSERT_TRUE(last || visitor.damages == 1) << name << " byte " << at;
        told += visitor.damages;
        ASSERT_EQ(visitor.refusing, 0u) << name << " byte " << at;
        ++flips;
      }
    }
  }
  EXPECT_GT(flips * OneIn(), 10'000u);
  EXPECT_GT(told * OneIn(), 10'000u);
}

}  // namespace
}  // namespace holdfast
