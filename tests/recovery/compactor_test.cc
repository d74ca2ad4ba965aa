#include "recovery/compactor.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tests/recovery/boot.h"

namespace holdfast {
namespace {

// Positions by partition: the state rests on the newest record of each. Told to, it has more to say
// of one than its record did.
class Positions final : public StateMachine {
 public:
  Positions() { machines_.Route(RecordType::kOffsetAdvance, *this); }
  void Apply(const RawRecord& record, Lsn lsn, const RecordRef&) override {
    newest_[FieldsOf<OffsetAdvance>(record).partition] = lsn;
  }
  bool Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const override {
    OffsetAdvance fields = FieldsOf<OffsetAdvance>(record);
    const auto found = newest_.find(fields.partition);
    if (found == newest_.end() || found->second != lsn) return false;
    if (grown_) fields.next = UINT64_MAX;
    draft.Add(fields);
    return true;
  }
  void Forget(uint64_t partition) { newest_.erase(partition); }
  void Grow() { grown_ = true; }
  const StateMachines& machines() const { return machines_; }
  const std::map<uint64_t, Lsn>& newest() const { return newest_; }

 private:
  std::map<uint64_t, Lsn> newest_;
  bool grown_ = false;
  StateMachines machines_;
};

// Takes batches, and lets a test do something while Reserve waits for room: a record comes then.
class BatchSink final : public RecordSink {
 public:
  BatchSink(Mutex& sequencer, const StateMachines& machines, Lsn last)
      : RecordSink(sequencer), machines_(machines), last_(last) {}

  Status Reserve(uint64_t batch_bytes, Claim claim) override {
    EXPECT_EQ(claim, Claim::kReclaim);
    reserved.push_back(batch_bytes);
    if (const auto hook = std::exchange(on_reserve, nullptr)) {
      last_ = last_ + 1;
      hook();
    }
    return refuse;
  }
  bool HasRoom(uint64_t, Claim) const override { return refuse.ok(); }
  Lsn Append(const BatchDraft& draft) override {
    EXPECT_FALSE(draft.empty());
    EXPECT_LE(draft.batch_bytes(), reserved.back());
    const Lsn first = last_ + 1;
    std::vector<uint64_t> batch;
    for (size_t i = 0; i < draft.count(); ++i) {
      last_ = last_ + 1;
      machines_.Apply(draft.raw(i), last_, {});
      batch.push_back(FieldsOf<OffsetAdvance>(draft.raw(i)).partition);
    }
    batches.push_back(batch);
    bytes.push_back(draft.batch_bytes());
    return first;
  }
  Lsn appended() const override { return last_; }
  void Kick() override { ++kicks; }
  StatusOr<std::string> ReadRecord(const RecordRef&, Lsn) override { return std::string(); }
  bool poisoned() const override { return false; }
  Status WaitFor(uint64_t) override { return absl::OkStatus(); }
  void CallWhenReached(uint64_t, std::function<void(Status)>) override {}
  bool Reached(uint64_t) const override { return true; }

  std::vector<uint64_t> partitions() const {
    std::vector<uint64_t> all;
    for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  }

  Status refuse;
  std::function<void()> on_reserve;
  std::vector<uint64_t> reserved;
  std::vector<std::vector<uint64_t>> batches;  // the partitions in each
  std::vector<uint64_t> bytes;
  size_t kicks = 0;

