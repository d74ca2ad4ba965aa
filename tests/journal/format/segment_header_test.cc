#include "journal/format/segment_header.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "journal/base/checksum.h"
#include "journal/base/seeded_rng.h"
#include "tests/support/group_builder.h"

namespace holdfast {
namespace {

SegmentHeader SomeHeader() {
  SegmentHeader header{.salt = 0x1122334455667788,
                       .segment = SegmentId(42),
                       .life = 0xabcdef,
                       .segment_bytes = uint64_t{64} << 20,
                       .epoch = Epoch(9),
                       .created_ns = -5};
  for (size_t i = 0; i < header.store_id.size(); ++i) {
    header.store_id[i] = static_cast<uint8_t>(i + 1);
  }
  return header;
}

Link SomeLink() {
  return {.previous = SegmentId(41),
          .previous_life = 77,
          .previous_end = 5 * kBlockBytes,
          .previous_last_lsn = Lsn(100),
          .first = Lsn(101),
          .through = Lsn(120),
          .next = Lsn(uint64_t{2} << 32),
          .epoch = Epoch(9),
          .host_boot_id = "d3b07384-d113-4ec6-a7a5-0123456789ab",
          .id_salt = 5,
          .wall_ns = 1'700'000'000,
          .oldest = SegmentId(3),
          .reason = LinkReason::kOpen};
}

const GroupHeader kLinkGroup{.synced = Lsn(100), .promised = Lsn(110), .engine_ns = 99};

void ExpectSame(const Link& a, const Link& b) {
  EXPECT_EQ(a.previous, b.previous);
  EXPECT_EQ(a.previous_life, b.previous_life);
  EXPECT_EQ(a.previous_end, b.previous_end);
  EXPECT_EQ(a.previous_last_lsn, b.previous_last_lsn);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.through, b.through);
  EXPECT_EQ(a.next, b.next);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.host_boot_id, b.host_boot_id);
  EXPECT_EQ(a.id_salt, b.id_salt);
  EXPECT_EQ(a.wall_ns, b.wall_ns);
  EXPECT_EQ(a.oldest, b.oldest);
  EXPECT_EQ(a.reason, b.reason);
}

TEST(SegmentHeaderTest, RoundTrips) {
  const SegmentHeader header = SomeHeader();
  const std::vector<std::byte> block = EncodeSegmentHeader(header);
  ASSERT_EQ(block.size(), kSegmentHeaderBytes);
  const StatusOr<SegmentHeader> read = DecodeSegmentHeader(block);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->format_version, kFormatVersion);
  EXPECT_EQ(read->store_id, header.store_id);
  EXPECT_EQ(read->salt, header.salt);
  EXPECT_EQ(read->segment, header.segment);
  EXPECT_EQ(read->life, header.life);
  EXPECT_EQ(read->segment_bytes, header.segment_bytes);
  EXPECT_EQ(read->epoch, header.epoch);
  EXPECT_EQ(read->created_ns, header.created_ns);
  const Life life = read->life_of();
  EXPECT_EQ(life.salt, header.salt);
  EXPECT_EQ(life.segment, 42u);
  EXPECT_EQ(life.stamp, header.life);
}

