#include "recovery/checkpoint_file.h"

#include <gtest/gtest.h>

#include "journal/format/codec.h"
#include "recovery/checkpoint_writer.h"
#include "recovery/evidence.h"
#include "tests/recovery/captured.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_storage.h"

namespace holdfast {
namespace {

class OtherMachine final : public StateMachine {
  void Apply(const RawRecord&, Lsn, const RecordRef&) override {}
};

class CheckpointFileTest : public testing::Test {
 protected:
  CheckpointFileTest() : storage_(store_.disk) {
    const StatusOr<StoreView> view = ReadView(storage_);
    CHECK_OK(view.status());
    layout_ = view->layout;
  }
  Status Load(const StateMachines* machines) {
    return LoadCheckpoint(storage_, layout_.checkpoints.back(), layout_.salt, machines);
  }
  TwoCheckpoints store_;
  SimStorage storage_;
  StoreLayout layout_;
};

TEST_F(CheckpointFileTest, HeaderAndFooterTellWhatItIs) {
  ASSERT_EQ(layout_.checkpoints.size(), 2u);
  const CheckpointFile& newest = layout_.checkpoints.back();
  ASSERT_OK(newest.status);
  EXPECT_EQ(newest.from, Lsn(6));
  EXPECT_EQ(newest.bytes, store_.newer.bytes);
  EXPECT_EQ(newest.header.epoch, Epoch(1));
  EXPECT_EQ(newest.header.engine_ns, absl::ToInt64Nanoseconds(absl::Seconds(3)));
  EXPECT_EQ(newest.footer.through, Lsn(6));
  ASSERT_EQ(newest.footer.sections.size(), 1u);
  EXPECT_EQ(newest.footer.sections[0].entries, 6u);
}

TEST_F(CheckpointFileTest, LoadingVerifiesAndHandsOver) {
  EXPECT_OK(Load(nullptr));
  RecordingMachine machine;
  ASSERT_OK(Load(&machine.machines()));
  EXPECT_EQ(machine.lsns(), UpTo(6));
}

// State that nobody takes, or that a machine misses, would be lost without a word.
TEST_F(CheckpointFileTest, ItsSectionsMustBeThoseOfTheMachines) {
  OtherMachine other;
  RecordingMachine machine;
  StateMachines more = machine.machines();
  more.Route(RecordType::kDeliveryPut, other);
  EXPECT_FAILS(Load(&more), kFailedPrecondition, kNone);  // an earlier version wrote it
  StateMachines none;
  EXPECT_FAILS(Load(&none), kFailedPrecondition, kNewerFormat);
}

class LaterMachine final : public StateMachine {
 public:
  void Apply(const RawRecord&, Lsn, const RecordRef&) override {}
  bool MayLackSection() const override { return true; }
};

TEST_F(CheckpointFileTest, AMachineThatCameLaterMayLackItsSection) {
  LaterMachine later;
  RecordingMachine machine;
  StateMachines more = machine.machines();
  more.Route(RecordType::kDeliveryPut, later);
  EXPECT_OK(Load(&more));
  EXPECT_EQ(machine.lsns(), UpTo(6));
}

// Takes numbers of eight bytes each, in order, up to one that it refuses.
class NumberMachine final : public StateMachine {
 public:
  explicit NumberMachine(uint64_t refused) : refused_(refused) {
    machines_.Route(RecordType::kDeliveryPut, *this);
  }
  void Apply(const RawRecord&, Lsn, const RecordRef&) override {}
  Status LoadSnapshot(ByteView entries, uint64_t) override {
    for (Decoder in(entries); in.remaining() > 0; ++taken_) {
      if (in.Fixed<uint64_t>() != taken_ || taken_ == refused_) return DataLoss("refused");
    }
    return absl::OkStatus();
  }
  uint64_t taken() const { return taken_; }
  const StateMachines& machines() const { return machines_; }

