#include "tests/sim/sim_disk.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

std::shared_ptr<const std::vector<std::byte>> Shared(const std::string& text) {
  const ByteView bytes = AsBytes(text);
  return std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

// Every state that a power cut can leave of one file; "(none)" where it has no name.
std::set<std::string> Outcomes(const SimDisk& disk, const std::string& name) {
  std::set<std::string> outcomes;
  for (const auto& kept : CutChoices(disk.Loose().size(), 5000, 1)) {
    const SimDisk after = disk.PowerCut(kept);
    outcomes.insert(after.Exists(name) ? after.Contents(name) : "(none)");
  }
  return outcomes;
}

std::string Sectors(const std::string& letters) {
  std::string bytes;
  for (char letter : letters) bytes.append(512, letter);
  return bytes;
}

// A file whose name and bytes are durable.
struct Synced {
  explicit Synced(const std::string& bytes) : inode(disk.Create("f")) {
    EXPECT_TRUE(disk.Write(inode, 0, AsBytes(bytes)));
    disk.Sync(inode);
    disk.SyncFolder("");
    EXPECT_TRUE(disk.Loose().empty());
  }
  SimDisk disk;
  uint64_t inode;
};

// A page that is written costs memory; zeros do not show and read back as zeros.
TEST(SimContentTest, ZerosAreNotStoredAndSharedPagesAreCopiedBeforeAWrite) {
  SimContent content;
  content.SetSize(1 << 20);
  content.Write(5000, AsBytes("hello"));
  SimContent copy = content;
  copy.Write(5000, AsBytes("HELLO"));
  std::string read(7, 'x');
  content.Read(4999, {reinterpret_cast<std::byte*>(read.data()), read.size()});
  EXPECT_EQ(read, std::string("\0hello\0", 7));
  copy.Read(4999, {reinterpret_cast<std::byte*>(read.data()), read.size()});
  EXPECT_EQ(read, std::string("\0HELLO\0", 7));
}

TEST(SimContentTest, AShrinkForgetsWhatItCutsOff) {
  SimContent content;
  content.SetSize(6000);
  content.Write(0, AsBytes(std::string(6000, 'x')));
  content.SetSize(4097);
  content.SetSize(6000);
  EXPECT_TRUE(content.Equals(4096, AsBytes(std::string(1, 'x') + std::string(1903, '\0'))));
}

// Any subset of the sectors written since the last sync may be on disk.
TEST(SimDiskTest, APlainWriteIsTornAtEverySector) {
  Synced synced(Sectors("ab"));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("AB"))));
  EXPECT_EQ(Outcomes(synced.disk, "f"),
            (std::set<std::string>{Sectors("ab"), Sectors("Ab"), Sectors("aB"), Sectors("AB")}));
}

TEST(SimDiskTest, ASyncMakesWhatWasWrittenBeforeItCertain) {
  Synced synced(Sectors("ab"));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("AB"))));
  synced.disk.Sync(synced.inode);
  ASSERT_TRUE(synced.disk.Write(synced.inode, 512, AsBytes(Sectors("x"))));
  EXPECT_EQ(Outcomes(synced.disk, "f"), (std::set<std::string>{Sectors("AB"), Sectors("Ax")}));
}

// Two writes to one sector: the older, the newer or neither.
TEST(SimDiskTest, EachVersionOfASectorMayBeTheLastThatLanded) {
  Synced synced(Sectors("a"));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("b"))));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("c"))));
  EXPECT_EQ(Outcomes(synced.disk, "f"),
            (std::set<std::string>{Sectors("a"), Sectors("b"), Sectors("c")}));
}

TEST(SimDiskTest, TheSizeAndTheBytesOfAGrowthAreLostApart) {
  Synced synced(Sectors("a"));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 512, AsBytes(Sectors("b"))));
  EXPECT_EQ(
      Outcomes(synced.disk, "f"),
      (std::set<std::string>{Sectors("a"), Sectors("a") + std::string(512, '\0'), Sectors("ab")}));
}

TEST(SimDiskTest, ANewFileMayHaveNoNameOrNoBytes) {
  SimDisk disk;
  const uint64_t inode = disk.Create("f");
  ASSERT_TRUE(disk.Write(inode, 0, AsBytes("x")));
  EXPECT_EQ(Outcomes(disk, "f"), (std::set<std::string>{"(none)", "", std::string(1, '\0'), "x"}));
  disk.Sync(inode);
  EXPECT_EQ(Outcomes(disk, "f"), (std::set<std::string>{"(none)", "x"}));
  disk.SyncFolder("");
  EXPECT_EQ(Outcomes(disk, "f"), (std::set<std::string>{"x"}));
}

