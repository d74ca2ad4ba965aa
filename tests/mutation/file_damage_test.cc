// Whole files cut, emptied, swapped, removed, duplicated or replaced by older copies of themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "journal/base/seeded_rng.h"
#include "journal/format/frame.h"
#include "journal/mark.h"
#include "tests/mutation/built_store.h"
#include "tests/support/seeds.h"

namespace holdfast {
namespace {

// Those in use: segments made ahead of need hold nothing.
std::vector<std::string> Segments(const BuiltStore& store) {
  std::vector<std::string> names;
  for (const auto& [name, groups] : store.groups) {
    if (!groups.empty()) names.push_back(name);
  }
  return names;
}

// Refused with kDataLoss, or everything is there.
void ExpectToldOrWhole(const BuiltStore& store, const SimDisk& damaged, const std::string& what) {
  const Verdict verdict = OpenDamaged(store, damaged, store.history.begun());
  ASSERT_EQ(verdict.complaint, "") << what;
}
void ExpectTold(const BuiltStore& store, const SimDisk& damaged, const std::string& what) {
  ExpectToldOrWhole(store, damaged, what);
  EXPECT_TRUE(OpenDamaged(store, damaged, 0).told) << what;
}

// Proves: G4, G6
TEST(FileDamageTest, EveryLengthCutOfEveryFileIsToldOrCostsNothing) {
  for (const uint64_t seed : Seeds(1)) {
    const BuiltStore store = BuildStore({.seed = seed, .boots = kFewCalls});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (const std::string& name : store.disk.Names()) {
      const uint64_t size = store.disk.Contents(name).size();
      for (uint64_t length = FirstOf(seed); length < size; length += OneIn()) {
        SimDisk damaged = store.disk;
        damaged.SetSize(name, length);
        ExpectToldOrWhole(store, damaged, fmt::format("seed {}, {} cut to {}", seed, name, length));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// After a kill a cut may take what no later mark covers, and never more.
// Proves: G2, G6
TEST(FileDamageTest, ACutAfterAKillLeavesAPrefix) {
  for (const uint64_t seed : Seeds(1)) {
    const BuiltStore store = BuildStore({.seed = seed, .clean = false, .boots = kFewCalls});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (const std::string& name : store.disk.Names()) {
      const uint64_t size = store.disk.Contents(name).size();
      for (uint64_t length = FirstOf(seed); length < size; length += OneIn()) {
        SimDisk damaged = store.disk;
        damaged.SetSize(name, length);
        const Verdict verdict = OpenDamaged(store, damaged, 0);
        ASSERT_EQ(verdict.complaint, "") << "seed " << seed << ", " << name << " cut to " << length;
      }
    }
  }
}

// Proves: G6
TEST(FileDamageTest, WhatStandsBehindTheEndIsIgnored) {
  const BuiltStore store = BuildStore({});
  ASSERT_FALSE(HasFailure());
  SeededRng rng(5);
  for (const auto& [name, groups] : store.groups) {
    const std::string bytes = store.disk.Contents(name);
    const uint64_t end = store.end(name);
    for (int round = 0; round < 40; ++round) {
      std::string tail(std::min<uint64_t>(bytes.size() - end, 1 + rng.Below(12'000)), '\0');
      if (tail.empty()) continue;
      // Garbage, text, or (where that is dead) a group of an earlier place in this very file.
      const uint64_t kind = rng.Below(name == Segments(store).back() ? 2 : 3);
      for (size_t i = 0; i < tail.size(); ++i) {
        if (kind == 0) tail[i] = static_cast<char>(rng.Next());
        if (kind == 1) tail[i] = "lorem ipsum "[i % 12];
        if (kind == 2) tail[i] = bytes[(end - std::min(end, kBlockBytes) + i) % end];
      }
      SimDisk damaged = store.disk;
      damaged.Damage(name, end, AsBytes(tail));
      const Verdict verdict = OpenDamaged(store, damaged, store.history.begun());
      EXPECT_EQ(verdict.complaint, "") << name << " round " << round;
      EXPECT_TRUE(verdict.opened) << name << " round " << round << " kind " << kind;
    }
    SimDisk longer = store.disk;
    longer.SetContents(name, AsBytes(bytes + std::string(8192, '\0')));
    EXPECT_TRUE(OpenDamaged(store, longer, store.history.begun()).opened) << name << " with zeros";
  }
}

// Behind the end of a clean stop nothing bears the stamp of the newest segment.
// Proves: G4, G6
TEST(FileDamageTest, AGroupBehindACleanEndIsTold) {
  const BuiltStore store = BuildStore({});
  const BuiltStore killed = BuildStore({.clean = false});
  ASSERT_FALSE(HasFailure());
  for (const BuiltStore* of : {&store, &killed}) {
    const std::string name = Segments(*of).back();
    const uint64_t end = of->end(name);
    const GroupPlace& last = of->groups.at(name).back();
    SimDisk damaged = of->disk;
    damaged.Damage(name, end, AsBytes(of->disk.Contents(name).substr(last.offset, last.bytes)));
    if (of == &store) {
      ExpectTold(*of, damaged, "the last group twice");
    } else {
      EXPECT_TRUE(OpenDamaged(*of, damaged, of->history.begun()).opened) << "a torn tail";
    }
  }
}

// Proves: G4, G6
TEST(FileDamageTest, AMissingSegmentIsTold) {
  const BuiltStore store = BuildStore({});
  ASSERT_FALSE(HasFailure());
  const std::vector<std::string> segments = Segments(store);
  ASSERT_GE(segments.size(), 3u);
  for (size_t bits = 1; bits < size_t{1} << segments.size(); ++bits) {
    SimDisk damaged = store.disk;
    for (size_t i = 0; i < segments.size(); ++i) {
      if (((bits >> i) & 1) != 0) damaged.Erase(segments[i]);
    }
    ExpectTold(store, damaged, fmt::format("segments {:b} missing", bits));
  }
}

// Proves: G4, G6
TEST(FileDamageTest, SwappedOrDuplicatedSegmentsAreTold) {
  const BuiltStore store = BuildStore({});
  ASSERT_FALSE(HasFailure());
  const std::vector<std::string> segments = Segments(store);
  for (const std::string& a : segments) {
    for (const std::string& b : segments) {
      if (a == b) continue;
      SimDisk duplicated = store.disk;
      duplicated.SetContents(b, AsBytes(store.disk.Contents(a)));
      ExpectTold(store, duplicated, b + " is a copy of " + a);
      SimDisk swapped = duplicated;
      swapped.SetContents(a, AsBytes(store.disk.Contents(b)));
      ExpectTold(store, swapped, a + " and " + b + " swapped");
    }
  }
  // A copy behind the newest is a stranger to the chain.
  for (const std::string& a : segments) {
    SimDisk damaged = store.disk;
    damaged.SetContents("journal/0000000000000099.seg", AsBytes(store.disk.Contents(a)));
    ExpectToldOrWhole(store, damaged, "a copy of " + a + " as segment 99");
  }
}

// A file restored from a backup of the same store.
// Proves: G4, G6
TEST(FileDamageTest, AnOlderCopyOfAFileIsToldOrCostsNothing) {
  const BuiltStore newer = BuildStore({.boots = {24, 24, 24}});
  const BuiltStore older = BuildStore({.boots = {24, 24}});
  const BuiltStore killed = BuildStore({.clean = false, .boots = {24, 24}});
  ASSERT_FALSE(HasFailure());
  const size_t all = newer.history.begun();
  for (const BuiltStore* backup : {&older, &killed}) {
    std::vector<std::string> names = backup->disk.Names();
    std::erase(names, "LOCK");
    for (size_t bits = 1; bits < size_t{1} << names.size(); ++bits) {
      SimDisk damaged = newer.disk;
      std::string what;
      for (size_t i = 0; i < names.size(); ++i) {
        if (((bits >> i) & 1) == 0) continue;
        damaged.SetContents(names[i], AsBytes(backup->disk.Contents(names[i])));
        what += " " + names[i];
      }
      // Where MARK is the older one too, nothing knows of what came later: it may be gone, whole
      // calls from the end.
      const bool mark = damaged.Contents(kMarkFile) == backup->disk.Contents(kMarkFile);
      const Verdict verdict = OpenDamaged(newer, damaged, mark ? backup->history.begun() : all);
      ASSERT_EQ(verdict.complaint, "") << "older copies of" << what;
    }
  }
}

// Proves: G4, G6
TEST(FileDamageTest, MarkWithoutAValidSlotIsToldAndOneIsEnough) {
  const BuiltStore store = BuildStore({});
  ASSERT_FALSE(HasFailure());
  const std::string zeros(4096, '\0');
  for (const uint64_t slot : {0, 4096}) {
    SimDisk damaged = store.disk;
    damaged.Damage(kMarkFile, slot, AsBytes(zeros));
    const Verdict verdict = OpenDamaged(store, damaged, store.history.begun());
    EXPECT_EQ(verdict.complaint, "");
    EXPECT_TRUE(verdict.opened) << "slot at " << slot;
  }
  SimDisk both = store.disk;
  both.Damage(kMarkFile, 0, AsBytes(zeros + zeros));
  ExpectTold(store, both, "both slots");
  SimDisk none = store.disk;
  none.Erase(kMarkFile);
  ExpectTold(store, none, "no MARK");
}

// A block that the device wrote to another place, or twice.
// Proves: G4
TEST(FileDamageTest, MisdirectedBlocksAreToldOrCostNothing) {
  const BuiltStore store = BuildStore({});
  ASSERT_FALSE(HasFailure());
  struct Block {
    std::string name;
    uint64_t at;
  };
  std::vector<Block> blocks;
  for (const std::string& name : store.disk.Names()) {
    const uint64_t size = store.disk.Contents(name).size();
    const uint64_t used = name.ends_with(".seg") ? std::min(size, store.end(name) + 4096) : size;
    for (uint64_t at = 0; at + 4096 <= used; at += 4096) blocks.push_back({name, at});
  }
  ASSERT_GT(blocks.size(), 15u);
  for (const Block& from : blocks) {
    const std::string bytes = store.disk.Contents(from.name).substr(from.at, 4096);
    for (const Block& to : blocks) {
      SimDisk damaged = store.disk;
      damaged.Damage(to.name, to.at, AsBytes(bytes));
      ExpectToldOrWhole(store, damaged,
                        fmt::format("{}@{} written to {}@{}", from.name, from.at, to.name, to.at));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace holdfast
