// What refuses an open, and that a refusal has changed no byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "journal/format/codec.h"
#include "recovery/opener.h"
#include "recovery/repair.h"
#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

struct Mutation {
  const char* what;
  std::function<void(SimDisk&)> apply;
  StatusCode code = StatusCode::kDataLoss;
  Detail detail = Detail::kDamage;
  const char* named;  // in the message
};

// Proves: G5 G6
TEST(OpenerRefusalTest, DamageIsNamedAndNoByteIsChanged) {
  const SimDisk clean = TwoSegments(true);
  const Mutation mutations[] = {
      {.what = "a batch",
       .apply = [](SimDisk& d) { Flip(d, Name(1), kFirstGroupOffset + 100); },
       .named = "offset 8256, LSN 1"},
      {.what = "a group is gone",
       .apply =
           [](SimDisk& d) {
             d.Damage(Name(1), kFirstGroupOffset + kBlockBytes,
                      std::vector<std::byte>(kBlockBytes));
           },
       .named = "offset 12288, LSN 4"},
      {.what = "the newest group is gone",
       .apply =
           [](SimDisk& d) {
             d.Damage(Name(2), kFirstGroupOffset + kBlockBytes,
                      std::vector<std::byte>(kBlockBytes));
           },
       .named = "LSN 11"},
      {.what = "a Link",
       .apply = [](SimDisk& d) { Flip(d, Name(1), kSegmentHeaderBytes + 100); },
       .named = "0000000000000001.seg"},
      {.what = "the newest Link",
       .apply = [](SimDisk& d) { Flip(d, Name(2), kSegmentHeaderBytes + 100); },
       .named = "0000000000000002.seg"},
      {.what = "header and Link",
       .apply =
           [](SimDisk& d) {
             Flip(d, Name(1), 40);
             Flip(d, Name(1), kSegmentHeaderBytes + 100);
           },
       .named = "0000000000000001.seg"},
      {.what = "a segment is missing",
       .apply = [](SimDisk& d) { d.Erase(Name(1)); },
       .named = "missing"},
      {.what = "the newest is missing",
       .apply = [](SimDisk& d) { d.Erase(Name(2)); },
       .named = "segment 2"},
      {.what = "the newest is empty",
       .apply = [](SimDisk& d) { d.SetSize(Name(2), 0); },
       .named = "segment 2"},
      {.what = "the newest is cut at a group",
       .apply = [](SimDisk& d) { d.SetSize(Name(2), kFirstGroupOffset + kBlockBytes); },
       .named = "LSN 11"},
      {.what = "all segments are missing",
       .apply =
           [](SimDisk& d) {
             d.Erase(Name(1));
             d.Erase(Name(2));
           },
       .named = "MARK"},
      {.what = "swapped",
       .apply =
           [](SimDisk& d) {
             const std::string one = d.Contents(Name(1)), two = d.Contents(Name(2));
             d.SetContents(Name(1), AsBytes(two));
             d.SetContents(Name(2), AsBytes(one));
           },
       .named = "MARK"},
      {.what = "MARK is missing", .apply = [](SimDisk& d) { d.Erase("MARK"); }, .named = "MARK"},
      {.what = "both slots of MARK",
       .apply =
           [](SimDisk& d) {
             Flip(d, "MARK", 20);
             Flip(d, "MARK", kBlockBytes + 20);
           },
       .named = "MARK"},
      {.what = "a stranger among the segments",
       .apply = [](SimDisk& d) { d.SetContents(Name(9), AsBytes("hello")); },
       .named = "0000000000000009.seg"},
  };
  for (const Mutation& mutation : mutations) {
    SCOPED_TRACE(mutation.what);
    SimDisk disk = clean;
    mutation.apply(disk);
    const uint64_t before = disk.Fingerprint();
    Boot boot{disk, 5};
    EXPECT_TRUE(FailsWith(boot.status, mutation.code, mutation.detail));
    EXPECT_NE(Message(boot.status).find(mutation.named), std::string::npos)
        << boot.status.ToString();
    EXPECT_EQ(boot.storage->disk().Fingerprint(), before);
    // A reader says the same.
    RecordingMachine machine;
    EXPECT_EQ(OpenReadOnly(*boot.storage, machine.machines()).status(), boot.status);
  }
}