TEST(SimDiskTest, AFileInAFolderThatIsLostIsLostWithIt) {
  SimDisk disk;
  disk.MakeFolder("d");
  disk.Create("d/f");
  disk.SyncFolder("d");
  EXPECT_EQ(Outcomes(disk, "d/f"), (std::set<std::string>{"(none)", ""}));
  disk.SyncFolder("");
  EXPECT_EQ(Outcomes(disk, "d/f"), (std::set<std::string>{""}));
}

TEST(SimDiskTest, ARenameIsWholeOrNotThereUntilTheFolderIsSynced) {
  Synced synced("new");
  synced.disk.SetContents("g", AsBytes("old"));
  synced.disk.Rename("f", "g");
  std::set<std::pair<bool, std::string>> seen;
  for (const auto& kept : CutChoices(synced.disk.Loose().size(), 100, 1)) {
    const SimDisk after = synced.disk.PowerCut(kept);
    seen.insert({after.Exists("f"), after.Contents("g")});
  }
  EXPECT_EQ(seen, (std::set<std::pair<bool, std::string>>{{true, "old"}, {false, "new"}}));
  synced.disk.SyncFolder("");
  EXPECT_TRUE(synced.disk.Loose().empty());
}

TEST(SimDiskTest, ARenameToAnotherFolderNeverLosesTheFile) {
  Synced synced("bytes");
  synced.disk.MakeFolder("d");
  synced.disk.SyncFolder("");
  synced.disk.Rename("f", "d/f");
  for (const auto& kept : CutChoices(synced.disk.Loose().size(), 100, 1)) {
    const SimDisk after = synced.disk.PowerCut(kept);
    EXPECT_TRUE(after.Exists("f") || after.Exists("d/f"));
  }
}

TEST(SimDiskTest, ARemovedFileMayComeBackUntilTheFolderIsSynced) {
  Synced synced("x");
  synced.disk.Remove("f");
  EXPECT_EQ(Outcomes(synced.disk, "f"), (std::set<std::string>{"(none)", "x"}));
  synced.disk.SyncFolder("");
  EXPECT_EQ(Outcomes(synced.disk, "f"), (std::set<std::string>{"(none)"}));
}

// A device with FUA writes the range it was asked for and nothing else.
TEST(SimDiskTest, ADurableWriteCoversItsOwnRangeOnly) {
  Synced synced(Sectors("ab"));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("A"))));
  const uint64_t flight = synced.disk.Launch(
      {.kind = WriteKind::kDurable, .writes = {{synced.inode, 1, 512, Shared(Sectors("B"))}}});
  EXPECT_EQ(Outcomes(synced.disk, "f").size(), 4u);
  synced.disk.Land(flight);
  EXPECT_EQ(Outcomes(synced.disk, "f"), (std::set<std::string>{Sectors("aB"), Sectors("AB")}));
}

TEST(SimDiskTest, AFlushCoversWhatHadCompletedWhenItWasSubmitted) {
  Synced synced(Sectors("abc"));
  SimDisk& disk = synced.disk;
  const auto launch = [&](uint64_t offset, const std::string& letter) {
    return disk.Launch({.kind = WriteKind::kPlain,
                        .writes = {{synced.inode, 1, offset, Shared(Sectors(letter))}}});
  };
  const uint64_t first = launch(0, "A");
  const uint64_t second = launch(512, "B");
  disk.Land(first);
  const uint64_t flush =
      disk.Launch({.kind = WriteKind::kFlush, .writes = {{synced.inode, 1, 0, Shared("")}}});
  disk.Land(second);
  ASSERT_TRUE(disk.Write(synced.inode, 1024, AsBytes(Sectors("C"))));
  disk.Land(flush);
  EXPECT_EQ(Outcomes(disk, "f"), (std::set<std::string>{Sectors("Abc"), Sectors("ABc"),
                                                        Sectors("AbC"), Sectors("ABC")}));
}

TEST(SimDiskTest, ReadsSeeABatchOnlyWhenItHasCompleted) {
  Synced synced(Sectors("a"));
  const uint64_t flight = synced.disk.Launch(
      {.kind = WriteKind::kPlain, .writes = {{synced.inode, 1, 0, Shared(Sectors("b"))}}});
  EXPECT_EQ(synced.disk.Contents("f"), Sectors("a"));
  synced.disk.Land(flight);
  EXPECT_EQ(synced.disk.Contents("f"), Sectors("b"));
}