 private:
  const StateMachines& machines_;
  Lsn last_;
};

constexpr uint64_t kBatchMax = 8'192;
constexpr uint64_t kWhole = uint64_t{1} << 20;

// A segment of positions, each in a batch of its own, sealed by a rotation.
class CompactorTest : public testing::Test {
 protected:
  Lsn Put(uint64_t partition, size_t padding = 0) {
    const EncodedPosition record(partition, padding);
    boot_.store().AppendRaw(record.bytes);
    const Lsn lsn = boot_.store().last();
    ByteView rest = AsBytes(record.bytes);
    state_.Apply(*TakeRecord(rest), lsn, {});
    return lsn;
  }
  SealedSegment Seal() {
    const SealedSegment sealed{.segment = boot_.store().segment(),
                               .last = boot_.store().last(),
                               .file_bytes = StoreBuilder::kSegmentBytes,
                               .end = boot_.store().end()};
    boot_.store().Sync();
    boot_.store().Rotate(*boot_.storage);
    sink_.emplace(sequencer_, state_.machines(), boot_.store().last() + 1'000);
    compactor_.emplace(*boot_.storage, *sink_, state_.machines(),
                       boot_.store().start().identity.salt, kBatchMax);
    return sealed;
  }
  // In pieces of that size, to the end.
  Status Compact(const SealedSegment& sealed, uint64_t piece_bytes = kWhole) {
    RETURN_IF_ERROR(compactor_->Begin(sealed));
    for (bool more = true; more;) {
      ASSIGN_OR_RETURN(more, compactor_->Step(piece_bytes));
    }
    return absl::OkStatus();
  }
  void Damage(const std::string& name, uint64_t offset) {
    boot_.storage->Damage(name, offset, AsBytes(std::string_view("\xde\xad\xbe\xef")));
  }

  struct EncodedPosition {
    EncodedPosition(uint64_t partition, size_t padding) {
      EncodeRecord(
          OffsetAdvance{
              .topic = std::string(padding, 'x'), .client = "c", .partition = partition, .next = 1},
          bytes);
    }
    std::string bytes;
  };
  using Partitions = std::vector<uint64_t>;

  Boot boot_{SimDisk()};
  Positions state_;
  Mutex sequencer_;
  std::optional<BatchSink> sink_;
  std::optional<Compactor> compactor_;
};

TEST_F(CompactorTest, OnlyWhatTheStateRestsOnIsStatedAgain) {
  for (const uint64_t partition : {1, 2, 1, 3, 4, 2}) Put(partition);
  state_.Forget(4);
  const SealedSegment sealed = Seal();
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{1, 3, 2}));
  for (const auto& [partition, lsn] : state_.newest()) EXPECT_GT(lsn, sealed.last) << partition;
  EXPECT_EQ(compactor_->counts().restated_records, 3u);
  EXPECT_GT(compactor_->counts().restated_bytes, 0u);
  EXPECT_GT(compactor_->counts().read_bytes, 0u);
  EXPECT_FALSE(compactor_->active());
  EXPECT_EQ(sink_->kicks, sink_->batches.size());
}

TEST_F(CompactorTest, ASecondTimeNothingIsLeft) {
  for (const uint64_t partition : {1, 2, 3}) Put(partition);
  const SealedSegment sealed = Seal();
  ASSERT_OK(Compact(sealed));
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{1, 2, 3}));
  EXPECT_EQ(sink_->reserved.size(), 1u) << "nothing live asks for no room";
}

TEST_F(CompactorTest, NothingIsStatedBehindItsOwnRemoval) {
  for (const uint64_t partition : {1, 2, 3}) Put(partition);
  const SealedSegment sealed = Seal();
  sink_->on_reserve = [&] { state_.Forget(2); };
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{1, 3}));
}

TEST_F(CompactorTest, WhatAllDiesWhileItWaitsForRoomIsNoBatch) {
  for (const uint64_t partition : {1, 2}) Put(partition);
  const SealedSegment sealed = Seal();
  sink_->on_reserve = [&] {
    state_.Forget(1);
    state_.Forget(2);
  };
  ASSERT_OK(Compact(sealed));
  EXPECT_TRUE(sink_->batches.empty());
  EXPECT_EQ(compactor_->counts().restated_records, 0u);
}

TEST_F(CompactorTest, WhatGrowsWhileItWaitsAsksForMoreRoom) {
  Put(1);
  const SealedSegment sealed = Seal();
  sink_->on_reserve = [&] { state_.Grow(); };
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), Partitions{1});
  ASSERT_EQ(sink_->reserved.size(), 2u);
  EXPECT_LT(sink_->reserved[0], sink_->reserved[1]);
}

TEST_F(CompactorTest, BatchesAreBounded) {
  for (uint64_t partition = 0; partition < 10; ++partition) Put(partition, 3'000);
  const SealedSegment sealed = Seal();
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions().size(), 10u);
  for (const auto& batch : sink_->batches) EXPECT_EQ(batch.size(), 2u);
  for (const uint64_t bytes : sink_->bytes) EXPECT_LE(bytes, kBatchMax);
}

TEST_F(CompactorTest, ARecordLargerThanABatchMayBeGoesAlone) {
  Put(1, 100);
  Put(2, 3 * kBatchMax);
  Put(3, 100);
  const SealedSegment sealed = Seal();
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->batches, (std::vector<Partitions>{{1}, {2}, {3}}));
  EXPECT_GT(sink_->bytes[1], kBatchMax);
}

TEST_F(CompactorTest, AStepIsAPiece) {
  for (uint64_t partition = 0; partition < 5; ++partition) Put(partition, 500);
  const SealedSegment sealed = Seal();
  ASSERT_OK(compactor_->Begin(sealed));
  EXPECT_TRUE(compactor_->active());
  EXPECT_EQ(compactor_->segment(), sealed.segment);
  for (uint64_t done = 1; done <= 5; ++done) {
    ASSERT_OK_AND_ASSIGN(const bool more, compactor_->Step(1));
    EXPECT_EQ(sink_->partitions().size(), done);
    EXPECT_TRUE(more);
  }
  ASSERT_OK_AND_ASSIGN(const bool more, compactor_->Step(1));
  EXPECT_FALSE(more);
  EXPECT_FALSE(compactor_->active());
}

