#include "stores/offset_mirror.h"

#include <gtest/gtest.h>

#include "meta/memory_meta.h"
#include "stores/engine_on_storage.h"
#include "tests/meta/faulty_meta.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"

namespace holdfast {
namespace {

using Fault = FaultyMeta::Fault;

const SourceKey kPartition{"orders/1", 3, 7};

// One instance: an engine, its membership and its mirror, as far as they are needed here.
class Member {
 public:
  Member(MetaStore& meta, SimClock& clock, const std::string& name, uint64_t nonce) {
    auto engine = Engine::Open({.backend = Backend::kMemory, .clock = &clock});
    EXPECT_OK(engine);
    engine_ = *std::move(engine);
    auto joined = Membership::Join(meta, nonce, clock, {.instance = name, .thread = false});
    EXPECT_OK(joined);
    membership_ = *std::move(joined);
    auto mirror = OffsetMirror::Open(*engine_, meta, *membership_, clock, {.thread = false});
    EXPECT_OK(mirror);
    mirror_ = *std::move(mirror);
  }

  Engine& engine() { return *engine_; }
  Membership& membership() { return *membership_; }
  OffsetMirror& mirror() { return *mirror_; }
  StatusOr<MirroredPartition> TakeOver() {
    RETURN_IF_ERROR(membership_->Acquire(kPartition).status());
    return mirror_->Restore(kPartition);
  }
  void Write(const std::string& client, uint64_t next) {
    EXPECT_OK(
        engine_->offsets()
            .Write({kPartition.topic, client, kPartition.partition}, {next, kPartition.incarnation})
            .Wait());
  }
  void WriteCursor(uint64_t cursor) {
    EXPECT_OK(engine_
                  ->Transact([&](Transaction& change) {
                    change.SourceSeen(kPartition, cursor + 10);
                    change.SourceCursor(kPartition, cursor);
                  })
                  .Wait());
  }
  uint64_t Read(const std::string& client) {
    const auto stored = engine_->offsets().Read({kPartition.topic, client, kPartition.partition});
    return stored.ok() ? stored->position.next : 0;
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<OffsetMirror> mirror_;
};

class OffsetMirrorTest : public testing::Test {
 protected:
  SimClock clock_;
  MemoryMeta meta_{clock_, 1};
  FaultyMeta faulty_{meta_};
};

// Proves: S9
TEST_F(OffsetMirrorTest, ANewOwnerBeginsWhereTheOldOneWasMirrored) {
  Member one(meta_, clock_, "one", 1), two(meta_, clock_, "two", 2);
  ASSERT_OK_AND_ASSIGN(MirroredPartition restored, one.TakeOver());
  EXPECT_EQ(restored.cursor, std::nullopt);
  EXPECT_EQ(restored.clients, 0u);
  one.Write("billing", 11);
  one.Write("\xff/", 22);
  one.WriteCursor(11);
  ASSERT_OK(one.mirror().Flush());
  one.Write("billing", 15);  // after the last mirror write: comes again
  clock_.Advance(absl::Seconds(5));
  two.membership().Beat();
  clock_.Advance(absl::Seconds(6));  // one was silent
  ASSERT_OK_AND_ASSIGN(restored, two.TakeOver());
  EXPECT_EQ(restored.cursor, 11u);
  EXPECT_EQ(restored.clients, 2u);
  EXPECT_EQ(restored.seen, 21u);
  EXPECT_EQ(two.Read("billing"), 11u);
  EXPECT_EQ(two.Read("\xff/"), 22u);
  EXPECT_EQ(two.engine().offsets().ReadSource(kPartition)->cursor, 11u);
  EXPECT_FALSE(two.engine().offsets().ReadSource(kPartition)->has_seen)
      << "what the old owner had in flight was never handed in here";
}

// Proves: S5
TEST_F(OffsetMirrorTest, AnOwnerThatWasReplacedMirrorsNothing) {
  Member one(meta_, clock_, "one", 1), two(meta_, clock_, "two", 2);
  ASSERT_OK(one.TakeOver());
  one.Write("billing", 11);
  ASSERT_OK(one.mirror().Flush());
  clock_.Advance(absl::Seconds(5));
  two.membership().Beat();
  clock_.Advance(absl::Seconds(6));
  ASSERT_OK(two.TakeOver());
  two.Write("billing", 12);
  ASSERT_OK(two.mirror().Flush());
  one.Write("billing", 99);
  EXPECT_FAILS(one.mirror().Flush(), kPermissionDenied, kStaleOwner);
  const auto entry = meta_.Get("/em/offsets/orders%2F1/3/7/billing", {});
  ASSERT_OK(entry);
  EXPECT_EQ(entry->value, "1 12 ");
}

// What it knew of the Meta when it was the owner before says nothing now.
// Proves: S9
TEST_F(OffsetMirrorTest, AnOwnerThatComesBackMirrorsNothingBeforeItHasRead) {
  Member one(meta_, clock_, "one", 1), two(meta_, clock_, "two", 2);
  ASSERT_OK(one.TakeOver());
  one.Write("billing", 11);
  ASSERT_OK(one.mirror().Flush());
  ASSERT_OK(one.membership().Release(kPartition));
  ASSERT_OK(two.TakeOver());
  two.Write("billing", 40);
  ASSERT_OK(two.mirror().Flush());
  ASSERT_OK(two.membership().Release(kPartition));

  one.Write("billing", 20);  // late, of the time when it was the owner
  ASSERT_OK(one.membership().Acquire(kPartition).status());
  ASSERT_OK(one.mirror().Flush());
  ASSERT_OK(one.mirror().Restore(kPartition));
  EXPECT_EQ(one.Read("billing"), 40u);
  EXPECT_TRUE(one.mirror().MayAcknowledge(kPartition));
  one.Write("billing", 41);
  ASSERT_OK(one.mirror().Flush());
  ASSERT_OK(one.membership().Release(kPartition));
  ASSERT_OK(two.TakeOver());
  EXPECT_EQ(two.Read("billing"), 41u);
}

TEST_F(OffsetMirrorTest, OnlyWhatRoseIsWritten) {
  Member one(meta_, clock_, "one", 1);
  ASSERT_OK(one.TakeOver());
  for (int client = 0; client < 300; ++client) one.Write(std::to_string(client), 5);
  ASSERT_OK(one.mirror().Flush());
  EXPECT_EQ(meta_.List("/em/offsets/", {})->entries.size(), 300u);
  const uint64_t before = meta_.List("", {})->revision;
  ASSERT_OK(one.mirror().Flush());
  EXPECT_EQ(meta_.List("", {})->revision, before);
  one.Write("7", 4);  // lower: nothing
  one.Write("8", 6);
  ASSERT_OK(one.mirror().Flush());
  EXPECT_EQ(meta_.List("", {})->revision, before + 1);
}

// Proves: S2, S9
TEST_F(OffsetMirrorTest, AnOwnerThatCannotMirrorIsNotUpToDate) {
  Member one(faulty_, clock_, "one", 1);
  EXPECT_FALSE(one.mirror().UpToDate(kPartition)) << "not restored";
  ASSERT_OK(one.TakeOver());
  EXPECT_TRUE(one.mirror().UpToDate(kPartition));
  one.Write("billing", 11);
  faulty_.SetFaults([](FaultyMeta::Call) { return Fault::kUnreachable; });
  EXPECT_FAILS(one.mirror().Flush(), kUnavailable, kIo);
  clock_.Advance(absl::Seconds(2));
  EXPECT_TRUE(one.mirror().UpToDate(kPartition));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_FALSE(one.mirror().UpToDate(kPartition));
  faulty_.Heal();
  ASSERT_OK(one.mirror().Flush());
  EXPECT_TRUE(one.mirror().UpToDate(kPartition));
  EXPECT_EQ(meta_.List("/em/offsets/", {})->entries.size(), 1u);
}

// Proves: S3
TEST_F(OffsetMirrorTest, LostAnswersDoNoHarm) {
  Member one(faulty_, clock_, "one", 1);
  ASSERT_OK(one.TakeOver());
  one.Write("billing", 11);
  one.WriteCursor(3);
  for (const Fault fault : {Fault::kUnanswered, Fault::kLost}) {
    faulty_.SetFaults([fault](FaultyMeta::Call) { return fault; });
    EXPECT_FAILS(one.mirror().Flush(), kUnavailable, kUnknownOutcome);
  }
  faulty_.Heal();
  ASSERT_OK(one.mirror().Flush());
  EXPECT_EQ(meta_.Get("/em/offsets/orders%2F1/3/7/billing", {})->value, "1 11 ");
  EXPECT_EQ(meta_.Get("/em/cursors/orders%2F1/3/7", {})->value, "1 3 ");
}

// What a power cut may take back here must not be in the Meta.
TEST_F(OffsetMirrorTest, OnlyWhatIsDurableIsMirrored) {
  SimStorage storage;
  ASSERT_OK_AND_ASSIGN(
      const auto engine,
      OpenEngineOn(storage, {.commit_interval = absl::Seconds(10), .clock = &clock_}, false));
  ASSERT_OK_AND_ASSIGN(const auto membership,
                       Membership::Join(meta_, 1, clock_, {.instance = "one", .thread = false}));
  ASSERT_OK_AND_ASSIGN(const auto mirror,
                       OffsetMirror::Open(*engine, meta_, *membership, clock_, {.thread = false}));
  ASSERT_OK(membership->Acquire(kPartition));
  ASSERT_OK(mirror->Restore(kPartition));
  const Commit written = engine->offsets().Write(
      {kPartition.topic, "billing", kPartition.partition}, {11, kPartition.incarnation});
  ASSERT_OK(written.refused());
  ASSERT_FALSE(written.confirmed());
  ASSERT_OK(mirror->Flush());
  EXPECT_TRUE(meta_.List("/em/offsets/", {})->entries.empty());
  ASSERT_OK(engine->Flush());
  ASSERT_OK(mirror->Flush());
  EXPECT_EQ(meta_.List("/em/offsets/", {})->entries.size(), 1u);
}

TEST_F(OffsetMirrorTest, OfAPartitionThatIsNotItsOwnNothingIsRead) {
  Member one(meta_, clock_, "one", 1);
  EXPECT_FAILS(one.mirror().Restore(kPartition), kPermissionDenied, kStaleOwner);
  one.Write("billing", 11);
  ASSERT_OK(one.mirror().Flush());
  EXPECT_TRUE(meta_.List("/em/offsets/", {})->entries.empty());
  EXPECT_FAILS(OffsetMirror::Open(one.engine(), meta_, one.membership(), clock_,
                                  {.interval = absl::Milliseconds(9)}),
               kInvalidArgument, kNone);
}

// A value of a newer version must not be taken for none.
// Proves: K2
TEST_F(OffsetMirrorTest, WhatCannotBeReadFailsTheRestore) {
  Member one(meta_, clock_, "one", 1);
  ASSERT_OK(meta_.Put("/em/offsets/orders%2F1/3/7/billing", "2 11 x", {}));
  EXPECT_FAILS(one.TakeOver(), kUnimplemented, kNone);
  EXPECT_FALSE(one.mirror().UpToDate(kPartition));
}

}  // namespace
}  // namespace holdfast