// F16: after a failed sync the cache shows bytes that no later sync brings to disk.
TEST(SimDiskTest, ALaterSyncDoesNotCoverWhatAFailedOneLost) {
  Synced synced(Sectors("a"));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("b"))));
  synced.disk.LoseUnsynced(synced.inode);
  synced.disk.Sync(synced.inode);
  EXPECT_EQ(synced.disk.Contents("f"), Sectors("b"));
  EXPECT_EQ(Outcomes(synced.disk, "f"), (std::set<std::string>{Sectors("a"), Sectors("b")}));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("b"))));
  synced.disk.Sync(synced.inode);
  EXPECT_EQ(Outcomes(synced.disk, "f"), (std::set<std::string>{Sectors("b")}));
}

TEST(SimDiskTest, APowerCutStartsAnotherBootAndAKillDoesNot) {
  Synced synced("x");
  EXPECT_NE(synced.disk.PowerCut({}).boot(), synced.disk.boot());
  EXPECT_EQ(synced.disk.Kill(1, false).boot(), synced.disk.boot());
}

TEST(SimDiskTest, AKillKeepsWhatWasWrittenThoughNotSynced) {
  Synced synced(Sectors("a"));
  ASSERT_TRUE(synced.disk.Write(synced.inode, 0, AsBytes(Sectors("b"))));
  SimDisk after = synced.disk.Kill(1, false);
  EXPECT_EQ(after.Contents("f"), Sectors("b"));
  EXPECT_EQ(Outcomes(after, "f"), (std::set<std::string>{Sectors("a"), Sectors("b")}));
}

// F15: a request of the killed process lands when its successor has read already; its lock says so.
TEST(SimDiskTest, ALateBatchPinsTheLockOfItsFile) {
  Synced synced(Sectors("a"));
  SimDisk& disk = synced.disk;
  const uint64_t handle = disk.NewHandle();
  ASSERT_TRUE(disk.TryLock(synced.inode, handle));
  (void)disk.Launch({.kind = WriteKind::kPlain,  // in flight until the kill; its id is not needed
                     .writes = {{synced.inode, handle, 0, Shared(Sectors("b"))}}});
  bool met = false;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk after = disk.Kill(seed, true);
    if (after.late_count() == 0) {
      EXPECT_TRUE(after.TryLock(synced.inode, after.NewHandle()));
      continue;
    }
    met = true;
    const uint64_t successor = after.NewHandle();
    EXPECT_EQ(after.Contents("f"), Sectors("a"));
    EXPECT_FALSE(after.TryLock(synced.inode, successor));
    EXPECT_TRUE(after.LandLate(synced.inode));
    EXPECT_EQ(after.Contents("f"), Sectors("b"));
    EXPECT_TRUE(after.TryLock(synced.inode, successor));
  }
  EXPECT_TRUE(met);
}

TEST(SimDiskTest, ADamagedByteIsDamagedInBothViews) {
  Synced synced("abc");
  const uint64_t before = synced.disk.Fingerprint();
  synced.disk.Damage("f", 1, AsBytes("X"));
  EXPECT_EQ(synced.disk.Contents("f"), "aXc");
  EXPECT_EQ(synced.disk.PowerCut({}).Contents("f"), "aXc");
  EXPECT_NE(synced.disk.Fingerprint(), before);
}

TEST(CutChoicesTest, FewLooseWritesAreEnumeratedAndManyAreSampled) {
  EXPECT_EQ(CutChoices(0, 10, 1).size(), 1u);
  const auto all = CutChoices(5, 40, 1);
  EXPECT_EQ(std::set<std::vector<bool>>(all.begin(), all.end()).size(), 32u);
  for (size_t count : {13u, 100u, 1000u}) {
    const auto some = CutChoices(count, 60, 7);
    EXPECT_EQ(some.size(), 60u);
    EXPECT_EQ(some[0], std::vector<bool>(count, false));
    EXPECT_EQ(some[1], std::vector<bool>(count, true));
    EXPECT_EQ(some, CutChoices(count, 60, 7));
  }
  EXPECT_LE(CutChoices(100, 3, 1).size(), 3u);
}

}  // namespace
}  // namespace holdfast