 private:
  const uint64_t refused_;
  uint64_t taken_ = 0;
  StateMachines machines_;
};

// With blocks opened ahead, in a thread, and without. Whichever of them is damaged or refused, what
// stands before it was handed over, nothing behind it was, and the thread has ended.
TEST(CheckpointBlocksTest, TheyAreTakenInOrderUpToTheFirstThatIsBad) {
  constexpr uint64_t kNumbers = 200'000, kSalt = 7;
  const auto write = [&](Storage& storage) {
    StatusOr<std::unique_ptr<CheckpointWriter>> made =
        CheckpointWriter::Create(storage, {.from = Lsn(5), .epoch = Epoch(1)}, kSalt);
    CHECK_OK(made.status());
    CheckpointWriter& writer = **made;
    writer.BeginSection(static_cast<uint32_t>(RecordType::kDeliveryPut));
    std::string entries;
    for (uint64_t number = 0; number < kNumbers; ++number) {
      Encoder(entries).Fixed(number);
      if (entries.size() < 10'000 && number + 1 < kNumbers) continue;
      CHECK_OK(writer.Add(entries));
      entries.clear();
    }
    CHECK_OK(writer.EndSection(kNumbers));
    CHECK_OK(writer.Finish(Lsn(5)));
    CHECK_OK(writer.Publish().status());
  };
  TempDir directory;
  const std::unique_ptr<Storage> real = OpenTestStorage(directory.path());
  SimStorage simulated;
  for (Storage* const storage : {real.get(), static_cast<Storage*>(&simulated)}) {
    write(*storage);
    const auto load = [&](NumberMachine& machine) {
      const auto files = ReadCheckpointFiles(*storage, {Lsn(5)}, StoreId(), kSalt);
      CHECK(files.size() == 1);
      CHECK_OK(files[0].status);
      return LoadCheckpoint(*storage, files[0], kSalt, &machine.machines());
    };
    NumberMachine whole(kNumbers);
    ASSERT_OK(load(whole));
    EXPECT_EQ(whole.taken(), kNumbers);
    for (const uint64_t refused : {uint64_t{0}, kNumbers / 2, kNumbers - 1}) {
      NumberMachine machine(refused);
      EXPECT_FAILS(load(machine), kDataLoss, kDamage);
      EXPECT_EQ(machine.taken(), refused);
    }
    ASSERT_OK_AND_ASSIGN(const auto file,
                         storage->OpenFile(CheckpointFileName(Lsn(5)), OpenMode::kReadWrite, {}));
    ASSERT_OK_AND_ASSIGN(const uint64_t bytes, file->Size());
    uint64_t before = kNumbers;
    for (uint64_t part = 9; part > 0; --part) {  // each damage before the last one
      const uint64_t offset = kCheckpointHeaderBytes + (bytes - 3 * kBlockBytes) * part / 10;
      std::byte byte;
      ASSERT_OK(file->ReadAt(offset, {&byte, 1}).status());
      byte ^= std::byte{0x10};
      ASSERT_OK(file->WriteAt(offset, {&byte, 1}));
      NumberMachine machine(kNumbers);
      EXPECT_FAILS(load(machine), kDataLoss, kDamage);
      EXPECT_LE(machine.taken(), before);
      EXPECT_LT(machine.taken(), kNumbers);
      before = machine.taken();
    }
    EXPECT_LT(before, kNumbers / 5);
  }
}

TEST_F(CheckpointFileTest, OneThatIsGoneIsLeftOut) {
  const auto files =
      ReadCheckpointFiles(storage_, {Lsn(4), Lsn(5)}, layout_.store_id, layout_.salt);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].from, Lsn(4));
  ASSERT_OK(storage_.Remove(CheckpointFileName(Lsn(6))));
  EXPECT_EQ(Load(nullptr).code(), StatusCode::kNotFound);
}

TEST_F(CheckpointFileTest, AReadErrorIsNoDamage) {
  storage_.SetFault(SimFault{.at = 1, .for_ever = true, .only = SimCall::kReadAt});
  EXPECT_FAILS(Load(nullptr), kUnavailable, kIo);
  const auto files = ReadCheckpointFiles(storage_, {Lsn(4)}, layout_.store_id, layout_.salt);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_FAILS(files[0].status, kUnavailable, kIo);
}

}  // namespace
}  // namespace holdfast
