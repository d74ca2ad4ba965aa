// A survey sees everything, goes on behind damage, and says what an open would.
#include "recovery/survey.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

class Notes final : public SurveyVisitor {
 public:
  void OnSegment(const SegmentSurvey& segment) override { segments.push_back(segment); }
  void OnRecord(const SurveyedRecord& record) override {
    (record.live ? live : dead).push_back(record.lsn.value());
  }
  void OnDamage(const Damage& damage) override { damages.push_back(damage); }

  std::vector<SegmentSurvey> segments;
  std::vector<uint64_t> live, dead;
  std::vector<Damage> damages;
};

struct Surveyed {
  explicit Surveyed(const SimDisk& disk) : storage(disk) {
    const uint64_t before = storage.disk().Fingerprint();
    StatusOr<SurveyReport> surveyed = Survey(storage, notes, {.dead_records = true});
    status = surveyed.status();
    if (surveyed.ok()) report = *std::move(surveyed);
    EXPECT_EQ(storage.disk().Fingerprint(), before);
  }
  SimStorage storage;
  Notes notes;
  Status status;
  SurveyReport report;
};

TEST(SurveyTest, ACleanStoreIsClean) {
  const Surveyed survey(TwoSegments(true));
  ASSERT_OK(survey.status);
  EXPECT_EQ(survey.report.verdict, SurveyVerdict::kClean);
  EXPECT_OK(survey.report.open_status);
  EXPECT_TRUE(survey.report.recovery.clean);
  EXPECT_EQ(survey.notes.live, UpTo(12));
  EXPECT_TRUE(survey.notes.dead.empty());
  ASSERT_EQ(survey.notes.segments.size(), 2u);
  EXPECT_EQ(survey.notes.segments[0].state, SegmentState::kChain);
  EXPECT_TRUE(survey.notes.segments[1].newest);
  EXPECT_EQ(survey.report.last_lsn, Lsn(12));
}

TEST(SurveyTest, ATornTailIsNotDamage) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1});
  const uint64_t torn = boot.store().Append({1, 1});
  boot.store().Append({1});
  SimDisk disk = boot.Killed();
  Flip(disk, Name(1), torn + 80);
  const Surveyed survey(disk);
  ASSERT_OK(survey.status);
  EXPECT_EQ(survey.report.verdict, SurveyVerdict::kTornTail);
  EXPECT_OK(survey.report.open_status);
  EXPECT_EQ(survey.notes.live, UpTo(1));
  EXPECT_EQ(survey.notes.dead, (std::vector<uint64_t>{3, 4}));
  ASSERT_TRUE(survey.report.torn.has_value());
  EXPECT_EQ(survey.report.torn->offset, torn);
  EXPECT_EQ(survey.report.torn->next_lsn, Lsn(2));
}

// Proves: G5
TEST(SurveyTest, OneBadByteCostsOneBatchAndIsLocated) {
  SimDisk disk = TwoSegments(true);
  Flip(disk, Name(2),
       kFirstGroupOffset + 100);  // batch of LSN 8 and 9; 10 stands in the same group
  const Surveyed survey(disk);
  ASSERT_OK(survey.status);
  EXPECT_EQ(survey.report.verdict, SurveyVerdict::kDamage);
  EXPECT_FAILS(survey.report.open_status, kDataLoss, kDamage);
  ASSERT_EQ(survey.notes.damages.size(), 1u);
  const Damage& damage = survey.notes.damages[0];
  EXPECT_EQ(damage.segment, SegmentId(2));
  EXPECT_EQ(damage.offset, kFirstGroupOffset + kGroupHeaderBytes);
  EXPECT_EQ(damage.first_lsn, Lsn(8));
  EXPECT_EQ(damage.last_lsn, Lsn(9));
  EXPECT_TRUE(damage.refuses_open);
  EXPECT_EQ(survey.notes.live, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 10, 11, 12}));
}

TEST(SurveyTest, EveryDamageIsToldNotOnlyTheFirst) {
  SimDisk disk = TwoSegments(true);
  Flip(disk, Name(1), kFirstGroupOffset + 100);  // LSN 1
  disk.Damage(Name(1), kFirstGroupOffset + kBlockBytes, std::vector<std::byte>(kBlockBytes));
  Flip(disk, Name(2), kFirstGroupOffset + kBlockBytes + 100);  // LSN 11
  const Surveyed survey(disk);
  ASSERT_OK(survey.status);
  ASSERT_EQ(survey.notes.damages.size(), 3u);
  EXPECT_EQ(survey.notes.damages[1].first_lsn, Lsn(4));
  EXPECT_EQ(survey.notes.damages[1].last_lsn, Lsn(6));
  EXPECT_EQ(survey.notes.live, (std::vector<uint64_t>{2, 3, 7, 8, 9, 10, 12}));
}