// Its segment may go under it: what is left of it is not read any more.
TEST_F(CompactorTest, AStopLeavesTheSegmentWhereItIs) {
  for (uint64_t partition = 0; partition < 5; ++partition) Put(partition, 500);
  const SealedSegment sealed = Seal();
  ASSERT_OK(compactor_->Begin(sealed));
  ASSERT_OK_AND_ASSIGN(const bool more, compactor_->Step(1));
  EXPECT_TRUE(more);
  compactor_->Stop();
  EXPECT_FALSE(compactor_->active());
  EXPECT_EQ(sink_->partitions(), (Partitions{0}));
  compactor_->Stop();  // there is nothing to leave
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{0, 1, 2, 3, 4}));
}

TEST_F(CompactorTest, WhatACutLeftBehindTheLastRecordIsNotTouched) {
  for (const uint64_t partition : {1, 2}) Put(partition);
  const Lsn last = boot_.store().last();
  const uint64_t end = boot_.store().end();
  Put(3);
  SealedSegment sealed = Seal();
  sealed.last = last;
  sealed.end = end;
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{1, 2}));
  // Nor is it looked at: it may be torn.
  Damage(Name(sealed.segment.value()), end);
  ASSERT_OK(Compact(sealed));
}

TEST_F(CompactorTest, RecordsOfTypesThatNobodyTakesAreLeftOut) {
  Put(1);
  std::string unknown = EncodedPosition(9, 0).bytes;
  unknown[0] = static_cast<char>(200);
  unknown[2] = kRecordMaySkip;
  boot_.store().AppendRaw(unknown);
  std::string later = EncodedPosition(9, 0).bytes;
  later[1] = 99;  // a version of a type that is known
  later[2] = kRecordMaySkip;
  boot_.store().AppendRaw(later);
  Put(2);
  const SealedSegment sealed = Seal();
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{1, 2}));
}

// What stands before it is safe; what stands behind it was not looked at.
TEST_F(CompactorTest, DamageIsToldAndEndsIt) {
  for (uint64_t partition = 0; partition < 4; ++partition) Put(partition);
  const SealedSegment sealed = Seal();
  Damage(Name(sealed.segment.value()), kFirstGroupOffset + 2 * kBlockBytes + 64 + 40);
  const Status status = Compact(sealed, /*piece_bytes=*/1);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
  EXPECT_EQ(sink_->partitions(), (Partitions{0, 1}));
  EXPECT_FALSE(compactor_->active());
}

TEST_F(CompactorTest, ASegmentWithoutItsHeaderOrLinkIsNotBegun) {
  Put(1);
  const SealedSegment sealed = Seal();
  const SimDisk before = boot_.storage->disk();
  for (const uint64_t offset : {uint64_t{40}, kSegmentHeaderBytes + 100}) {
    SimStorage storage(before.Kill(1, /*late=*/false));
    storage.Damage(Name(sealed.segment.value()), offset, AsBytes(std::string_view("\xde\xad")));
    Compactor compactor(storage, *sink_, state_.machines(), boot_.store().start().identity.salt,
                        kBatchMax);
    const Status status = compactor.Begin(sealed);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << offset << ": " << status;
    EXPECT_FALSE(compactor.active());
  }
  EXPECT_TRUE(sink_->batches.empty());
}

TEST_F(CompactorTest, AFailedReadIsToldAndPasses) {
  for (const uint64_t partition : {1, 2}) Put(partition);
  const SealedSegment sealed = Seal();
  ASSERT_OK(compactor_->Begin(sealed));
  boot_.storage->SetFault(SimFault{.for_ever = true, .only = SimCall::kReadAt});
  EXPECT_FAILS(compactor_->Step(kWhole).status(), kUnavailable, kIo);
  EXPECT_FALSE(compactor_->active());
  boot_.storage->SetFault(std::nullopt);
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{1, 2}));
}

TEST_F(CompactorTest, OnAFullDiskItStopsAndCanBeginAgain) {
  for (uint64_t partition = 0; partition < 6; ++partition) Put(partition, 3'000);
  const SealedSegment sealed = Seal();
  sink_->on_reserve = [&] {
    sink_->on_reserve = [&] { sink_->refuse = Exhausted(Detail::kDiskFull, "full"); };
  };
  EXPECT_FAILS(Compact(sealed), kResourceExhausted, kDiskFull);
  EXPECT_EQ(sink_->partitions(), (Partitions{0, 1}));
  EXPECT_FALSE(compactor_->active());
  sink_->refuse = absl::OkStatus();
  ASSERT_OK(Compact(sealed));
  EXPECT_EQ(sink_->partitions(), (Partitions{0, 1, 2, 3, 4, 5})) << "each once";
}

}  // namespace
}  // namespace holdfast
