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

SimDisk Flipped(const BuiltStore& store, const std::string& name, uint64_t at, uint8_t bits) {
  SimDisk damaged = store.disk;
  std::string byte = store.disk.Contents(name).substr(at, 1);
  byte[0] = static_cast<char>(byte[0] ^ bits);
  damaged.Damage(name, at, AsBytes(byte));
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

// Bytes to flip: all that say something, and some of the padding and of the zeros behind the end.
std::vector<uint64_t> Places(const BuiltStore& store, const std::string& name) {
  std::vector<uint64_t> places;
  const std::string bytes = store.disk.Contents(name);
  for (uint64_t at = 0; at < bytes.size(); at += OneIn()) {
    const GroupPlace* group = GroupAt(store, name, at);
    const bool header = group != nullptr && at < group->offset + kGroupHeaderBytes;
    if (bytes[at] != 0 || header || InBatch(group, at) || at % 61 == 0) places.push_back(at);
  }
  return places;
}

uint8_t BitsFor(uint64_t at) { return static_cast<uint8_t>(1u << (at * 7 % 8)); }

class QuietVisitor : public SurveyVisitor {
 public:
  void OnDamage(const Damage& damage) override {
    ++damages;
    refusing += damage.refuses_open;
  }
  size_t damages = 0, refusing = 0;
};

// After a clean stop every flipped bit of a confirmed batch refuses the open, and a flip elsewhere
// costs nothing: it is told, or the whole state is there. Proves: G4, G5, G6
TEST(ByteFlipTest, AfterACleanStopEveryDamagedBatchIsTold) {
  for (const uint64_t seed : Seeds(1)) {
    const BuiltStore store = BuildStore({.seed = seed});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    size_t told = 0, opened = 0;
    for (const std::string& name : store.disk.Names()) {
      for (const uint64_t at : Places(store, name)) {
        const Verdict verdict =
            OpenDamaged(store, Flipped(store, name, at, BitsFor(at)), store.history.begun());
        ASSERT_EQ(verdict.complaint, "") << "seed " << seed << ", " << name << " byte " << at;
        if (InBatch(GroupAt(store, name, at), at)) {
          ASSERT_TRUE(verdict.told) << "seed " << seed << ", " << name << " byte " << at
                                    << " is in a confirmed batch and nobody said so";
        }
        told += verdict.told;
        opened += verdict.opened;
      }
    }
    EXPECT_GT(told * OneIn(), 5000u);
    EXPECT_GT(opened * OneIn(), 1000u);
  }
}

// After a kill the same holds for all that a later mark covers; the groups behind the last mark may
// be cut, and nothing in the middle is ever missing. Proves: G4, G5, G6, G2
TEST(ByteFlipTest, AfterAKillAllThatALaterMarkCoversIsTold) {
  for (const uint64_t seed : Seeds(1)) {
    const BuiltStore store = BuildStore({.seed = seed, .clean = false});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (const std::string& name : store.disk.Names()) {
      for (const uint64_t at : Places(store, name)) {
        const GroupPlace* hit = GroupAt(store, name, at);
        uint64_t proved = 0;
        for (const auto& [segment, groups] : store.groups) {
          for (const GroupPlace& group : groups) {
            if (&group != hit) proved = std::max(proved, group.synced);
          }
        }
        const Verdict verdict = OpenDamaged(store, Flipped(store, name, at, BitsFor(at)),
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
  const BuiltStore store = BuildStore({});
  ASSERT_FALSE(HasFailure());
  size_t flips = 0, told = 0;
  for (const auto& [name, groups] : store.groups) {
    for (const GroupPlace& group : groups) {
      if (group.batches.empty()) continue;
      const auto [offset, length] = group.batches.back();
      for (uint64_t at = AlignUp(offset + length, 8); at < group.offset + group.bytes; at += 131) {
        const SimDisk damaged = Flipped(store, name, at, 0x10);
        const Verdict verdict = OpenDamaged(store, damaged, store.history.begun());
        ASSERT_EQ(verdict.complaint, "") << name << " byte " << at;
        ASSERT_TRUE(verdict.opened) << name << " byte " << at;
        SimStorage storage(damaged);
        QuietVisitor visitor;
        const auto report = Survey(storage, visitor, {});
        ASSERT_TRUE(report.ok()) << report.status();
        // Behind the end that a successor recorded nothing is padding any more: it is dead.
        const bool last = &group == &groups.back();
        EXPECT_LE(visitor.damages, 1u) << name << " byte " << at;
        EXPECT_TRUE(last || visitor.damages == 1) << name << " byte " << at;
        told += visitor.damages;
        EXPECT_EQ(visitor.refusing, 0u) << name << " byte " << at;
        ++flips;
      }
    }
  }
  EXPECT_GT(flips, 50u);
  EXPECT_GT(told, 20u);
}

}  // namespace
}  // namespace holdfast