// Proves: G5
TEST(SegmentHeaderTest, EveryBitFlipIsSeen) {
  std::vector<std::byte> block = EncodeSegmentHeader(SomeHeader());
  for (size_t bit = 0; bit < block.size() * 8; ++bit) {
    block[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const StatusOr<SegmentHeader> read = DecodeSegmentHeader(block);
    ASSERT_EQ(read.status().code(), StatusCode::kDataLoss) << "bit " << bit;
    block[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

TEST(SegmentHeaderTest, ACutOrEmptyBlockIsRefused) {
  const std::vector<std::byte> block = EncodeSegmentHeader(SomeHeader());
  for (size_t size = 0; size < block.size(); ++size) {
    ASSERT_FALSE(DecodeSegmentHeader(ByteView(block).first(size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeSegmentHeader(std::vector<std::byte>(kSegmentHeaderBytes)).ok());
}

// Proves: G13
TEST(SegmentHeaderTest, ANewerFormatIsToldFromDamageAndNamed) {
  SegmentHeader header = SomeHeader();
  header.format_version = kFormatVersion + 1;
  const StatusOr<SegmentHeader> read = DecodeSegmentHeader(EncodeSegmentHeader(header));
  EXPECT_EQ(read.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(read.status()), Detail::kNewerFormat);
  EXPECT_NE(Message(read.status()).find(std::to_string(kFormatVersion + 1)), std::string::npos);
}

TEST(SegmentHeaderTest, FieldsOutOfRangeAreRefused) {
  const std::vector<std::byte> good = EncodeSegmentHeader(SomeHeader());
  struct Change {
    size_t place;
    uint64_t value;
    size_t bytes;
  };
  const Change changes[] = {{8, 0, 4},
                            {12, 1, 4},
                            {40, 0, 8},
                            {40, uint64_t{1} << 32, 8},
                            {48, 0, 8},
                            {56, kSegmentBytesMin - kBlockBytes, 8},
                            {56, kSegmentBytesMin + 1, 8},
                            {56, kSegmentBytesMax + kBlockBytes, 8}};
  for (const Change& change : changes) {
    std::vector<std::byte> block = good;
    std::memcpy(block.data() + change.place, &change.value, change.bytes);
    const uint64_t check = Checksum(ByteView(block).first(block.size() - 8), 0);
    std::memcpy(block.data() + block.size() - 8, &check, sizeof check);
    EXPECT_EQ(DecodeSegmentHeader(block).status().code(), StatusCode::kDataLoss) << change.place;
  }
}

TEST(LinkTest, RoundTrips) {
  const Life life = SomeHeader().life_of();
  Link first_of_store{.first = Lsn(1), .next = Lsn(1), .epoch = Epoch(1), .oldest = SegmentId(1)};
  Link inside_a_group = SomeLink();
  inside_a_group.previous_end += 8;
  for (const Link& link : {SomeLink(), first_of_store, inside_a_group}) {
    const std::vector<std::byte> block = EncodeLinkGroup(link, kLinkGroup, life);
    ASSERT_EQ(block.size(), kLinkBytes);
    const LinkView view = DecodeLinkGroup(block, life);
    ASSERT_EQ(view.shape, Shape::kValid);
    ExpectSame(view.link, link);
    EXPECT_TRUE(view.header.is_link());
    EXPECT_EQ(view.header.length, kLinkBytes);
    EXPECT_EQ(view.header.synced, kLinkGroup.synced);
    EXPECT_EQ(view.header.promised, kLinkGroup.promised);
    EXPECT_EQ(view.header.engine_ns, kLinkGroup.engine_ns);
  }
}

// Proves: G5
TEST(LinkTest, EveryBitFlipOfItsBytesIsSeen) {
  constexpr size_t kUsed = 64 + 168;  // the rest is padding
  const Life life = SomeHeader().life_of();
  std::vector<std::byte> block = EncodeLinkGroup(SomeLink(), kLinkGroup, life);
  for (size_t bit = 0; bit < block.size() * 8; ++bit) {
    block[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const Shape want = bit < 64          ? Shape::kNoStamp
                       : bit < kUsed * 8 ? Shape::kStampedBad
                                         : Shape::kValid;
    ASSERT_EQ(DecodeLinkGroup(block, life).shape, want) << "bit " << bit;
    block[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

// Proves: G4
TEST(LinkTest, OfAnotherLifeIsNone) {
  const Life life = SomeHeader().life_of();
  const std::vector<std::byte> block = EncodeLinkGroup(SomeLink(), kLinkGroup, life);
  Life other = life;
  other.stamp += 1;
  EXPECT_EQ(DecodeLinkGroup(block, other).shape, Shape::kNoStamp);
  other = life;
  other.segment += 1;
  EXPECT_EQ(DecodeLinkGroup(block, other).shape, Shape::kStampedBad);
  EXPECT_EQ(DecodeLinkGroup(std::vector<std::byte>(kLinkBytes), life).shape, Shape::kNoStamp);
}

TEST(LinkTest, ACutLinkOrAGroupOfBatchesIsNone) {
  const Life life = SomeHeader().life_of();
  const std::vector<std::byte> block = EncodeLinkGroup(SomeLink(), kLinkGroup, life);
  for (size_t size = 0; size < 64 + 168; ++size) {
    EXPECT_NE(DecodeLinkGroup(ByteView(block).first(size), life).shape, Shape::kValid) << size;
  }
  const std::vector<std::byte> batches =
      GroupBuilder(life, kSegmentHeaderBytes, Lsn(1)).AddRecord(DeadLetterPurge{.id = "x"}).Build();
  EXPECT_EQ(DecodeLinkGroup(batches, life).shape, Shape::kStampedBad);
}

TEST(LinkDeathTest, ALinkThatContradictsItselfIsNeverWritten) {
  const Life life = SomeHeader().life_of();
  Link bad = SomeLink();
  bad.next = bad.through;
  EXPECT_DEATH(EncodeLinkGroup(bad, kLinkGroup, life), "CHECK");
  bad = SomeLink();
  bad.host_boot_id.assign(65, 'x');
  EXPECT_DEATH(EncodeLinkGroup(bad, kLinkGroup, life), "CHECK");
  bad = SomeLink();
  bad.previous_end = kFirstGroupOffset - 8;
  EXPECT_DEATH(EncodeLinkGroup(bad, kLinkGroup, life), "CHECK");
}

TEST(SegmentFileNameTest, RoundTripsInOrder) {
  EXPECT_EQ(SegmentFileName(SegmentId(1)), "journal/0000000000000001.seg");
  EXPECT_EQ(SegmentFileName(SegmentId(0xdeadbeef)), "journal/00000000deadbeef.seg");
  EXPECT_LT(SegmentFileName(SegmentId(9)), SegmentFileName(SegmentId(10)));
  for (const uint64_t id : {uint64_t{1}, uint64_t{255}, uint64_t{0xffffffff}}) {
    const std::string path = SegmentFileName(SegmentId(id));
    EXPECT_EQ(ParseSegmentFileName(path.substr(path.find('/') + 1)), SegmentId(id));
  }
}

TEST(SegmentFileNameTest, OtherNamesAreNone) {
  for (const char* name :
       {"", ".seg", "0000000000000000.seg", "000000000000001.seg", "00000000000000001.seg",
        "000000000000000A.seg", "0000000000000001.SEG", "0000000000000001.seg.bad", "spare-1",
        "-000000000000001.seg", "+000000000000001.seg", " 000000000000001.seg",
        "0x00000000000001.seg", "0000000100000000.seg", "ffffffffffffffff.seg"}) {
    EXPECT_EQ(ParseSegmentFileName(name), SegmentId()) << name;
  }
}

// The bytes of version 1: a change here is a new version of the format.
TEST(SegmentHeaderTest, TheFormatIsFrozen) {
  EXPECT_EQ(Checksum(EncodeSegmentHeader(SomeHeader()), 0), 14791349166769199840u);
  EXPECT_EQ(Checksum(EncodeLinkGroup(SomeLink(), kLinkGroup, SomeHeader().life_of()), 0),
            12806443349287240855u);
}

}  // namespace
}  // namespace holdfast