TEST(SurveyTest, WhatIsRedundantIsToldAndDoesNotRefuse) {
  const std::pair<std::string, uint64_t> kRedundant[] = {
      {Name(1), 40},                                    // the segment's header
      {Name(1), kFirstGroupOffset + 10},                // a group's header
      {Name(1), kSegmentHeaderBytes + 1000},            // padding of a Link
      {Name(1), kFirstGroupOffset + kBlockBytes - 1}};  // padding of a group
  for (const auto& [name, offset] : kRedundant) {
    SCOPED_TRACE(offset);
    SimDisk disk = TwoSegments(true);
    Flip(disk, name, offset);
    const Surveyed survey(disk);
    ASSERT_OK(survey.status);
    EXPECT_OK(survey.report.open_status);
    EXPECT_EQ(survey.report.verdict, SurveyVerdict::kDamage);
    ASSERT_EQ(survey.notes.damages.size(), 1u);
    EXPECT_FALSE(survey.notes.damages[0].refuses_open);
    EXPECT_EQ(survey.notes.live, UpTo(12));
  }
}

TEST(SurveyTest, DeadVoidAndSpareFilesAreNamed) {
  Boot boot{SimDisk()};
  boot.store().AppendSynced({1});
  boot.store().Rotate(*boot.storage);
  boot.store().Append({1});
  SimDisk disk = boot.storage->disk();
  disk.Damage(Name(2), kSegmentHeaderBytes, std::vector<std::byte>(kBlockBytes));  // its Link
  disk.SetContents("journal/spare-0000000000000007", AsBytes("half made"));
  const Surveyed survey(disk.Kill(1, false));
  ASSERT_OK(survey.status);
  ASSERT_EQ(survey.notes.segments.size(), 3u);
  EXPECT_EQ(survey.notes.segments[1].state, SegmentState::kVoid);
  EXPECT_EQ(survey.notes.segments[2].state, SegmentState::kSpare);
  EXPECT_EQ(survey.notes.live, UpTo(1));
  EXPECT_EQ(survey.notes.dead, (std::vector<uint64_t>{2}));
  EXPECT_EQ(survey.report.verdict, SurveyVerdict::kTornTail);
}

TEST(SurveyTest, AMissingSegmentIsToldAndTheRestIsRead) {
  SimDisk disk = TwoSegments(true);
  disk.Erase(Name(1));
  const Surveyed survey(disk);
  ASSERT_OK(survey.status);
  ASSERT_EQ(survey.notes.damages.size(), 1u);
  EXPECT_EQ(survey.notes.damages[0].file, Name(1));
  EXPECT_EQ(survey.notes.live, (std::vector<uint64_t>{8, 9, 10, 11, 12}));
}

// Every byte in use is flipped, one at a time: an open either has every record or refuses, a survey
// says the same, and no flip of a byte in use goes unseen. Proves: G4 G5
TEST(SurveyTest, EveryFlippedByteIsSeenAndJudgedAsAnOpenDoes) {
  const SimDisk clean = TwoSegments(true);
  const std::pair<std::string, uint64_t> kFiles[] = {
      {"MARK", 2 * kBlockBytes},
      {Name(1), kFirstGroupOffset + 3 * kBlockBytes},
      {Name(2), kFirstGroupOffset + 2 * kBlockBytes}};
  for (const auto& [name, bytes] : kFiles) {
    for (uint64_t offset = 0; offset < bytes; offset += offset % kBlockBytes < 192 ? 3 : 97) {
      SimDisk disk = clean;
      Flip(disk, name, offset);
      SCOPED_TRACE(testing::Message() << name << " byte " << offset);
      const Surveyed survey(disk);
      ASSERT_OK(survey.status);
      SimStorage storage(disk);
      RecordingMachine machine;
      const StatusOr<ReadStore> read = OpenReadOnly(storage, machine.machines());
      ASSERT_EQ(read.ok(), survey.report.open_status.ok()) << read.status().ToString();
      if (read.ok()) {
        ASSERT_EQ(machine.lsns(), UpTo(12));
      }
      ASSERT_NE(survey.report.verdict, SurveyVerdict::kClean);
      ASSERT_EQ(survey.report.verdict == SurveyVerdict::kDamage, survey.report.damages > 0);
    }
  }
}

}  // namespace
}  // namespace holdfast