// An older copy of a segment file, restored over the newer one.
TEST(OpenerRefusalTest, CopiesOfDifferentMomentsAreRefused) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2});
  first.store().CloseClean();
  const SimDisk early = first.Killed();
  Boot second{early, 2};
  second.store().AppendSynced({3});
  second.store().CloseClean();
  const SimDisk late = second.Killed();
  {
    // MARK says closed at LSN 2, but the journal goes on.
    SimDisk disk = late;
    disk.SetContents("MARK", AsBytes(early.Contents("MARK")));
    Boot boot{disk, 3};
    EXPECT_FAILS(boot.status, kDataLoss, kDamage);
    EXPECT_NE(Message(boot.status).find("mixed copies"), std::string::npos)
        << boot.status.ToString();
  }
  {
    // The segment that the newest one follows is replaced by that of another store.
    Boot other{SimDisk(), 77};
    other.store().AppendSynced({2});
    SimDisk disk = late;
    disk.SetContents(Name(1), AsBytes(other.Killed().Contents(Name(1))));
    Boot boot{disk, 3};
    EXPECT_FAILS(boot.status, kDataLoss, kDamage);
    EXPECT_NE(Message(boot.status).find("another store"), std::string::npos)
        << boot.status.ToString();
  }
}

// After a clean stop nothing was written from MARK.end on. Whatever bears the stamp there, whole or
// not, is of another moment; a repair keeps all that is healthy.
// Proves: G4 G6
TEST(OpenerRefusalTest, WhatFollowsACleanEndIsRefusedWhateverItsState) {
  Boot first{SimDisk()};
  first.store().AppendSynced({2});
  first.store().CloseClean();
  const std::string mark = first.Killed().Contents("MARK");
  const uint64_t at = first.store().Append({1});
  first.store().Append({1});
  SimDisk later = first.Killed();
  later.SetContents("MARK", AsBytes(mark));

  SimDisk torn = later, hole = later, stamp = later;
  Flip(torn, Name(1), at + kGroupHeaderBytes + 40);
  hole.Damage(Name(1), at, std::vector<std::byte>(kBlockBytes));
  stamp.Damage(Name(1), at, std::vector<std::byte>(2 * kBlockBytes));
  stamp.Damage(Name(1), at, AsBytes(later.Contents(Name(1)).substr(at, 8)));
  for (const SimDisk& disk : {later, torn, hole, stamp}) {
    Boot boot{disk, 3};
    EXPECT_FAILS(boot.status, kDataLoss, kDamage);
    EXPECT_NE(Message(boot.status).find("mixed copies"), std::string::npos)
        << boot.status.ToString();
    EXPECT_EQ(boot.storage->disk().Fingerprint(), disk.Fingerprint());

    SimStorage storage(disk);
    SimClock clock;
    clock.JumpWhenAsked(absl::Seconds(1));
    SeededRng rng(4);
    ASSERT_OK(ApplyRepair(storage, clock, rng, {}).status());
    Boot repaired{storage.disk(), 5};
    ASSERT_OK(repaired.status);
    EXPECT_THAT(repaired.machine.lsns(), testing::IsSupersetOf(UpTo(2)));
  }
}

TEST(OpenerRefusalTest, OneGoodSlotOfMarkIsEnough) {
  for (const uint64_t slot : {0, 1}) {
    SimDisk disk = TwoSegments(true);
    Flip(disk, "MARK", slot * kBlockBytes + 20);
    Boot boot{disk, 5};
    ASSERT_OK(boot.status);
    EXPECT_EQ(boot.machine.lsns(), UpTo(12));
    EXPECT_TRUE(boot.store().report().clean);
  }
}

