#include "journal/format/frame.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "journal/base/checksum.h"
#include "journal/base/seeded_rng.h"
#include "tests/support/group_builder.h"

namespace holdfast {
namespace {

constexpr Life kLife{.salt = 0x1234567890abcdef, .segment = 7, .stamp = 0xfeedfacecafebeef};
constexpr uint64_t kOffset = 5 * kBlockBytes;
constexpr Lsn kFirst{1000};
constexpr uint64_t kRoom = uint64_t{1} << 20;

std::string Put(std::string_view id, size_t event_bytes) {
  const std::string event(event_bytes, 'e');
  std::string bytes;
  EncodeRecord(DeliveryPut{.id = id, .event = {event.size(), false, event}}, bytes);
  return bytes;
}

// Batches of 1, 3, 1 and 2 records in a group of two blocks.
GroupBuilder FourBatches() {
  GroupBuilder builder(kLife, kOffset, kFirst);
  builder.Add(Put("first", 100), 1);
  builder.Add(Put("a", 10) + Put("b", 3'000) + Put("c", 0), 3);
  builder.Add(Put("third", 1'500), 1);
  builder.Add(Put("d", 1) + Put("last", 200), 2);
  return builder;
}

void Flip(std::vector<std::byte>& bytes, size_t bit) {
  bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
}

GroupHeader HeaderOf(ByteView group) {
  const GroupView view = ReadGroupHeader(group, kLife, kOffset, kRoom);
  EXPECT_EQ(view.shape, Shape::kValid);
  return view.header;
}

// The first LSNs of all batches that can be read, searching on behind what fails.
std::vector<Lsn> ReadAll(ByteView group, const GroupHeader& header, const Life& life,
                         uint64_t offset) {
  std::vector<Lsn> found;
  BatchCursor cursor(group, header, life, offset);
  while (true) {
    const BatchCursor::Step step = cursor.Next();
    if (step == BatchCursor::Step::kEnd) return found;
    if (step == BatchCursor::Step::kBad && !cursor.Resync()) return found;
    found.push_back(cursor.batch().header.first_lsn);
  }
}

// Puts a good check into a header that was changed.
void CheckAgain(std::vector<std::byte>& group) {
  const uint64_t check = Checksum(ByteView(group).first(56), SeedAt(kLife, kOffset));
  std::memcpy(group.data() + 56, &check, sizeof check);
}

TEST(GroupTest, HeaderRoundTrips) {
  const std::vector<std::byte> group = FourBatches().Build(Lsn(900), Lsn(950));
  ASSERT_EQ(group.size(), 2 * kBlockBytes);
  const GroupHeader header = HeaderOf(group);
  EXPECT_EQ(header.length, group.size());
  EXPECT_EQ(header.flags, 0);
  EXPECT_EQ(header.batches, 4);
  EXPECT_EQ(header.records, 7u);
  EXPECT_EQ(header.first_lsn, kFirst);
  EXPECT_EQ(header.synced, Lsn(900));
  EXPECT_EQ(header.promised, Lsn(950));
  EXPECT_EQ(header.engine_ns, 12'345);
}

// Proves: G5
TEST(GroupTest, EveryBitFlipOfTheHeaderIsSeen) {
  const std::vector<std::byte> good = FourBatches().Build();
  for (size_t bit = 0; bit < kGroupHeaderBytes * 8; ++bit) {
    std::vector<std::byte> group = good;
    Flip(group, bit);
    const Shape shape = ReadGroupHeader(group, kLife, kOffset, kRoom).shape;
    EXPECT_EQ(shape, bit < 64 ? Shape::kNoStamp : Shape::kStampedBad) << "bit " << bit;
  }
}

// Proves: G4
TEST(GroupTest, AnotherLifeOrPlaceIsRefused) {
  const std::vector<std::byte> group = FourBatches().Build();
  Life life = kLife;
  life.stamp ^= 1;
  EXPECT_EQ(ReadGroupHeader(group, life, kOffset, kRoom).shape, Shape::kNoStamp);
  life = kLife;
  life.salt ^= 1;
  EXPECT_EQ(ReadGroupHeader(group, life, kOffset, kRoom).shape, Shape::kStampedBad);
  life = kLife;
  life.segment ^= 1;
  EXPECT_EQ(ReadGroupHeader(group, life, kOffset, kRoom).shape, Shape::kStampedBad);
  EXPECT_EQ(ReadGroupHeader(group, kLife, kOffset + kBlockBytes, kRoom).shape, Shape::kStampedBad);
}

TEST(GroupTest, ZerosBearNoStamp) {
  const std::vector<std::byte> zeros(kBlockBytes);
  EXPECT_EQ(ReadGroupHeader(zeros, kLife, kOffset, kRoom).shape, Shape::kNoStamp);
  EXPECT_EQ(ReadGroupHeader(zeros, Life{}, kOffset, kRoom).shape, Shape::kNoStamp);
}

TEST(GroupTest, ACutHeaderIsNeverValid) {
  const std::vector<std::byte> group = FourBatches().Build();
  for (size_t size = 0; size < kGroupHeaderBytes; ++size) {
    const Shape shape = ReadGroupHeader(ByteView(group).first(size), kLife, kOffset, kRoom).shape;
    EXPECT_EQ(shape, size < 8 ? Shape::kNoStamp : Shape::kStampedBad) << size;
  }
}

TEST(GroupTest, NeverClaimsMoreThanTheRoom) {
  const std::vector<std::byte> group = FourBatches().Build();
  EXPECT_EQ(ReadGroupHeader(group, kLife, kOffset, group.size()).shape, Shape::kValid);
  EXPECT_EQ(ReadGroupHeader(group, kLife, kOffset, group.size() - 1).shape, Shape::kStampedBad);
}

// A header that passes its check is still held to every other condition.
TEST(GroupTest, FieldsOutOfRangeAreRefused) {
  struct Change {
    size_t place;
    uint64_t value;
    size_t bytes;
    const char* what;
  };
  const Change changes[] = {
      {8, 0, 4, "length 0"},
      {8, 4097, 4, "length unaligned"},
      {8, kGroupBytesMax + kBlockBytes, 4, "length over the limit"},
      {12, 2, 2, "unknown flag"},
      {12, 1, 2, "a Link with batches"},
      {14, 0, 2, "no batches"},
      {16, 3, 4, "fewer records than batches"},
      {20, 1, 4, "reserved"},
      {24, 0, 8, "no first LSN"},
      {32, 1000, 8, "synced itself"},
      {32, 901, 8, "synced beyond promised"},
      {40, 1000, 8, "promised itself"},
  };
  const std::vector<std::byte> good = FourBatches().Build(Lsn(900), Lsn(900));
  for (const Change& change : changes) {
    std::vector<std::byte> group = good;
    std::memcpy(group.data() + change.place, &change.value, change.bytes);
    CheckAgain(group);
    EXPECT_EQ(ReadGroupHeader(group, kLife, kOffset, uint64_t{1} << 30).shape, Shape::kStampedBad)
        << change.what;
  }
}

TEST(GroupDeathTest, ABadHeaderIsNeverWritten) {
  std::vector<std::byte> group(kBlockBytes);
  const GroupHeader good{.length = kBlockBytes, .batches = 1, .records = 1, .first_lsn = kFirst};
  SealGroup(group, good, kLife, kOffset);
  GroupHeader bad = good;
  bad.synced = kFirst;
  EXPECT_DEATH(SealGroup(group, bad, kLife, kOffset), "CHECK");
  EXPECT_DEATH(SealGroup(group, good, kLife, kOffset + 8), "CHECK");
  bad = good;
  bad.length = 2 * kBlockBytes;
  EXPECT_DEATH(SealGroup(group, bad, kLife, kOffset), "CHECK");
}

TEST(BatchTest, BatchesComeInOrderWithTheirBytes) {
  GroupBuilder builder = FourBatches();
  const std::vector<std::byte> group = builder.Build();
  const GroupHeader header = HeaderOf(group);
  BatchCursor cursor(group, header, kLife, kOffset);
  const uint16_t records[] = {1, 3, 1, 2};
  Lsn next = kFirst;
  for (size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(cursor.next_lsn(), next);
    ASSERT_EQ(cursor.Next(), BatchCursor::Step::kBatch);
    const BatchView& batch = cursor.batch();
    EXPECT_EQ(batch.header.first_lsn, next);
    EXPECT_EQ(batch.header.records, records[index]);
    EXPECT_EQ(batch.header.epoch, 1u);
    EXPECT_EQ(batch.offset, kOffset + builder.batch_places()[index]);
    EXPECT_EQ(batch.header.length, builder.batch_ends()[index] - builder.batch_places()[index]);
    ByteView rest = batch.records;
    for (size_t record = 0; record < records[index]; ++record) EXPECT_TRUE(TakeRecord(rest).ok());
    EXPECT_TRUE(rest.empty());
    next = batch.header.last_lsn() + 1;
  }
  EXPECT_EQ(cursor.Next(), BatchCursor::Step::kEnd);
  EXPECT_EQ(cursor.Next(), BatchCursor::Step::kEnd);
  EXPECT_EQ(cursor.next_lsn(), builder.next_lsn());
  EXPECT_TRUE(cursor.PaddingIsZero());
}

// Proves: G5
TEST(BatchTest, OneBadBitCostsItsBatchAndNoOther) {
  GroupBuilder builder = FourBatches();
  const std::vector<std::byte> good = builder.Build();
  const GroupHeader header = HeaderOf(good);
  const std::vector<Lsn> all = ReadAll(good, header, kLife, kOffset);
  ASSERT_EQ(all.size(), 4u);
  std::vector<std::byte> group = good;
  for (size_t index = 0; index < all.size(); ++index) {
    std::vector<Lsn> others = all;
    others.erase(others.begin() + index);
    for (size_t bit = builder.batch_places()[index] * 8; bit < builder.batch_ends()[index] * 8;
         ++bit) {
      Flip(group, bit);
      ASSERT_EQ(ReadAll(group, header, kLife, kOffset), others) << "bit " << bit;
      Flip(group, bit);
    }
  }
}

// Proves: G5
TEST(BatchTest, TheGapNamesWhatIsLost) {
  GroupBuilder builder = FourBatches();
  std::vector<std::byte> group = builder.Build();
  const GroupHeader header = HeaderOf(group);
  Flip(group, builder.batch_places()[1] * 8);
  Flip(group, builder.batch_places()[3] * 8);
  BatchCursor cursor(group, header, kLife, kOffset);
  ASSERT_EQ(cursor.Next(), BatchCursor::Step::kBatch);
  ASSERT_EQ(cursor.Next(), BatchCursor::Step::kBad);
  EXPECT_EQ(cursor.bad_offset(), kOffset + builder.batch_places()[1]);
  EXPECT_EQ(cursor.next_lsn(), kFirst + 1);
  ASSERT_TRUE(cursor.Resync());
  EXPECT_EQ(cursor.batch().header.first_lsn, kFirst + 4);  // lost: +1 .. +3
  ASSERT_EQ(cursor.Next(), BatchCursor::Step::kBad);
  EXPECT_FALSE(cursor.Resync());
  EXPECT_EQ(cursor.next_lsn(), kFirst + 5);  // lost: from here on
  EXPECT_EQ(cursor.Next(), BatchCursor::Step::kEnd);
}

TEST(BatchTest, PaddingHoldsNoRecordAndIsReported) {
  GroupBuilder builder = FourBatches();
  const std::vector<std::byte> good = builder.Build();
  const GroupHeader header = HeaderOf(good);
  std::vector<size_t> padding;
  for (size_t index = 0; index < 4; ++index) {
    const size_t end = index + 1 < 4 ? builder.batch_places()[index + 1] : good.size();
    for (size_t at = builder.batch_ends()[index]; at < end; ++at) padding.push_back(at);
  }
  ASSERT_GT(padding.size(), 1'000u);
  for (const size_t at : padding) {
    std::vector<std::byte> group = good;
    group[at] = std::byte{1};
    BatchCursor cursor(group, header, kLife, kOffset);
    for (int index = 0; index < 4; ++index) ASSERT_EQ(cursor.Next(), BatchCursor::Step::kBatch);
    ASSERT_EQ(cursor.Next(), BatchCursor::Step::kEnd);
    EXPECT_FALSE(cursor.PaddingIsZero()) << at;
  }
}

// Proves: G4
TEST(BatchTest, AWholeBatchInAPayloadIsNeverTaken) {
  // A payload that holds a batch which is valid at another place of this very segment, with an LSN
  // that would fit; and one of another store at this very place.
  GroupBuilder elsewhere(kLife, kOffset + kBlockBytes, kFirst + 1);
  elsewhere.Add(Put("nested", 50), 1);
  std::vector<std::byte> inner = elsewhere.Build();
  std::string payload = Put("x", 0);
  payload.resize(AlignUp(payload.size(), 8));
  payload.append(AsText(inner));
  std::string records;
  EncodeRecord(DeliveryPut{.id = "outer", .event = {payload.size(), false, payload}}, records);
  for (size_t shift = 0; shift < 8; ++shift) {
    GroupBuilder builder(kLife, kOffset, kFirst);
    builder.Add(records + std::string(shift, '\0'), 1).Add(Put("behind", 5), 1);
    std::vector<std::byte> group = builder.Build();
    const GroupHeader header = HeaderOf(group);
    Flip(group, kGroupHeaderBytes * 8);
    EXPECT_EQ(ReadAll(group, header, kLife, kOffset), std::vector<Lsn>{kFirst + 1});
    const Life foreign{.salt = kLife.salt + 1, .segment = kLife.segment, .stamp = kLife.stamp};
    EXPECT_TRUE(ReadAll(group, header, foreign, kOffset).empty());
    EXPECT_TRUE(ReadAll(group, header, kLife, kOffset + kBlockBytes).empty());
  }
}

TEST(BatchTest, LsnsOutsideTheGroupAreNotTaken) {
  // The same place and life, but an LSN that this group does not count.
  for (const Lsn first : {kFirst - 1, kFirst + 2, kFirst + 7, Lsn(~uint64_t{0})}) {
    std::vector<std::byte> group = FourBatches().Build();
    const GroupHeader header = HeaderOf(group);
    const std::string bytes = Put("first", 100);
    SealBatch(ByteSpan(group).subspan(kGroupHeaderBytes, kBatchHeaderBytes + bytes.size()),
              {.length = static_cast<uint32_t>(kBatchHeaderBytes + bytes.size()),
               .first_lsn = first,
               .records = 1,
               .epoch = 1},
              kLife, kOffset + kGroupHeaderBytes);
    BatchCursor cursor(group, header, kLife, kOffset);
    EXPECT_EQ(cursor.Next(), BatchCursor::Step::kBad) << first.value();
  }
}

TEST(BatchTest, ACutGroupGivesTheWholeBatchesBeforeTheCut) {
  GroupBuilder builder = FourBatches();
  const std::vector<std::byte> group = builder.Build();
  const GroupHeader header = HeaderOf(group);
  for (size_t size = 0; size <= group.size(); ++size) {
    size_t whole = 0;
    for (const size_t end : builder.batch_ends()) whole += end <= size;
    EXPECT_EQ(ReadAll(ByteView(group).first(size), header, kLife, kOffset).size(), whole) << size;
  }
}

TEST(BatchTest, BatchesCanBeReadWithoutTheirGroupHeader) {
  std::vector<std::byte> group = FourBatches().Build();
  std::fill_n(group.begin(), kGroupHeaderBytes, std::byte{0xff});
  const GroupHeader header = BatchCursor::HeaderFor(kFirst, group.size());
  const std::vector<Lsn> all{kFirst, kFirst + 1, kFirst + 4, kFirst + 5};
  EXPECT_EQ(ReadAll(group, header, kLife, kOffset), all);
}

// Proves: G4
TEST(FrameTest, RandomBytesAreNeverValid) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    SeededRng rng(seed);
    std::vector<std::byte> bytes(rng.Below(3 * kBlockBytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
    if (bytes.size() >= 8) std::memcpy(bytes.data(), &kLife.stamp, 8);
    EXPECT_NE(ReadGroupHeader(bytes, kLife, kOffset, kRoom).shape, Shape::kValid);
    EXPECT_TRUE(
        ReadAll(bytes, BatchCursor::HeaderFor(Lsn(1), bytes.size()), kLife, kOffset).empty());
  }
}

// Each part of a seed moves it.
TEST(SeedTest, NeighboursDiffer) {
  std::set<uint64_t> seeds;
  size_t count = 0;
  for (uint64_t salt = 0; salt < 4; ++salt) {
    for (uint32_t segment = 0; segment < 4; ++segment) {
      for (uint64_t stamp = 0; stamp < 4; ++stamp) {
        for (uint64_t offset = 0; offset < 64; offset += 8) {
          seeds.insert(SeedAt({salt, segment, stamp}, offset));
          ++count;
        }
      }
    }
  }
  EXPECT_EQ(seeds.size(), count);
}

// Proves: G4
TEST(LifeStampTest, NeverRepeatsAndIsNeverZero) {
  std::set<uint64_t> stamps{0};
  size_t count = 1;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    for (uint64_t counter = 0; counter < 20; ++counter) {
      for (uint32_t segment = 0; segment < 20; ++segment) {
        stamps.insert(MakeLifeStamp(kLife.salt, Epoch(epoch), counter, segment));
        ++count;
      }
    }
  }
  EXPECT_EQ(stamps.size(), count);
}

// The bytes of version 1: a change here is a new version of the format.
TEST(FrameTest, TheFormatIsFrozen) {
  const std::vector<std::byte> group = FourBatches().Build(Lsn(900), Lsn(950));
  EXPECT_EQ(Checksum(group, 0), 1160357661142623306u);
  EXPECT_EQ(MakeLifeStamp(1, Epoch(2), 3, 4), 15374388949593934587u);
}

}  // namespace
}  // namespace holdfast