TEST(OpenerRefusalTest, ForeignContentIsLeftAlone) {
  const std::pair<const char*, const char*> kForeign[] = {{"notes.txt", "hello"},
                                                          {"MARK", "a mark of another kind"},
                                                          {"journal/today.txt", "dear diary"}};
  for (const auto& [name, text] : kForeign) {
    SCOPED_TRACE(name);
    SimStorage storage{SimDisk()};
    if (std::string(name).starts_with("journal/")) {
      ASSERT_OK(storage.MakeFolder("journal"));
    }
    {
      ASSERT_OK_AND_ASSIGN(const auto file, storage.OpenFile(name, OpenMode::kCreate));
      ASSERT_OK(file->WriteAt(0, AsBytes(text)));
    }
    const uint64_t before = storage.disk().Fingerprint();
    RecordingMachine machine;
    EXPECT_FAILS(StoreBuilder::Open(storage, machine).status(), kFailedPrecondition, kForeign);
    EXPECT_FAILS(OpenReadOnly(storage, machine.machines()).status(), kFailedPrecondition, kForeign);
    EXPECT_EQ(storage.disk().Fingerprint(), before);
  }
}

// Proves: G13
TEST(OpenerRefusalTest, ANewerFormatIsRefusedByNameAndLeftAlone) {
  Boot first{SimDisk()};
  std::string unknown;  // type 99, version 1, no flags, 4 bytes of fields
  Encoder encoder(unknown);
  encoder.Fixed(uint8_t{99});
  encoder.Fixed(uint8_t{1});
  encoder.Fixed(uint16_t{0});
  encoder.Fixed(uint32_t{4});
  encoder.Fixed(uint32_t{0});
  first.store().AppendSynced({1});
  first.store().AppendRaw(unknown);
  first.store().Sync();
  const SimDisk disk = first.Killed();
  const uint64_t before = disk.Fingerprint();
  Boot boot{disk, 2};
  EXPECT_FAILS(boot.status, kFailedPrecondition, kNewerFormat);
  EXPECT_NE(Message(boot.status).find("99"), std::string::npos) << boot.status.ToString();
  EXPECT_EQ(boot.storage->disk().Fingerprint(), before);

  Boot second{SimDisk()};
  unknown[2] = kRecordMaySkip;
  second.store().AppendSynced({1});
  second.store().AppendRaw(unknown);
  second.store().AppendSynced({1});
  Boot skipped{second.Killed(), 2};
  ASSERT_OK(skipped.status);
  EXPECT_EQ(skipped.machine.lsns(), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(skipped.store().report().skipped_records, 1u);
}

TEST(OpenerRefusalTest, ARecordThatDoesNotDecodeIsDamage) {
  Boot first{SimDisk()};
  std::string broken;
  EncodeRecord(OffsetAdvance{.topic = "t", .client = "c", .next = 1}, broken);
  broken[8] = '\x7f';  // the length of the topic
  first.store().AppendRaw(broken);
  first.store().Sync();
  Boot boot{first.Killed(), 2};
  EXPECT_FAILS(boot.status, kDataLoss, kDamage);
}

// Proves: G6
TEST(OpenerRefusalTest, AReadErrorFailsTheOpenAndChangesNothing) {
  const SimDisk disk = TwoSegments(false);
  const uint64_t before = disk.Fingerprint();
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(at);
    SimStorage storage(disk);
    storage.SetFault(SimFault{.at = at, .only = SimCall::kReadAt});
    RecordingMachine machine;
    const Status status = StoreBuilder::Open(storage, machine).status();
    if (!storage.fault_was_met()) {
      EXPECT_OK(status);
      break;
    }
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    // Reads of MARK by its writer come after the decision; they change its epoch at most.
    if (storage.disk().Fingerprint() != before) {
      Boot boot{storage.disk().Kill(1, false), 9};
      ASSERT_OK(boot.status);
      EXPECT_EQ(boot.machine.lsns(), UpTo(12));
    }
  }
}

// Proves: G8
TEST(OpenerRefusalTest, OnAFullDiskTheReserveIsUsed) {
  Boot first{SimDisk(SimDiskOptions{.bytes_max = 64 * 1024 * 3 + 24 * 1024})};
  ASSERT_OK(first.status);
  first.store().AppendSynced({2});
  first.store().Append({1});
  (void)first.store().Prepare(*first.storage);  // segment 2, made ahead; no room for another
  Boot second{first.Killed(), 2};
  ASSERT_OK(second.status);
  EXPECT_EQ(second.machine.lsns(), UpTo(3));
}

}  // namespace
}  // namespace holdfast
